"""Options of one host, read by us or told by `ssh -G`, to the SshTarget that the transports work from.

Options map a keyword in lower case to its values as they were written: both ways in yield the same form.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from ncheck.ssh.config_needs import needs_openssh
from ncheck.ssh.config_words import LocalUser, UnknownTokenError, expanded, percent_expanded
from ncheck.ssh.target import SshTarget

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


def _text(value: str) -> str:
    return value


def _one_of(*names: str, **aliases: str) -> Callable[[str], str]:
    table = {name: name for name in names} | aliases

    def checked(value: str) -> str:
        if value.lower() not in table:
            raise ValueError(f"{value!r} is none of {', '.join(table)}")
        return table[value.lower()]

    return checked


def _port(value: str) -> str:
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < 65536:  # noqa: PLR2004  16 bits
        raise ValueError(f"{value!r} is no port number")
    return str(int(value))


def _literal(value: str) -> str:
    """Newer releases expand % and ${} in more keywords than older ones do."""
    if "%" in value or "${" in value:
        raise ValueError(f"{value!r} has something to expand")
    return value


# 1m30s
_DURATION = re.compile(r"(\d+)([smhdw]?)", re.IGNORECASE | re.ASCII)


_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def _duration(value: str) -> str:
    parts = _DURATION.findall(value)
    if value.lower() == "none":
        return "none"
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError(f"{value!r} is no time")
    return str(sum(int(number) * _SECONDS[unit.lower()] for number, unit in parts))


def _command(value: str) -> str:
    if not value:
        raise ValueError("no command")
    return value


def _jump(value: str) -> str:
    jump = value.partition("#")[0].rstrip()
    if not jump:
        raise ValueError("ProxyJump without a host")
    return jump


_FLAG = _one_of("yes", "no", true="yes", false="no")


_STRICT = _one_of("yes", "no", "ask", "accept-new", true="yes", false="no", off="no")


_MASTER = _one_of("yes", "no", "ask", "auto", "autoask", true="yes", false="no")


# One value each: the first one stands.
NORMAL: Mapping[str, Callable[[str], str]] = {
    "hostname": _text,
    "port": _port,
    "user": _literal,
    "identitiesonly": _FLAG,
    "identityagent": _text,
    "hostkeyalias": _text,
    "stricthostkeychecking": _STRICT,
    "hashknownhosts": _FLAG,
    "connecttimeout": _duration,
    "addressfamily": _one_of("any", "inet", "inet6"),
    "bindaddress": _text,
    "bindinterface": _text,
    "controlmaster": _MASTER,
    "controlpath": _text,
    "canonicalizehostname": _one_of("yes", "no", "always", true="yes", false="no"),
    "gssapiauthentication": _FLAG,
    "hostbasedauthentication": _FLAG,
    "pubkeyauthentication": _one_of("yes", "no", "unbound", "host-bound", true="yes", false="no"),
    "preferredauthentications": _text,
    "pkcs11provider": _text,
    "revokedhostkeys": _text,
    "verifyhostkeydns": _one_of("yes", "no", "ask", true="yes", false="no"),
    "nohostauthenticationforlocalhost": _FLAG,
}


# The rest of the line, quotes and all, is one value.
COMMANDS: Mapping[str, Callable[[str], str]] = {
    "proxycommand": _command,
    "knownhostscommand": _command,
    "proxyjump": _jump,
}


# Several values on one line: the first line stands.
MANY = frozenset({"userknownhostsfile", "globalknownhostsfile"})


# One value a line: every line adds one.
REPEATED = frozenset({"identityfile", "certificatefile"})


# Known to OpenSSH 8.9 and later and of no weight for which machine is reached and how one logs in there.
_OTHERS = """
addkeystoagent afstokenpassing batchmode canonicaldomains canonicalizefallbacklocal canonicalizemaxdots
canonicalizepermittedcnames casignaturealgorithms challengeresponseauthentication checkhostip cipher ciphers
clearallforwardings compression compressionlevel connectionattempts controlpersist dsaauthentication dynamicforward
enableescapecommandline enablesshkeysign escapechar exitonforwardfailure fallbacktorsh fingerprinthash
forkafterauthentication forwardagent forwardx11 forwardx11timeout forwardx11trusted gatewayports gssapiclientidentity
gssapidelegatecredentials gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey gssapiserveridentity
gssapitrustdns hostbasedacceptedalgorithms hostbasedkeytypes hostkeyalgorithms ipqos kbdinteractiveauthentication
kbdinteractivedevices kerberosauthentication kerberostgtpassing kexalgorithms keepalive localcommand localforward
loglevel logverbose macs numberofpasswordprompts passwordauthentication permitlocalcommand permitremoteopen protocol
proxyusefdpass pubkeyacceptedalgorithms pubkeyacceptedkeytypes rekeylimit remotecommand remoteforward requesttty
requiredrsasize rhostsauthentication rhostsrsaauthentication securitykeyprovider sendenv serveralivecountmax
serveraliveinterval sessiontype setenv skeyauthentication smartcarddevice stdinnull streamlocalbindmask
streamlocalbindunlink syslogfacility tcpkeepalive tisauthentication tunnel tunneldevice updatehostkeys
useblacklistedkeys useprivilegedport useroaming usersh visualhostkey xauthlocation
"""


_STRUCTURE = ("host", "match", "include", "ignoreunknown")


KNOWN = frozenset({*_STRUCTURE, *NORMAL, *COMMANDS, *MANY, *REPEATED, *_OTHERS.split()})
