"""Options of one host, read by us or told by `ssh -G`, to the SshTarget that the transports work from.

Options map a keyword in lower case to its values as they were written: both ways in yield the same form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from doctor.transport.ssh_config.keywords import COMMANDS, MANY, NORMAL, REPEATED
from doctor.transport.ssh_config.needs import needs_openssh
from doctor.transport.ssh_config.tokens import LocalUser, UnknownTokenError, expanded, percent_expanded
from doctor.transport.target import SshTarget

Options = Mapping[str, tuple[str, ...]]

# In OpenSSH's order of trial.
DEFAULT_IDENTITIES = tuple(
    f"~/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ecdsa_sk", "ed25519", "ed25519_sk", "xmss", "dsa")
)
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_SSH_PORT = 22


def target_of(name: str, options: Options, user: LocalUser, ticket: Callable[[], bool], unsure: str = "") -> SshTarget:
    """Build the target. `ticket` tells whether a Kerberos ticket is in sight; it is asked only where that matters."""
    maker = _Maker(name, options, user, unsure)
    target = maker.target()
    reason = needs_openssh(options, target, ticket)
    return replace(target, needs_openssh=reason) if reason else target


class _Maker:
    """One host's options, with the tokens that they may use."""

    def __init__(self, name: str, options: Options, user: LocalUser, unsure: str) -> None:
        self.name = name
        self.options = options
        self.user = user
        self.unsure = unsure
        self.login = self.one("user") or user.name
        self.port = int(self.one("port") or _SSH_PORT)
        self.host_name = self._host_name()
        self._tokens: Mapping[str, str] | None = None

    def one(self, keyword: str) -> str:
        """Return a keyword's value, "" where it is not set or is none."""
        value = self.options.get(keyword, ("",))[0]
        return "" if value.lower() == "none" else value

    def paths(self, keyword: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return a keyword's paths, expanded; none at all for the single word none."""
        values = self.options.get(keyword, default)
        return tuple(self._path(value) for value in values if value.lower() != "none")

    def target(self) -> SshTarget:
        timeout = self.one("connecttimeout")
        return SshTarget(
            name=self.name,
            host_name=self.host_name,
            port=self.port,
            user=self.login,
            identity_files=self.paths("identityfile", DEFAULT_IDENTITIES),
            identities_only=self.one("identitiesonly") == "yes",
            identity_agent=self._agent(),
            certificate_files=self.paths("certificatefile"),
            proxy_jump=self.one("proxyjump"),
            proxy_command=self.one("proxycommand"),
            known_hosts_files=self.paths("userknownhostsfile", _KNOWN_HOSTS),
            global_known_hosts_files=self._global_known_hosts(),
            host_key_alias=self.one("hostkeyalias"),
            strict=self.one("stricthostkeychecking") or "ask",
            hash_known_hosts=self.one("hashknownhosts") == "yes",
            connect_timeout=int(timeout) if timeout else None,
            address_family=self.one("addressfamily") or "any",
            bind_address=self.one("bindaddress"),
            control_path=self._path(self.one("controlpath")),
            unsure=self.unsure,
        )

    def _host_name(self) -> str:
        """Expand HostName, whose %h is the listed name. Names are lowered, v6 addresses and zones are not."""
        written = self.options.get("hostname", (self.name,))[0]
        try:
            host_name = percent_expanded(written, {"h": self.name, "%": "%"}) if "hostname" in self.options else written
        except UnknownTokenError as error:
            self.unsure = self.unsure or f"HostName {written}: {error}"
            host_name = written
        return host_name if ":" in host_name or "%" in host_name else host_name.lower()

    def _path(self, text: str) -> str:
        if "%" not in text and "$" not in text:
            if text.startswith("~/"):
                return self.user.home + text[1:]
            if not text.startswith("~"):
                return text
        try:
            return expanded(text, self.tokens, self.user)
        except UnknownTokenError as error:
            self.unsure = self.unsure or f"{text}: {error}"
            return text

    def _agent(self) -> str:
        """Return the agent's socket: SSH_AUTH_SOCK unless IdentityAgent names another, or a variable that does."""
        written = self.options.get("identityagent", ("SSH_AUTH_SOCK",))[0]
        if written.lower() == "none":
            return ""
        if written == "SSH_AUTH_SOCK":
            return self.user.environ.get(written, "")
        if written.startswith("$") and not written.startswith("${"):
            return self.user.environ.get(written[1:], "")
        return self._path(written)

    def _global_known_hosts(self) -> tuple[str, ...]:
        """Return the files as written: OpenSSH expands nothing in them."""
        values = self.options.get("globalknownhostsfile", _GLOBAL_KNOWN_HOSTS)
        return tuple(value for value in values if value.lower() != "none")

    @property
    def tokens(self) -> Mapping[str, str]:
        """The % tokens. %j is left to ssh, and with a jump host %C too: releases differ in what they hash."""
        if self._tokens is None:
            user, local = self.user, self.user.host_name
            self._tokens = {
                "%": "%", "d": user.home, "h": self.host_name, "i": str(user.uid),
                "k": self.one("hostkeyalias") or self.name, "l": local, "L": local.partition(".")[0],
                "n": self.name, "p": str(self.port), "r": self.login, "u": user.name,
            }  # fmt: skip
            if not self.one("proxyjump"):
                hashed = f"{local}{self.host_name}{self.port}{self.login}"
                digest = hashlib.sha1(hashed.encode(errors="surrogateescape"), usedforsecurity=False)
                self._tokens = {**self._tokens, "C": digest.hexdigest()}
        return self._tokens


def from_ssh_g(text: str, user: LocalUser, ticket: Callable[[], bool]) -> SshTarget:
    """Read the output of `ssh -G host`: keyword and value a line. ValueError where it is no such output."""
    options: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in text.splitlines():
        keyword, _, value = line.partition(" ")
        if keyword == "host":
            name = value
        else:
            _add(options, keyword, value)
    if "hostname" not in options or "port" not in options:
        raise ValueError("ssh -G told no hostname and port")
    if _are_default(options.get("identityfile", ())):
        del options["identityfile"]
    return target_of(name or options["hostname"][0], options, user, ticket)


# ssh -G has expanded these already, and no others.
_EXPANDED = frozenset({"hostname", "controlpath", "identityagent", "userknownhostsfile"})


def _add(options: dict[str, tuple[str, ...]], keyword: str, value: str) -> None:
    if keyword in _EXPANDED:
        value = value.replace("%", "%%")  # what is left of a % stands for itself
    if keyword in MANY:
        options[keyword] = tuple(value.split())
    elif keyword in REPEATED:
        options[keyword] = (*options.get(keyword, ()), value)
    elif keyword in NORMAL:
        options[keyword] = (NORMAL[keyword](value),)
    elif keyword in COMMANDS:
        options[keyword] = (value,)


def _are_default(identities: tuple[str, ...]) -> bool:
    """Tell whether these are OpenSSH's own; releases differ in which of them they still try."""
    few = 4
    return len(identities) >= few and identities == tuple(path for path in DEFAULT_IDENTITIES if path in identities)
