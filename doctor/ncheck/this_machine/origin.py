"""Where a report comes from: when the run began, on which machine, by which user, with which command line."""

from __future__ import annotations

import os
import pwd
import shlex
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from ncheck.lazy_dataclass import dataclass
from ncheck.redact import REDACTED, redact, secret_name


@dataclass(frozen=True)
class Origin:
    """`time` is local time with its offset from UTC ("2026-11-22T13:04:05+01:00"); `command` has no secrets."""

    time: str
    host: str
    user: str
    command: str


def read_origin(argv: Sequence[str]) -> Origin:
    """Return the origin of a report that this process makes now."""
    time = datetime.now().astimezone().isoformat(timespec="seconds")
    return Origin(time, socket.gethostname(), user_name(os.geteuid()), command_line(argv))


def time_of(origin: Origin) -> float:
    """Return when the run began, in seconds since 1970."""
    return datetime.fromisoformat(origin.time).timestamp()


def command_line(argv: Sequence[str]) -> str:
    """Return the command as it can be typed again, without secrets; the program without its folder."""
    path = Path(argv[0] if argv else "")
    words = [*_MODULES.get(path.parts[-2:], (path.name or "python",)), *argv[1:]]
    words = [f"{_WEBHOOK}={REDACTED}" if word.startswith(f"{_WEBHOOK}=") else word for word in words]
    # Each word before it is quoted: a secret may have spaces. Then all together: what follows an option.
    hidden = [
        REDACTED if _is_secret(before) else redact(word) for before, word in zip(["", *words[:-1]], words, strict=True)
    ]
    return redact(shlex.join(hidden))


_MODULES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("ncheck", "__main__.py"): ("ncheck",), ("hook", "__main__.py"): ("python", "-m", "ncheck.hook"),
}  # fmt: skip


def _is_secret(option: str) -> bool:
    return option == _WEBHOOK or (option.startswith("-") and "=" not in option and secret_name(option))


_WEBHOOK = "--notify"  # whoever has the URL can post to the chat


def user_name(number: int) -> str:
    """Return the name of a user; the number as text if there is none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container without an entry for this user
        return str(number)
