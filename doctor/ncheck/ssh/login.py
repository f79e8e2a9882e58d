"""What a login is asked for and what came of it: the host, the options of the command line, the record, the failure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from ncheck.lazy_dataclass import dataclass


class LoginCause(str, Enum):
    """Why a login failed."""

    NAME_UNKNOWN = "name-unknown"  # the name does not resolve
    REFUSED = "refused"  # RST: nothing listens on that port
    FILTERED = "filtered"  # no answer to SYN in time
    UNROUTABLE = "unroutable"  # no route, network or host unreachable
    NOT_SSH = "not-ssh"  # something listens, and it is not an SSH server
    SILENT = "silent"  # TCP connects, no SSH banner comes: sshd is frozen
    STALLED = "stalled"  # a banner came, the key exchange or the login stopped: large packets lost
    HOST_KEY_UNKNOWN = "host-key-unknown"
    HOST_KEY_CHANGED = "host-key-changed"
    HOST_KEY_REVOKED = "host-key-revoked"
    AUTH_REFUSED = "auth-refused"
    CERTIFICATE_EXPIRED = "certificate-expired"  # one of the user's that was offered
    KEY_TYPE_REFUSED = "key-type-refused"  # the server accepts no key of the types that were offered
    TOO_MANY_KEYS = "too-many-keys"
    PERSON_WANTED = "person-wanted"  # keyboard-interactive, or an expired password
    SLURM_JOB_WANTED = "slurm-job-wanted"  # pam_slurm_adopt: no job of yours there
    OVERLOADED = "overloaded"  # MaxStartups dropped every attempt
    NO_SHELL = "no-shell"  # logged in, and no command can be started
    CLOSED = "closed"  # the server closed the connection
    TRANSPORT = "transport"  # this side failed: no ssh binary, too few file descriptors, a jump host that fails


@dataclass(frozen=True)
class ListedHost:
    """A host as it was listed: `user` and `port` only where the listing gives them."""

    name: str
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True)
class Options:
    """The options of ssh's command line; None leaves each to the configuration files.

    `config_file` is -F: "none" reads no file, None reads ~/.ssh/config and /etc/ssh/ssh_config. `longest` is how many
    seconds a connection may last after its login, `width` how many may wait for their login at one server.
    """

    user: str | None = None
    port: int | None = None
    identity: str | None = None
    config_file: str | None = None
    accept_new_host_keys: bool = False
    longest: float = 3600.0
    width: int = 64


@dataclass(frozen=True)
class LoginRecord:
    """How a login went, whether it succeeded or not."""

    transport: str  # paramiko, openssh
    address: str = ""  # the address that was connected to, "" when there was no connection
    port: int = 0
    user: str = ""
    attempts: int = 1
    seconds: float = 0.0  # from the first attempt to the command's start, or to the failure
    authentication: float = 0.0  # those from the key exchange to the command's start; 0 where they were not measured
    offered_keys: tuple[str, ...] = ()  # "ED25519 SHA256:... ~/.ssh/id_ed25519", in the order of the offers
    host_key: str = ""  # "ssh-ed25519 SHA256:..."
    host_key_warning: str = ""  # why it should not be trusted, where StrictHostKeyChecking no trusts it all the same


class ConfigError(Exception):
    """The ssh configuration cannot be read, or ssh refuses it: one line."""


class LoginFailedError(Exception):
    """A login failed: why, in one line, and a command line that fixes or shows it, where there is one.

    `openssh_may_work`: the ssh program has what was missing (a common algorithm, host certificates, a jump host).
    """

    def __init__(
        self, cause: LoginCause, detail: str, fix: str, record: LoginRecord, *, openssh_may_work: bool = False
    ) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.fix, self.record = cause, detail, fix, record
        self.openssh_may_work = openssh_may_work


class RemoteStream(Protocol):
    """Standard input and output of one remote command. `record` says how the login went."""

    @property
    def record(self) -> LoginRecord:
        """How the login went."""

    def send(self, data: bytes, timeout: float) -> None:
        """Write all of it; TimeoutError after `timeout` seconds, ConnectionError when the connection is gone."""

    def receive(self, timeout: float) -> bytes:
        """Return some bytes as soon as there are any; b"" at the end; TimeoutError after `timeout` seconds;
        ConnectionError when the connection broke rather than ended.
        """

    def stderr(self) -> bytes:
        """Return the last 4 KiB that came on standard error so far."""

    def exit_status(self, timeout: float) -> int | None:
        """Return the command's exit status once it ended, None when it is not known within `timeout` seconds."""

    def close(self) -> None:
        """End it, at once and without waiting: the remote side ends at end of input."""
