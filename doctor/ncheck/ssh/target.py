"""Where ssh goes for one host and what it may use there: the options of that host, made into a Target.

Options map a keyword in lower case to its values as they were written, whether read from the files or from `ssh -G`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from os.path import exists  # asked for every node: a Path each would cost more than all the rest
from pathlib import Path

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh import child
from ncheck.ssh.algorithms import AS_DEFAULT, KEYWORDS, WantedAlgorithms, lacking
from ncheck.ssh.config_syntax import (
    COMMANDS,
    MANY,
    NORMAL,
    REPEATED,
    LocalUser,
    UnknownTokenError,
    expanded,
    percent_expanded,
)

Options = Mapping[str, tuple[str, ...]]

# In OpenSSH's order of trial.
DEFAULT_IDENTITIES = tuple(
    f"~/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ecdsa_sk", "ed25519", "ed25519_sk", "xmss", "dsa")
)

_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
SSH_PORT = 22


@dataclass(frozen=True)
class SshTarget:
    """What OpenSSH would use for one host. Paths are absolute, `~` and tokens expanded; "none" is an empty field.

    `needs_openssh` says why the ssh program must be used for this host ("ProxyJump bastion"), "" where paramiko serves.
    `unsure` says why the files alone could not decide; every other field is then only the best reading, since there is
    no ssh program on this machine to ask.
    """

    name: str  # as listed: what ssh is called with, and what Host patterns saw
    host_name: str  # what is resolved and connected to
    port: int = SSH_PORT
    user: str = ""
    identity_files: tuple[str, ...] = ()  # in the order of trial; files that do not exist are skipped
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
    shared_socket: str = ""  # that path, where ssh uses or makes it and it is one for all hosts
    algorithms: WantedAlgorithms = AS_DEFAULT
    needs_openssh: str = ""
    unsure: str = ""
    config_file: str = ""  # what -F and -i named, for command lines that are shown
    identity: str = ""

    @property
    def known_as(self) -> str:
        """The name that known_hosts is searched for: the alias if there is one, else [host]:port off port 22."""
        if self.host_key_alias:
            return self.host_key_alias
        return self.host_name if self.port == SSH_PORT else f"[{self.host_name}]:{self.port}"


def target_of(name: str, options: Options, user: LocalUser, ticket: Callable[[], bool], unsure: str = "") -> SshTarget:
    """Build the target. `ticket` tells whether there is a Kerberos ticket; it is called only where that matters."""
    maker = _TargetMaker(name, options, user, unsure)
    target = maker.target()
    reason = needs_openssh(options, target, ticket)
    target = replace(target, needs_openssh=reason) if reason else target
    return replace(target, shared_socket=target.control_path) if _shares_socket(options, target) else target


class _TargetMaker:
    """Makes a target of one host's options, with the tokens that they may use."""

    def __init__(self, name: str, options: Options, user: LocalUser, unsure: str) -> None:
        self.name = name
        self.options = options
        self.user = user
        self.unsure = unsure
        self.login = self.one("user") or user.name
        self.port = int(self.one("port") or SSH_PORT)
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
            algorithms=self._algorithms(),
            unsure=self.unsure,
        )

    def _algorithms(self) -> WantedAlgorithms:
        values = {name: self.options.get(name, ("",))[0] for name in (*KEYWORDS, "pubkeyacceptedalgorithms")}
        return WantedAlgorithms(**values, known_first=values["hostkeyalgorithms"][:1] in ("", "+", "-"))

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
        raise ValueError("ssh -G printed no hostname and port")
    if _are_default(options.get("identityfile", ())):
        del options["identityfile"]
    target = target_of(name or options["hostname"][0], options, user, ticket)
    # It prints whole lists, the defaults too, and not who chose their order.
    return replace(target, algorithms=replace(target.algorithms, known_first=True))


# ssh -G has expanded these already, and no others.
_EXPANDED = frozenset({"hostname", "controlpath", "identityagent", "userknownhostsfile"})


def _add(options: dict[str, tuple[str, ...]], keyword: str, value: str) -> None:
    if keyword in _EXPANDED:
        value = value.replace("%", "%%")  # any % that is left is literal
    if keyword in MANY:
        options[keyword] = tuple(value.split())
    elif keyword in REPEATED:
        options[keyword] = (*options.get(keyword, ()), value)
    elif keyword in NORMAL:
        options[keyword] = (NORMAL[keyword](value),)
    elif keyword in COMMANDS:
        options[keyword] = (value,)


def _are_default(identities: tuple[str, ...]) -> bool:
    """Tell whether these are OpenSSH's defaults; releases differ in which of them they still try."""
    few = 4
    return len(identities) >= few and identities == tuple(path for path in DEFAULT_IDENTITIES if path in identities)


# Switches that paramiko has nothing for, with the values that switch them on.
_SWITCHES = {
    "hostbasedauthentication": ("HostbasedAuthentication", ("yes",)),
    "pubkeyauthentication": ("PubkeyAuthentication", ("no",)),
    "verifyhostkeydns": ("VerifyHostKeyDNS", ("yes", "ask")),
    "nohostauthenticationforlocalhost": ("NoHostAuthenticationForLocalhost", ("yes",)),
}

# Keywords that paramiko has nothing for, whatever they name.
_NAMED = {
    "pkcs11provider": "PKCS11Provider",
    "knownhostscommand": "KnownHostsCommand",
    "revokedhostkeys": "RevokedHostKeys",
    "bindinterface": "BindInterface",
}


def needs_openssh(options: Options, target: SshTarget, ticket: Callable[[], bool]) -> str:
    """Say why ssh itself must connect, "" where paramiko can.

    `GSSAPIAuthentication yes` alone is no reason: Debian and Red Hat ship that line to everyone. Without a Kerberos
    ticket it cannot succeed, whoever wrote it, and ssh itself would go on to the keys; so there must be a ticket.
    """
    return (
        _proxy(target)
        or _switched(options)
        or _authentications(options)
        or _live_master(target)
        or _only_security_keys(target)
        or lacking(target.algorithms)
        or ("GSSAPIAuthentication with a Kerberos ticket" if _wants_ticket(options) and ticket() else "")
    )


def _proxy(target: SshTarget) -> str:
    if target.proxy_jump:
        return f"ProxyJump {target.proxy_jump}"
    return "ProxyCommand" if target.proxy_command else ""


def _switched(options: Options) -> str:
    for keyword, (name, values) in _SWITCHES.items():
        if keyword in options and options[keyword][0] in values:
            return f"{name} {options[keyword][0]}"
    for keyword, name in _NAMED.items():
        if keyword in options and options[keyword][0].lower() != "none":
            return name
    return ""


def _authentications(options: Options) -> str:
    methods = options.get("preferredauthentications", ("publickey",))[0]
    return "" if "publickey" in methods.split(",") else f"PreferredAuthentications {methods}"


def _wants_ticket(options: Options) -> bool:
    return options.get("gssapiauthentication") == ("yes",)


def _live_master(target: SshTarget) -> str:
    """Look for the socket of a connection that is open already: after a second factor, perhaps the only login.

    A socket without a master behind it does no harm: ssh then connects by itself.
    """
    path = target.control_path
    if not path:
        return ""
    try:
        return f"ControlPath {path} is open" if stat.S_ISSOCK(Path(path).stat().st_mode) else ""
    except (OSError, ValueError):
        return ""


_OF_A_HOST = ("%h", "%n", "%k", "%C")  # the tokens of which a ControlPath has one, to be another for each host
# ~/.ssh/cm-ab93e1...: ssh -G prints %C expanded
_HASH = r"[0-9a-f]{40}"


def _shares_socket(options: Options, target: SshTarget) -> bool:
    """Tell whether ssh reaches this host over one connection for all hosts: a ControlPath without a host's name."""
    if not target.control_path or re.search(_HASH, target.control_path):
        return False
    names = (*_OF_A_HOST, target.host_name, target.name)
    if any(name in options["controlpath"][0] for name in names):
        return False
    return options.get("controlmaster", ("no",))[0] not in ("no", "false") or bool(_live_master(target))


def _only_security_keys(target: SshTarget) -> str:
    """Name a security key where all existing identities are such: their files hold only handles."""
    keys = [path for path in target.identity_files if path.endswith("_sk") and exists(path)]  # noqa: PTH110
    others = (path for path in target.identity_files if not path.endswith("_sk"))
    if not keys or any(exists(path) for path in others):  # noqa: PTH110
        return ""
    return f"{keys[0]} is a security key"


def kerberos_ticket(environ: Mapping[str, str], uid: int) -> bool:
    """Tell whether there is a valid ticket: klist's answer where it exists, else a cache in its usual place."""
    if klist := shutil.which("klist", path=environ.get("PATH")):
        try:
            return child.run([klist, "-s"], 5.0, environ).returncode == 0
        except OSError:
            return False
    cache = environ.get("KRB5CCNAME", f"FILE:/tmp/krb5cc_{uid}")
    kind, colon, path = cache.partition(":")
    if not colon or kind in ("FILE", "DIR"):
        return Path(path if colon else cache).exists()
    return True
