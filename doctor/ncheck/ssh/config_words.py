"""The words of an ssh_config line: OpenSSH splits keywords and Match criteria one way, and values another."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

SPACE = " \t\r\n"


def strdelim(text: str) -> tuple[str, str | None]:
    """Split off one word at white space or one `=`; quotes hold a word together and vanish (readconf's keywords).

    The rest is None when nothing follows. ValueError for a quote that never ends.
    """
    cut = next((i for i, char in enumerate(text) if char in SPACE or char in '"='), None)
    if cut is None:
        return text, None
    if text[cut] == '"':
        end = text.find('"', cut + 1)
        if end < 0:
            raise ValueError("a quote that never ends")
        return text[:cut] + text[cut + 1 : end], text[end + 1 :].lstrip(SPACE)
    rest = text[cut + 1 :].lstrip(SPACE)
    if text[cut] != "=" and rest.startswith("="):
        rest = rest[1:].lstrip(SPACE)
    return text[:cut], rest


def arguments(text: str) -> tuple[str, ...]:
    """Split a value into its arguments: both quotes, backslash before quote, backslash and space; `#` opens a comment.

    ValueError for a quote that never ends.
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
        raise ValueError("a quote that never ends")
    return word, at


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    # node??.rack* : `*` and `?` are all that OpenSSH knows
    return re.compile("".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern), re.DOTALL)


def matches(name: str, pattern: str) -> bool:
    """Tell whether one pattern fits the whole name, upper and lower case told apart."""
    if "*" in pattern or "?" in pattern:
        return _compiled(pattern).fullmatch(name) is not None
    return name == pattern


def matches_list(name: str, patterns: str) -> bool:
    """Tell whether a comma-separated list fits: one pattern does, and none that is negated by `!`."""
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
    """Who runs ncheck, on which machine. `home` is the one of the user database, as for OpenSSH, not $HOME."""

    name: str
    uid: int
    home: str
    host_name: str
    environ: Mapping[str, str]


def local_user(environ: Mapping[str, str]) -> LocalUser:
    """Ask the system who runs this."""
    import pwd
    import socket

    uid = os.getuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a container with a bare number for a user
        return LocalUser(str(uid), uid, environ.get("HOME", "/"), socket.gethostname(), environ)
    return LocalUser(entry.pw_name, uid, entry.pw_dir, socket.gethostname(), environ)


class UnknownTokenError(ValueError):
    """A token that OpenSSH knows and we do not, or nobody does, or a variable that is not set."""


# ~/.ssh/keys/%r@%h and ${XDG_RUNTIME_DIR}/agent
_TOKEN = re.compile(r"%(?P<letter>.?)|\$\{(?P<variable>[^}]*)\}", re.DOTALL)


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
        raise UnknownTokenError(f"%{letter} is for ssh to expand")
    return tokens[letter]


def _home(name: str, user: LocalUser) -> str:
    if not name:
        return user.home
    import pwd

    try:
        return pwd.getpwnam(name).pw_dir
    except KeyError:
        raise UnknownTokenError(f"~{name}: no such user") from None
