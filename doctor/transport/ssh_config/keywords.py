"""The keywords of ssh_config: which there are, which of them matter here, and what values they take.

The rules are those of OpenSSH's readconf.c. A value in another form than these is no error of ours to name: `ssh -G`
is asked and says it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping


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
