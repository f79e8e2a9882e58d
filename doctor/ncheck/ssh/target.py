"""Where one node's ssh goes and what it may use there: the answer of ssh configuration, ours or that of `ssh -G`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SshTarget:
    """What OpenSSH would use for one node. Paths are absolute, `~` and tokens expanded; "none" is an empty field.

    `needs_openssh` says why the ssh program must be used for this node ("ProxyJump bastion"), "" where paramiko does.
    `unsure` says why our own reading could not decide; then every other field is only our best reading, and
    `SshConfig.resolve` has not been able to ask `ssh -G` (there is no such program here).
    """

    name: str  # as listed: what ssh is called with, and what Host patterns saw
    host_name: str  # what is resolved and connected to
    port: int = 22
    user: str = ""
    identity_files: tuple[str, ...] = ()  # in the order of trial; files that are not there are passed over in silence
    identities_only: bool = False
    identity_agent: str = ""  # the agent's socket, SSH_AUTH_SOCK included; "" for no agent
    certificate_files: tuple[str, ...] = ()
    proxy_jump: str = ""
    proxy_command: str = ""  # tokens not expanded: only ssh runs it
    known_hosts_files: tuple[str, ...] = ()
    global_known_hosts_files: tuple[str, ...] = ()
    host_key_alias: str = ""
    strict: str = "ask"  # StrictHostKeyChecking: yes, ask, accept-new, no
    hash_known_hosts: bool = False
    connect_timeout: int | None = None  # seconds
    address_family: str = "any"  # any, inet, inet6
    bind_address: str = ""
    control_path: str = ""  # tokens expanded
    needs_openssh: str = ""
    unsure: str = ""
    config_file: str = ""  # what -F named, for the lines that people type

    @property
    def known_as(self) -> str:
        """The name that known_hosts is searched for: the alias if there is one, else [host]:port off port 22."""
        if self.host_key_alias:
            return self.host_key_alias
        return self.host_name if self.port == 22 else f"[{self.host_name}]:{self.port}"  # noqa: PLR2004  ssh's own port
