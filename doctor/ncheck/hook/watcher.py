"""What watches a job from inside, by the parts of ncheck on its nodes. The examiner starts it, and ends.

So it is nobody's child: what the job starts, waits for and counts is its own. It begins when rank 0 goes on after the
verdict, and ends with rank 0.

It is two processes. The first has rank 0's standard error, and does nothing that could keep it: it hands on what the
second one writes, which asks the nodes and saves files, and which a file system that hangs may hold up for ever. The
first also sees how the ranks of its node end, and sends that to the second one, for the note in the history.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ncheck.agent.guard import PR_SET_PDEATHSIG, prctl
from ncheck.hook.job_note import RankEnds
from ncheck.hook.meeting.connection import is_other
from ncheck.hook.sessions import lower_priority
from ncheck.this_machine.process import Other, ready

if TYPE_CHECKING:
    from ncheck.hook.engine import RanksEngine
    from ncheck.hook.places import Places
    from ncheck.model.node import Node
    from ncheck.settings import Settings
    from ncheck.triage.watch import Alarm

MOST_SAVED = 5  # archives of one job
_NAMES = 64  # that another user would have to take
_AT_ONCE = 4096  # bytes of one write: a pipe takes so many whole, or none
_OTHERS = 2.0  # seconds in which the other ranks of a node end after rank 0
_LONGEST = 400  # characters of a note


def start_watcher(
    rank: int, request: Mapping[str, Any], places: Places, engine: RanksEngine, control: socket.socket
) -> None:
    """Start the watcher: a Python of its own, which has nothing left of the examination. Called by the examiner.

    `rank` is the pid of rank 0, which sends a byte over `control` if the job goes on.
    """
    from ncheck.hook.children import start_child

    sockets = {name: one.fileno() for name, one in engine.sockets.items()}
    watch = {
        "pid": rank,
        "started": Other(rank).started,
        "node": (node := next(name for name, facts in places.ranks.items() if 0 in facts.came)),
        "ranks": list(zip(places.ranks[node].came, places.ranks[node].pids, strict=True)),
        "nodes": [[node.name, list(node.places)] for node in places.nodes],
        "sockets": sockets,
        "used": sorted(engine.used),
        "why": engine.why,
        "control": control.fileno(),
        **request["watch"],
    }
    if os.getppid() != rank:
        return
    text = json.dumps(watch).encode()
    read_end, write_end = os.pipe()
    with suppress(OSError):  # a pipe that takes it whole: nobody has to wait for the watcher to read
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, max(len(text), _AT_ONCE))
    start_child(
        "ncheck.hook.watcher", "main()", (), stdin=read_end, stdout=os.open(os.devnull, os.O_RDWR),
        stderr=request["stderr"], pass_fds=[*sockets.values(), control.fileno()],
    )  # fmt: skip
    with os.fdopen(write_end, "wb") as file:
        file.write(text)


def main() -> None:
    """Wait until rank 0 goes on, and watch the job until rank 0 or the watch ends."""
    with os.fdopen(0, "rb") as file:
        text = file.read()
    if not text.endswith(b"}"):  # the examiner was ended as it wrote
        return
    request = json.loads(text)
    os.open(os.devnull, os.O_RDWR)  # gets that number
    rank = Other(request["pid"])
    with socket.socket(fileno=request["control"]) as control:
        goes_on = control.recv(1)
    with socket.socket(socket.AF_UNIX) as only:
        if not goes_on or rank.started != request["started"] or not is_first(only, rank):
            return
        own, (pipe, write_end), (outcome, outcome_end) = os.getpid(), os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            only.close()
            os.close(pipe)
            os.close(outcome_end)
            os.dup2(write_end, 2)
            os.close(write_end)
            lower_priority()
            prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() == own:
                _stay(request, outcome)
            os._exit(0)
        for number in (write_end, outcome, *request["sockets"].values()):
            os.close(number)
        ends = RankEnds(dict(request["ranks"]) if request["history"] else {})
        _hand_on(pipe, rank, ends)
        if ends.codes and rank.is_over():
            os.dup2(0, 2)  # rank 0's standard error is free, however long the last ranks take
            _say_how(outcome_end, ends)
        _end(child, rank)
        os._exit(0)  # at once: it has rank 0's standard error


def is_first(only: socket.socket, rank: Other) -> bool:
    """Whether nobody watches this job yet: python -m ncheck.hook may run a script that calls preflight itself.

    The first one listens at a name. Any user of this machine can take a name, so one that another user has does not
    count: the next is tried.
    """
    for turn in range(_NAMES):
        name = f"\0ncheck-watch-{rank.pid}-{rank.started}-{turn}"
        try:
            only.bind(name)
            only.listen()
        except OSError:
            if _is_own(name):
                return False
        else:
            return True
    _written(f"ncheck: the job is not watched: another user has taken the names of its watch ({name[1:]})\n".encode())
    return False


def _is_own(name: str) -> bool:
    """Whether a process of this user, or of root, listens at a name."""
    with socket.socket(socket.AF_UNIX) as sock, suppress(OSError):
        sock.setblocking(False)  # noqa: FBT003
        sock.connect(name)
        _, user, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return not is_other(user)
    return False


def _hand_on(pipe: int, rank: Other, ends: RankEnds) -> None:
    """Write what comes to standard error, until rank 0 or the other process has ended. A reader may be slow or gone."""
    text = b""
    while True:
        ends.look()
        if rank.is_over():
            return
        if text:
            if ready(2, rank, *ends.running.values(), event=select.POLLOUT):
                text = _written(text)
        elif ready(pipe, rank, *ends.running.values()):
            text = os.read(pipe, _AT_ONCE)
            if not text:
                return


def _say_how(outcome_end: int, ends: RankEnds) -> None:
    """Send the other process how the job ended. The other ranks of this node may end a moment later than rank 0."""
    until = time.monotonic() + _OTHERS
    while ends.running and time.monotonic() < until:
        time.sleep(0.02)
        ends.look()
    if job := ends.job:
        with suppress(OSError):
            os.write(outcome_end, json.dumps([job.code, job.rank]).encode())


def _written(text: bytes) -> bytes:
    """Write, and return what is left; nothing where nobody reads it."""
    try:
        return text[os.write(2, text) :]
    except OSError:
        return b""


def _end(child: int, rank: Other) -> None:
    """End the other process; say so if it ended by itself and not as it should."""
    with suppress(OSError):
        os.kill(child, signal.SIGTERM)
    if not rank.is_over():
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGTERM:
            _written(f"ncheck: the job is no longer watched: signal {os.WTERMSIG(status)} ended that\n".encode())


# The process that watches


def _stay(request: Mapping[str, Any], outcome: int) -> None:
    """Watch the job and note its end, as far as wanted, until it or the other process ends, or ncheck fails."""
    from ncheck.hook.engine import RanksEngine
    from ncheck.hook.job_note import JobEnded, JobNote
    from ncheck.model.node import Node

    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    sockets = {name: socket.socket(fileno=number) for name, number in request["sockets"].items()}
    engine = RanksEngine(sockets, request["why"], kept=True, used=request["used"])
    nodes = tuple(Node(name, places=tuple(places)) for name, places in request["nodes"])
    note = None
    try:
        settings = _settings(request)
        if request["history"]:
            with _said("how the job ends is not noted"):
                note = JobNote(settings, nodes, engine, request["history"])
                _say(f"the end of the job will be noted in {request['history']}")
        if request["alarms"]:
            with _said("the job is no longer watched"):
                _watch(request, settings, nodes, engine)
    except SystemExit:
        pass
    if note is None:
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the outcome comes before it
    with os.fdopen(outcome, "rb") as file:
        text = file.read()
    if text:
        with _said("how the job ended is not noted"):
            note.ended(JobEnded(*json.loads(text)), request["node"])


@contextmanager
def _said(undone: str) -> Iterator[None]:
    """Say what is not done because something failed: whatever it is, it is not the job's."""
    from ncheck.errors import NcheckError

    try:
        yield
    except NcheckError as error:
        _say(f"{undone}: {error}")
    except Exception as error:  # noqa: BLE001
        _say(f"{undone}: {type(error).__name__}: {error}")
        if os.environ.get("NCHECK_DEBUG"):
            import traceback

            traceback.print_exc()


def _watch(request: Mapping[str, Any], settings: Settings, nodes: tuple[Node, ...], engine: RanksEngine) -> None:
    from ncheck.observer import Silent
    from ncheck.triage.watch import STALLED, WatchNote, watch

    stalled, saved = request["stalled"] or STALLED, 0
    with closing(watch(settings, nodes, lambda: lambda _: engine, Silent(), stalled)) as events:
        for event in events:
            if isinstance(event, WatchNote):
                _say(event.text)
                continue
            _show(event)
            saved += _saved(event, request["folder"], saved)


def _settings(request: Mapping[str, Any]) -> Settings:
    from dataclasses import replace
    from pathlib import Path

    from ncheck.api import TRIAGE_DEADLINE
    from ncheck.model.job import Target
    from ncheck.settings import make_settings

    made = make_settings({"config": "none"}, {}, Path("/"))
    return replace(
        made,
        hosts=",".join(name for name, _ in request["nodes"]),
        deadline=TRIAGE_DEADLINE,
        run=replace(made.run, target=Target(pid=request["pid"], node=request["node"])),
    )


def _show(alarm: Alarm) -> None:
    from ncheck.text import clock
    from ncheck.triage.report import print_triage

    text = io.StringIO()
    print_triage(alarm.report, text, os.environ)
    _say(f"{alarm.text} (since {clock(alarm.since)})", text.getvalue())


def _saved(alarm: Alarm, folder: str, before: int) -> bool:
    """Save the evidence in the job's folder, and say where, or why not."""
    from ncheck.errors import NcheckError
    from ncheck.fleet.archive import save_archive

    if before == MOST_SAVED or not folder:
        why = f"{MOST_SAVED} archives of this job are in {folder}" if folder else "the job's folder is gone"
        _say(f"the evidence is not saved: {why}")
        return False
    path = f"{folder}/{time.strftime('ncheck-stall-%Y%m%d-%H%M%S.zip')}"
    try:
        save_archive(path, alarm.evidence, alarm.job)
    except NcheckError as error:
        _say(f"the evidence could not be saved: {str(error).removeprefix('--save: ')}")
        return False
    _say(f"saved: ncheck triage {path}")
    return True


def _say(words: str, more: str = "") -> None:
    from ncheck.text import clock, printable

    line = f"ncheck: {clock(time.time())} {printable(words, _LONGEST)}\n{more}"
    with suppress(OSError):
        data = line.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(2, data) :]
