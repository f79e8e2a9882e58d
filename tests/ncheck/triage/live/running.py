"""Jobs of real processes on this machine, and what their stacks say of them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from ncheck.agent.sources import Sources
from ncheck.decode import decoded
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.job import Job, Process, RankProcess
from ncheck.triage.agent.stacks import answer
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.stacks import STACKS, StacksFacts, stacks
from ncheck.triage.live.stacks import signs

NODE = "here"


class Rank(Protocol):
    """A process and its output."""

    @property
    def pid(self) -> int: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...


@dataclass
class Running:
    """A job: one process per rank. Each says on its output when it is where the test wants it."""

    processes: Sequence[Rank]

    def job(self) -> Job:
        ranks = tuple(
            RankProcess(rank, NODE, _described(one.pid), len(self.processes), children=_children(one.pid))
            for rank, one in enumerate(self.processes)
        )
        return Job("test", ranks, len(ranks))

    def look(self, sources: Sources | None = None, *, native: bool = False) -> tuple[StacksFacts, list[Sign]]:
        """Return what is seen of the job now, and what it means."""
        job = self.job()
        asked = [
            {"pid": one.pid, "started": one.process.started, "children": [child.pid for child in one.children]}
            for one in job.ranks
        ]
        value = answer(sources or Sources(), {"ranks": asked, "native": native}, 20.0)
        assert decoded(value, STACKS.shape)
        found = stacks(Evidence(NODE, Login(reached=True), replies={STACKS.key: Reply(Status.OK, value=value)}))
        assert isinstance(found, StacksFacts), found
        return found, list(signs(job, Cluster.of({NODE: {StacksFacts: found}})))


def _described(pid: int) -> Process:
    return Process(pid, int(_fields(pid)[1]), int(_fields(pid)[19]), _state(pid))


def _children(pid: int) -> tuple[Process, ...]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    return tuple(_described(int(child)) for child in text.split())


@contextmanager
def running(folder: Path, script: str, ranks: int = 2, **variables: str) -> Iterator[Running]:
    """Start a job, wait until each rank has said that it is there, and end it."""
    (folder / "job.py").write_text(script, encoding="utf-8")
    started = [
        subprocess.Popen(
            [sys.executable, "-u", str(folder / "job.py")], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, **environ},
        )
        for environ in environs(ranks, **variables)
    ]  # fmt: skip
    try:
        yield met(started)
    finally:
        for one in started:
            os.killpg(one.pid, signal.SIGKILL)
            one.communicate()


def environs(ranks: int, **variables: str) -> list[dict[str, str]]:
    """Return what a launcher gives each rank."""
    port = _free_port()
    return [
        {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
         "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": "", "OMP_NUM_THREADS": "1", **variables}
        for rank in range(ranks)
    ]  # fmt: skip


def met(started: Sequence[Rank]) -> Running:
    """Wait until each rank has said that it is there."""
    for one in started:
        _wait_for_word(one)
    return Running(started)


def _wait_for_word(process: Rank) -> None:
    assert process.stdout
    assert select.select([process.stdout], [], [], 60)[0], "it does not come"
    assert b"here" in process.stdout.readline()
    _wait_until_quiet(process.pid)


def _wait_until_quiet(pid: int) -> None:
    """Wait until the main thread has stayed asleep for a quarter of a second, or computes."""
    ends, seen = time.monotonic() + 5.0, _seen(pid)
    while time.monotonic() < ends:
        select.select([], [], [], 0.25)
        before, seen = seen, _seen(pid)
        if seen == before or seen[0] == "R":
            return


def _seen(pid: int) -> tuple[str, str, str]:
    """Return the state of the main thread, its CPU time, and how often it slept."""
    fields, status = _fields(pid), Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return fields[0], fields[11], status.rpartition("\nvoluntary_ctxt_switches:")[2].split()[0]


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _state(pid: int) -> str:
    return _fields(pid)[0]


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def clues(found: list[Sign]) -> list[Clue]:
    """Return the clues that accuse."""
    return [one for one in found if isinstance(one, Clue) and one.grade is not Grade.ECHO]


def motions(found: list[Sign]) -> dict[int | None, tuple[bool, bool]]:
    """Return by rank whether it moves, and whether it waits."""
    return {one.rank: (one.moves, one.waits) for one in found if isinstance(one, Motion)}
