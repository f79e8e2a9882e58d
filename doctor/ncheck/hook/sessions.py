"""The part of ncheck on a node of a job that is watched: one session after the other, on the same connection.

The first session is the examination before the job, by a child of the rank. When it is over, the child leaves a process
that is nobody's child behind, and ends: what a job starts, waits for and counts is its own. That process serves the
sessions of the watch, until the connection ends, which rank 0's part has. The rank itself may end before: why it did is
what the watch asks then.

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
from ncheck.this_machine.process import Other, ready

READY = b"\nncheck is ready for the next session\n"  # is sent after each session that ended as it should
_LONGEST = 86400.0  # seconds of one session: those of a watch are much shorter, and it begins another one


def serve_sessions(serve: Callable[[], None], parent: int, seconds: float) -> None:
    """Serve the examination, `seconds` at most, and then a watch. `parent` is the rank."""
    rank = Other(parent)
    if os.getppid() != parent or not _session(serve, seconds, rank) or os.fork():
        return
    os.setsid()
    lower_priority()
    rank.close()
    with socket.socket(fileno=os.dup(0)) as connection:
        _notice_a_lost_host(connection)
        while _next(connection) and _session(serve, _LONGEST):
            pass


def _session(serve: Callable[[], None], seconds: float, *ranks: Other) -> bool:
    """Serve one session in a process of its own; return whether it ended as it should, and no rank before it."""
    own, child = os.getpid(), os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == own:
            guarded(serve, seconds)
        os._exit(1)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    session = Other(child)
    while not session.is_over() and not any(rank.is_over() for rank in ranks):
        ready(None, session, *ranks)
    session.close()
    ended = any(rank.is_over() for rank in ranks)
    if ended:
        os.kill(child, signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _, status = os.waitpid(child, 0)
    return status == 0 and not ended


def _next(connection: socket.socket) -> bool:
    """Say that the last session is over, and wait for the next one; False if the connection has ended."""
    with suppress(OSError):
        write_all(READY)
        return bool(connection.recv(1, socket.MSG_PEEK))
    return False


def _notice_a_lost_host(connection: socket.socket) -> None:
    """Let the kernel ask whether rank 0's host is still there: it may be gone without a word."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 20), (socket.TCP_KEEPCNT, 3)):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def lower_priority() -> None:
    """Lower this process's priority: for the CPU, and as the first that the kernel ends where memory is short."""
    with suppress(OSError):
        os.nice(10)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("1000")
