"""Tokens of ssh_config: ~, %h and its kin, ${NAME}."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass


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
    import pwd  # noqa: PLC0415  not on every system that can print the version
    import socket  # noqa: PLC0415  dear

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
    import pwd  # noqa: PLC0415  only ~somebody needs it

    try:
        return pwd.getpwnam(name).pw_dir
    except KeyError:
        raise UnknownTokenError(f"~{name}: no such user") from None
