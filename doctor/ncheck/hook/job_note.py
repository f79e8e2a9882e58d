"""The note of a job that was started with the hook: how it ended, and what its links counted meanwhile.

Only its parent learns how a process ended, and the hook is no parent of a rank. /proc shows it until the parent has
asked; newer kernels also afterwards, to a process that has it open. Where neither shows it, there is no note: a job of
which nobody knows how it ended says nothing of a link.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.agent import proc
from ncheck.errors import NcheckError
from ncheck.lazy_dataclass import dataclass
from ncheck.rank_variables import read_rank
from ncheck.this_machine.process import Other
from ncheck.version import __version__

if TYPE_CHECKING:
    from ncheck.history.entry import Kept
    from ncheck.hook.engine import RanksEngine
    from ncheck.model.node import Node
    from ncheck.settings import Settings

_SECONDS = 20.0  # for the counters of all nodes
_INTERRUPTED, _ENDED = 128 + signal.SIGINT, 128 + signal.SIGTERM


@dataclass(frozen=True)
class JobEnded:
    """How a job ended: its exit code as a shell has it, and the rank that failed first; None: not known."""

    code: int
    rank: int | None = None


class RankEnds:
    """The ranks of this node, and how those ended that have."""

    def __init__(self, pids: Mapping[int, int]) -> None:
        self.running = {rank: Other(pid) for rank, pid in pids.items() if _is_rank(pid, rank)}
        self.codes: dict[int, int | None] = {}  # in the order in which they ended; None where nobody knows

    def look(self) -> None:
        """Read how the ranks ended that have."""
        for rank, other in list(self.running.items()):
            if other.is_over():
                self.codes[rank] = exit_code(other)
                other.close()
                del self.running[rank]

    @property
    def job(self) -> JobEnded | None:
        """How the job ended; None where that is not known, or somebody interrupted it."""
        known = {rank: code for rank, code in self.codes.items() if code is not None}
        first = next((rank for rank, code in known.items() if code), None)
        if not known or _INTERRUPTED in known.values():
            return None
        if first is None or known[first] == _ENDED:  # who is ended from outside did not fail first
            return JobEnded(0 if first is None else _ENDED)
        return JobEnded(known[first], first)


def _is_rank(pid: int, rank: int) -> bool:
    """Whether a process is this rank: in another namespace of processes its number may be that of any other."""
    with suppress(NcheckError):
        return read_rank(proc.environment(pid) or {}).rank == rank
    return False


def exit_code(other: Other) -> int | None:
    """Return the exit code of a process that has ended, as a shell has it: 137 for SIGKILL; None where it is lost."""
    now, status = proc.stat(other.pid), None
    if now is not None and now.ended and now.started == other.started:
        status = now.exit_code
    elif other.number >= 0:
        status = _status_of(other.number)
    if status is None:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


# struct pidfd_info of linux/pidfd.h: mask, cgroupid, 11 numbers of 32 bits, exit_code
_INFO = struct.Struct("=QQ11Ii")
_GET_INFO = 3 << 30 | _INFO.size << 16 | 0xFF << 8 | 11  # PIDFD_GET_INFO, since Linux 6.13
_EXIT = 1 << 3  # PIDFD_INFO_EXIT, since Linux 6.15


def _status_of(number: int) -> int | None:
    """Return the status of a process that has ended and that its parent has asked about."""
    with suppress(OSError):
        mask, *_, status = _INFO.unpack(fcntl.ioctl(number, _GET_INFO, _INFO.pack(_EXIT, *[0] * 13)))
        return int(status) if mask & _EXIT else None
    return None


class JobNote:
    """What the links have counted before the job, to be compared with what they have after it."""

    def __init__(self, settings: Settings, nodes: tuple[Node, ...], engine: RanksEngine, path: str) -> None:
        """Look at the counters now. Raises HistoryError where the file cannot be used."""
        from ncheck.history.store import History

        self.settings = replace(settings, deadline=_SECONDS, connect_timeout=_SECONDS)
        self.history, self.nodes, self.engine = History(path), nodes, engine
        self.history.prepare()
        self.began = time.time()
        self.before = self._look()

    def ended(self, job: JobEnded, node: str) -> None:
        """Add the note of a job that has ended on this node. Raises HistoryError."""
        from ncheck.history.entry import Entry, Figure
        from ncheck.history.jobs import FAILED_FIRST, job_of
        from ncheck.history.store import Span

        after = Entry(time.time(), "check", socket.gethostname(), __version__, kept=self._look())
        note = job_of(after, [Span(one, 0.0, 0.0) for one in self.before], job.code)
        if note is None:
            return
        if job.rank is not None:
            first = Figure((node,), f"rank {job.rank}", FAILED_FIRST, float(job.code), "exit code")
            note = replace(note, figures=(*note.figures, first))
        self.history.add(note, self.settings.keep_days, live=True, began=self.began)

    def _look(self) -> tuple[Kept, ...]:
        """Return what the links and GPUs of the nodes that answer have counted."""
        from ncheck.asking import Asking
        from ncheck.facts.error_counters import ErrorCountersFacts
        from ncheck.facts.gpu_health import GpuHealthFacts
        from ncheck.fleet.fleet import Fleet
        from ncheck.history.entry import Kept, counters_of
        from ncheck.model.cluster import Cluster
        from ncheck.observer import Silent
        from ncheck.steps.phases import collection_phases, with_needs
        from ncheck.system import hardware_of

        cluster, wanted = Cluster(self.nodes, {}), with_needs((ErrorCountersFacts, GpuHealthFacts))
        with Fleet(self.nodes, self.settings, lambda _: self.engine, Silent()) as fleet:
            first, *_ = collection_phases(cluster, wanted, self.settings)
            known = Asking(fleet, cluster, wanted).ask(first).cluster.known
        hardware = hardware_of(known)
        boots = (Kept(one.node, "boot", "", one.boot_id) for one in hardware)
        return (*boots, *counters_of(hardware, known))
