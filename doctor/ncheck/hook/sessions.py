"""The part of ncheck on a node of a job that is watched: one session after the other, on the same connection.

The first session is the examination before the job, by a child of the rank. When it is over, the child leaves a process
that is nobody's child behind, and ends: what a job starts, waits for and counts is its own. That process serves the
sessions of the watch, until the rank or the connection ends.

Each session has a process of its own, so that nothing of an old one can write into a new one.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

from ncheck.agent.guard import PR_SET_PDEATHSIG, guarded, prctl
from ncheck.agent.main import write_all
from ncheck.process import Other, ready

READY = b"\nncheck is ready for the next session\n"  # is sent after each session that ended as it should
_LONGEST = 86400.0  # seconds of one session: those of a watch are much shorter, and it begins another one


def serve_sessions(serve: Callable[[], None], parent: int, seconds: float) -> None:
    """Serve the examination, `seconds` at most, and then a watch. `parent` is the rank."""
    rank = Other(parent)
    if os.getppid() != parent or not _session(serve, rank, seconds) or os.fork():
        return
    os.setsid()
    stand_back()
    while _next(rank) and _session(serve, rank, _LONGEST):
        pass


def _session(serve: Callable[[], None], rank: Other, seconds: float) -> bool:
    """Serve one session in a process of its own; return whether it ended as it should, and the rank goes on."""
    own, child = os.getpid(), os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == own:
            guarded(serve, seconds)
        os._exit(1)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    session = Other(child)
    while not session.is_over() and not rank.is_over():
        ready(None, session, rank)
    session.close()
    if rank.is_over():
        os.kill(child, signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _, status = os.waitpid(child, 0)
    return status == 0 and not rank.is_over()


def _next(rank: Other) -> bool:
    """Say that the last session is over, and wait for the next one; False if the connection or the rank has ended."""
    with suppress(OSError), socket.socket(fileno=os.dup(0)) as connection:
        write_all(READY)
        while not rank.is_over():
            if ready(0, rank):
                return bool(connection.recv(1, socket.MSG_PEEK))
    return False


def stand_back() -> None:
    """Let the job come first: with the CPU, and with memory where the kernel must end a process for want of it."""
    with suppress(OSError):
        os.nice(10)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("1000")
