"""The syntax of ssh_config: words and quotes, patterns, tokens, and which keywords take which values.

OpenSSH splits keywords and Match criteria by one rule, and values by another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from ncheck.lazy_dataclass import dataclass

SPACE = " \t\r\n"


def strdelim(text: str) -> tuple[str, str | None]:
    """Split off one word at white space or one `=`; quotes hold a word together and vanish (readconf's keywords).

    The rest is None when nothing follows. ValueError for an unclosed quote.
    """
    cut = next((i for i, char in enumerate(text) if char in SPACE or char in '"='), None)
    if cut is None:
        return text, None
    if text[cut] == '"':
        end = text.find('"', cut + 1)
        if end < 0:
            raise ValueError("an unclosed quote")
        return text[:cut] + text[cut + 1 : end], text[end + 1 :].lstrip(SPACE)
    rest = text[cut + 1 :].lstrip(SPACE)
    if text[cut] != "=" and rest.startswith("="):
        rest = rest[1:].lstrip(SPACE)
    return text[:cut], rest


def keyword_and_rest(line: str) -> tuple[str, str]:
    """Split a line into its keyword, in lower case, and what follows; "" for a comment or an empty line.

    White space, one `=` or empty quotes before the keyword are skipped, and a line with an unclosed quote in the
    keyword is ignored, as in OpenSSH.
    """
    try:
        keyword, rest = strdelim(line.rstrip(SPACE + "\f"))
        if not keyword:
            keyword, rest = strdelim(rest or "")
    except ValueError:
        return "", ""
    return ("", "") if keyword.startswith("#") else (keyword.lower(), (rest or "").lstrip(SPACE))


def anchored_include(pattern: str, home: str, folder: str) -> str:
    """Return where an Include leads: an absolute pattern of `*` and `?`. `folder`: where a relative one begins.
    ValueError for what only ssh can follow: its glob(3) knows more than Python's.
    """
    if not pattern or any(part in pattern for part in ("%", "${", "[", "\\")):
        raise ValueError("only ssh can follow this Include")
    if pattern == "~" or pattern.startswith("~/"):
        pattern = home + pattern[1:]
    if pattern.startswith("~"):
        raise ValueError("only ssh can follow an Include in another user's home folder")
    return pattern if pattern.startswith("/") else f"{folder}/{pattern}"


def arguments(text: str) -> tuple[str, ...]:
    """Split a value into its arguments: both quotes, backslash before quote, backslash and space; `#` opens a comment.

    ValueError for an unclosed quote.
    """
    words: list[str] = []
    at = 0
    while True:
        while at < len(text) and text[at] in " \t":
            at += 1
        if at == len(text) or text[at] == "#":
            return tuple(words)
        word, at = _argument(text, at)
        words.append(word)


def _argument(text: str, at: int) -> tuple[str, int]:
    quote, word = "", ""
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text) and text[at + 1] in ("'\"\\" if quote else "'\"\\ "):
            at += 1
            word += text[at]
        elif not quote and char in " \t":
            return word, at
        elif char in "\"'" and quote in ("", char):
            quote = "" if quote else char
        else:
            word += char
        at += 1
    if quote:
        raise ValueError("an unclosed quote")
    return word, at


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    # node??.rack* : `*` and `?` are all that OpenSSH knows
    return re.compile("".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern), re.DOTALL)


def matches(name: str, pattern: str) -> bool:
    """Tell whether one pattern matches the whole name; upper and lower case differ."""
    if "*" in pattern or "?" in pattern:
        return _compiled(pattern).fullmatch(name) is not None
    return name == pattern


def matches_list(name: str, patterns: str) -> bool:
    """Tell whether a comma-separated list matches: one pattern does, and none that is negated by `!`."""
    found = False
    for pattern in patterns.split(","):
        if pattern.startswith("!"):
            if matches(name, pattern[1:]):
                return False
        elif matches(name, pattern):
            found = True
    return found


@dataclass(frozen=True)
class LocalUser:
    """The local user and machine. `home` comes from the user database, as for OpenSSH, not from $HOME."""

    name: str
    uid: int
    home: str
    host_name: str
    environ: Mapping[str, str]


def local_user(environ: Mapping[str, str]) -> LocalUser:
    """Return the user of this process."""
    import pwd
    import socket

    uid = os.getuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a container with a bare number for a user
        return LocalUser(str(uid), uid, environ.get("HOME", "/"), socket.gethostname(), environ)
    return LocalUser(entry.pw_name, uid, entry.pw_dir, socket.gethostname(), environ)


class UnknownTokenError(ValueError):
    """A token that is unknown here, or a variable that is not set."""


# ~/.ssh/keys/%r@%h and ${XDG_RUNTIME_DIR}/agent
_TOKEN = re.compile(r"%(?P<letter>.?)|\$\{(?P<variable>[^{}]*)\}", re.DOTALL)

# gpu-%h.cluster
_PERCENT = re.compile(r"%(.?)", re.DOTALL)


def expanded(text: str, tokens: Mapping[str, str], user: LocalUser) -> str:
    """Expand a path: ~ and ~somebody at its start, %tokens, ${NAME}. UnknownTokenError for what cannot be."""
    if text.startswith("~"):
        name, slash, path = text[1:].partition("/")
        text = _home(name, user) + slash + path

    def replaced(found: re.Match[str]) -> str:
        if found["variable"] is None:
            return _token(found["letter"], tokens)
        if found["variable"] not in user.environ:
            raise UnknownTokenError(f"the variable {found['variable']} is not set")
        return user.environ[found["variable"]]

    return _TOKEN.sub(replaced, text) if "%" in text or "${" in text else text


def percent_expanded(text: str, tokens: Mapping[str, str]) -> str:
    """Expand %tokens alone."""
    return _PERCENT.sub(lambda found: _token(found[1], tokens), text) if "%" in text else text


def _token(letter: str, tokens: Mapping[str, str]) -> str:
    if letter not in tokens:
        raise UnknownTokenError(f"only ssh can expand %{letter}")
    return tokens[letter]


def _home(name: str, user: LocalUser) -> str:
    if not name:
        return user.home
    import pwd

    try:
        return pwd.getpwnam(name).pw_dir
    except KeyError:
        raise UnknownTokenError(f"~{name}: no such user") from None


def _text(value: str) -> str:
    return value


def _one_of(*names: str, **aliases: str) -> Callable[[str], str]:
    table = {name: name for name in names} | aliases

    def checked(value: str) -> str:
        if value.lower() not in table:
            raise ValueError(f"{value!r} is not one of {', '.join(table)}")
        return table[value.lower()]

    return checked


def _port(value: str) -> str:
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < 65536:  # noqa: PLR2004  16 bits
        raise ValueError(f"{value!r} is not a port number")
    return str(int(value))


def _names(value: str) -> str:
    """Patterns may only take names away here; ssh refuses others. In lists of key types, they may be anywhere."""
    if not value.startswith("-") and ("*" in value or "?" in value):
        raise ValueError(f"{value!r} has a pattern where names are wanted")
    return value


def _literal(value: str) -> str:
    """Newer releases expand % and ${} in more keywords than older ones do."""
    if "%" in value or "${" in value:
        raise ValueError(f"{value!r} needs expansion")
    return value


# 1m30s
_DURATION = re.compile(r"(\d+)([smhdw]?)", re.IGNORECASE | re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def _duration(value: str) -> str:
    parts = _DURATION.findall(value)
    if value.lower() == "none":
        return "none"
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError(f"{value!r} is not a time")
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

# One value each: the first one counts.
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
    "ciphers": _names,
    "macs": _names,
    "kexalgorithms": _names,
    "hostkeyalgorithms": _text,
    "pubkeyacceptedalgorithms": _text,
}

# Older names of keywords.
ALIASES = {"pubkeyacceptedkeytypes": "pubkeyacceptedalgorithms"}

# The rest of the line, quotes and all, is one value.
COMMANDS: Mapping[str, Callable[[str], str]] = {
    "proxycommand": _command,
    "knownhostscommand": _command,
    "proxyjump": _jump,
}

# Several values on one line: the first line counts.
MANY = frozenset({"userknownhostsfile", "globalknownhostsfile"})

# One value a line: every line adds one.
REPEATED = frozenset({"identityfile", "certificatefile"})

# Known to OpenSSH 8.9 and later, without effect on which machine is reached and how the login goes.
_OTHERS = """
addkeystoagent afstokenpassing batchmode canonicaldomains canonicalizefallbacklocal canonicalizemaxdots
canonicalizepermittedcnames casignaturealgorithms challengeresponseauthentication checkhostip cipher
clearallforwardings compression compressionlevel connectionattempts controlpersist dsaauthentication dynamicforward
enableescapecommandline enablesshkeysign escapechar exitonforwardfailure fallbacktorsh fingerprinthash
forkafterauthentication forwardagent forwardx11 forwardx11timeout forwardx11trusted gatewayports gssapiclientidentity
gssapidelegatecredentials gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey gssapiserveridentity
gssapitrustdns hostbasedacceptedalgorithms hostbasedkeytypes ipqos kbdinteractiveauthentication kbdinteractivedevices
kerberosauthentication kerberostgtpassing keepalive localcommand localforward loglevel logverbose
numberofpasswordprompts passwordauthentication permitlocalcommand permitremoteopen protocol proxyusefdpass rekeylimit
remotecommand remoteforward requesttty requiredrsasize rhostsauthentication rhostsrsaauthentication
securitykeyprovider sendenv serveralivecountmax serveraliveinterval sessiontype setenv skeyauthentication
smartcarddevice stdinnull streamlocalbindmask streamlocalbindunlink syslogfacility tcpkeepalive tisauthentication
tunnel tunneldevice updatehostkeys useblacklistedkeys useprivilegedport useroaming usersh visualhostkey xauthlocation
"""

_STRUCTURE = ("host", "match", "include", "ignoreunknown")
KNOWN = frozenset({*_STRUCTURE, *NORMAL, *COMMANDS, *MANY, *REPEATED, *_OTHERS.split()})
