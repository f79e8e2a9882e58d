"""Running a launch line on a host as its user would type it, with a hard end for all that it starts there.

A launcher that hangs leaves children that hold its output: ssh, in sessions of their own. Here all of them live in one
process namespace, which ends as a whole.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from threading import Event

from . import namespaces
from .command import ENVIRONMENT
from .hosts import Lab
from .layers import ROOT, User
from .node import Node

# Bash stays above the line: the first process of a namespace hears no signal that it does not ask for.
TYPED = 'bash -c "$1"; exit $?'


@dataclass(frozen=True)
class Launched:
    """What became of a line. `exit_code` None: it had not ended when its time was over, or when it had said enough."""

    exit_code: int | None
    said: str
    seconds: float


def launched(  # noqa: PLR0913  most have their defaults
    host: Node | Lab,
    line: str,
    *,
    user: User = ROOT,
    limit: float = 30,
    enough: str = "(?!)",
    over: Event | None = None,
) -> Launched:
    """Type a line on a host; wait for its end, for words that this pattern finds, or for the limit in seconds.

    `over`, where lines are typed on several hosts at once: the first that has said enough ends all.
    """
    begun, over = time.monotonic(), over or Event()
    process = subprocess.Popen(
        _on(host, user, ["bash", "-c", TYPED, "-", line]),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        said, whole = _heard(process, begun + limit, enough, over)
        ended = process.wait(5) if whole else None
    finally:
        # unshare is among them, and with it all that it holds.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return Launched(ended, said, time.monotonic() - begun)


def _on(host: Node | Lab, user: User, argv: list[str]) -> list[str]:
    who = ["setpriv", "--reuid", str(user.uid), "--regid", str(user.uid), "--clear-groups"]
    named = [f"HOME={user.home}", f"USER={user.name}", f"LOGNAME={user.name}"]
    clean = ["env", "-i", "-C", user.home, *ENVIRONMENT, *named, *argv]
    together = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", *who, *clean]
    return namespaces.enter(host.pid, together, rooted=isinstance(host, Node))


def _heard(process: subprocess.Popen[bytes], end: float, enough: str, over: Event) -> tuple[str, bool]:
    """Read until the words, the time, or the end of the output; tell whether it was the end."""
    assert process.stdout
    heard, whole = b"", False
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not whole and not over.is_set() and time.monotonic() < end:
            if selector.select(0.1):
                more = os.read(process.stdout.fileno(), 65536)
                heard, whole = heard + more, not more
            if re.search(enough.encode(), heard):
                over.set()
    return heard.decode(errors="replace"), whole
