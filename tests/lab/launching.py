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
from dataclasses import dataclass, field
from threading import Event

from . import namespaces
from .command import ENVIRONMENT
from .hosts import Lab
from .layers import ROOT, User
from .node import Node

# All hosts share this machine's cores: a rank that waits lets others work.
PATIENT = "OMPI_MCA_mpi_yield_when_idle=1"

# Bash stays above the line: the first process of a namespace hears no signal that it does not ask for.
TYPED = 'bash -c "$1"; exit $?'


@dataclass(frozen=True)
class Launched:
    """What became of a line. `exit_code` None: it had not ended when its time was over, or when it had said enough."""

    exit_code: int | None
    said: str
    seconds: float


@dataclass(frozen=True)
class Watch:
    """How long a line is watched, in seconds: to its end, to `limit`, or to `then` after words that `enough` finds.

    `over`, where lines are typed on several hosts at once: the first that has said enough ends all.
    """

    limit: float = 120
    enough: str = "(?!)"
    then: float = 0
    over: Event = field(default_factory=Event)


def launched(host: Node | Lab, line: str, watch: Watch | None = None, *, user: User = ROOT) -> Launched:
    """Type a line on a host, and tell what became of it."""
    begun = time.monotonic()
    process = subprocess.Popen(
        _on(host, user, ["bash", "-c", TYPED, "-", line]),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        said, whole = _heard(process, watch or Watch())
        ended = process.wait(60) if whole else None
    finally:
        # unshare is among them, and with it all that it holds.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return Launched(ended, said, time.monotonic() - begun)


def _on(host: Node | Lab, user: User, argv: list[str]) -> list[str]:
    who = ["setpriv", "--reuid", str(user.uid), "--regid", str(user.uid), "--clear-groups"]
    named = [f"HOME={user.home}", f"USER={user.name}", f"LOGNAME={user.name}"]
    clean = ["env", "-i", "-C", user.home, *ENVIRONMENT, *named, PATIENT, *argv]
    together = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", *who, *clean]
    return namespaces.enter(host.pid, together, rooted=isinstance(host, Node))


def _heard(process: subprocess.Popen[bytes], watch: Watch) -> tuple[str, bool]:
    """Read as long as is watched, or to the end of the output; tell whether it was the end."""
    assert process.stdout
    heard, whole, end, enough = b"", False, time.monotonic() + watch.limit, False
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not whole and not watch.over.is_set() and time.monotonic() < end:
            if selector.select(0.1):
                more = os.read(process.stdout.fileno(), 65536)
                heard, whole = heard + more, not more
            if not enough and re.search(watch.enough.encode(), heard):
                enough, end = True, time.monotonic() + watch.then
    if enough:
        watch.over.set()
    return heard.decode(errors="replace"), whole
