"""NCCL Inspector's files among the logs: which rank or node enters its collectives last, and lets the others wait.

The plug-in is part of NCCL since 2.28 (plugins/profiler/inspector; before 2.29 ext-profiler/inspector). Each process
writes one object per line. Until v4.2 of the format each record has `header` and `metadata`; since v4.3 the records
that follow a `dump_stats` marker are those of its communicator.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import cached_property
from typing import Annotated

from ncheck.decode import OPTIONAL, MisfitError, NodeName, Within, decoded
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.last_comers import FEWEST, LastComer, last_comer
from ncheck.triage.lines import LogLine
from ncheck.triage.sources import UnreadableError

_TAIL = 2**20  # bytes of a file that are read as records: the last ones
_LONGEST = 2**16  # bytes of a record: it has up to 64 channels, if verbose
_MOST = 10**6  # records of all files
_LAST = 256  # calls of a communicator that are compared
_MARK = b'"inspector_output_format_version"'  # in the first record of each version
_ALIKE = ("AllReduce", "AllGather", "ReduceScatter")  # where no rank is the root, and all leave at the same time
_MOST_NAMED = 8

Number = Annotated[int, Within(0, 2**53)]


@dataclass(frozen=True)
class _Header:
    id: str
    rank: Annotated[int, Within(0, 10**6)]
    n_ranks: Annotated[int, Within(1, 10**6)]


@dataclass(frozen=True)
class _Metadata:
    hostname: NodeName
    pid: Number


@dataclass(frozen=True)
class _Call:
    coll: str
    coll_sn: Number
    coll_exec_time_us: Annotated[float, Within(0)]
    coll_timing_source: Annotated[str, OPTIONAL] = "kernel_gpu"


@dataclass(frozen=True)
class _Record:
    header: Annotated[_Header | None, OPTIONAL] = None
    metadata: Annotated[_Metadata | None, OPTIONAL] = None
    coll_perf: Annotated[_Call | None, OPTIONAL] = None


@dataclass(frozen=True)
class _Rank:
    """A rank of one communicator. A process has, as a rule, one in each of its communicators, with other numbers."""

    host: str
    pid: int
    number: int

    @property
    def process(self) -> tuple[str, int]:
        return self.host, self.pid


@dataclass
class _Comm:
    """One communicator: how long each of its ranks was in each call, by operation and sequence number."""

    ranks: int = 0
    calls: dict[tuple[str, int], dict[_Rank, float]] = field(default_factory=dict)

    @cached_property
    def processes(self) -> set[tuple[str, int]]:
        """Those of its ranks that are known."""
        return {rank.process for call in self.calls.values() for rank in call}

    @cached_property
    def compared(self) -> list[dict[_Rank, float]]:
        """The last calls of which at least half of the ranks are known, and two; each once: two runs may be in one."""
        known = [call for call in self.calls.values() if len(call) > 1 and 2 * len(call) >= self.ranks]
        return [call for call in known if len({rank.number for rank in call}) == len(call)][-_LAST:]


def is_inspector(start: bytes) -> bool:
    """Return whether a file that starts so is one of NCCL Inspector's."""
    return start.lstrip().startswith(b"{") and _MARK in start[:_LONGEST]


class InspectorFiles:
    """Reads the files one after another. What they say together is in `clues` and `note`, once all are read."""

    def __init__(self) -> None:
        self.files = 0
        self.lines = 0
        self._records = 0
        self._comms: dict[str, _Comm] = defaultdict(_Comm)
        self._in_job: dict[tuple[str, int], tuple[int, set[int]]] = {}  # its largest communicator: size, own ranks
        self._names: dict[_Rank, str] = {}  # of files

    def read(self, name: str, chunks: Iterable[bytes]) -> None:
        """Read one file: its last records. Raises UnreadableError where there are too many of all files."""
        self.files += 1
        tail, cut = bytearray(), False
        for chunk in chunks:
            self.lines += chunk.count(b"\n")
            tail += chunk
            if len(tail) > 2 * _TAIL:
                del tail[:-_TAIL]
                cut = True
        header, metadata = None, None
        for line in bytes(tail).split(b"\n")[cut:]:
            record = _record(line)
            if record is None:
                if line:
                    header = metadata = None  # it may have been a marker: whose the next records are is not known
                continue
            header, metadata = record.header or header, record.metadata or metadata
            if header and metadata and record.coll_perf:
                self._take(name, header, metadata, record.coll_perf)

    def _take(self, name: str, header: _Header, metadata: _Metadata, call: _Call) -> None:
        timed = call.coll_timing_source == "kernel_gpu" and call.coll_exec_time_us
        if call.coll not in _ALIKE or not timed or header.rank >= header.n_ranks:
            return
        self._records += 1
        if self._records > _MOST:
            raise UnreadableError(f"more than {_MOST:,} records of NCCL Inspector: the others were not read")
        rank = _Rank(metadata.hostname, metadata.pid, header.rank)
        comm = self._comms[header.id]
        comm.ranks = max(comm.ranks, header.n_ranks)
        comm.calls.setdefault((call.coll, call.coll_sn), {})[rank] = call.coll_exec_time_us
        self._names.setdefault(rank, name)
        if header.n_ranks > self._in_job.get(rank.process, (0, set()))[0]:
            self._in_job[rank.process] = header.n_ranks, set()
        if header.n_ranks == self._in_job[rank.process][0]:
            self._in_job[rank.process][1].add(header.rank)

    @cached_property
    def clues(self) -> tuple[Clue, ...]:
        """Who keeps the others waiting."""
        return tuple(self._late())

    def _late(self) -> Iterator[Clue]:
        """Yield who keeps the others waiting: a rank, or else a node. Who waits for another of them does not."""
        late: dict[str, tuple[LastComer, _Comm, tuple[_Rank, ...]]] = {}
        for id_, comm in self._comms.items():
            found = last_comer(comm.compared, _one) or last_comer(comm.compared, lambda rank: rank.host)
            if found:
                ranks = {rank for call in comm.compared for rank in call if found.name in (rank.host, _one(rank))}
                late[id_] = found, comm, tuple(sorted(ranks, key=lambda rank: rank.number))
        shown: set[frozenset[tuple[str, int]]] = set()
        for id_, (found, comm, who) in late.items():
            own = frozenset(rank.process for rank in who)
            others = ((other, {rank.process for rank in theirs}) for _, other, theirs in late.values())
            waits = any(own & other.processes and not own & theirs and not theirs & comm.processes
                        for other, theirs in others)  # fmt: skip
            if not waits and own not in shown and len(shown) < _MOST_NAMED:
                shown.add(own)
                yield self._clue(id_, found, comm, who)

    def note(self) -> str:
        """Return what was compared; "" if no file was read."""
        if not self.files:
            return ""
        compared = [len(comm.compared) for comm in self._comms.values()]
        enough = [calls for calls in compared if calls >= FEWEST]
        if not enough:
            most = max(compared, default=0)
            return (
                f"NCCL Inspector: too few calls to say who comes last: {FEWEST} of one communicator are needed, with"
                f" the times of at least half of its ranks, and {most} are there"
            )
        answer = "" if self.clues else ", and no rank or node comes last in most of them"
        return f"NCCL Inspector: {sum(enough)} calls were compared{answer}"

    @property
    def answers(self) -> bool:
        """Whether there were enough calls: they were completed, so the job made progress."""
        return any(len(comm.compared) >= FEWEST for comm in self._comms.values())

    def _clue(self, id_: str, found: LastComer, comm: _Comm, who: tuple[_Rank, ...]) -> Clue:
        ranks = tuple(self._number(rank) for rank in who)
        name = f"rank {ranks[0]} on {who[0].host}" if len(who) == 1 else who[0].host
        text = (
            f"{name} came last in {found.last} of {found.calls} calls of communicator {printable(id_, 20)}"
            f" ({comm.ranks} ranks): the others waited {found.waited / 1000:.3g} ms of {found.whole / 1000:.3g} ms"
        )
        return Clue(
            "logs", "slow_rank", Grade.LIKELY, "", ranks, (who[0].host,),
            meaning=f"{name} enters its collectives last, and the others wait for it",
            looks=("nvidia-smi -q -d PERFORMANCE",), lines=(LogLine(0, text, file=self._names[who[0]]),),
        )  # fmt: skip

    def _number(self, rank: _Rank) -> int:
        """Return the rank in the largest communicator of its process; its own where the process has several there."""
        numbers = self._in_job[rank.process][1]
        return next(iter(numbers)) if len(numbers) == 1 else rank.number


def _one(rank: _Rank) -> str:
    return f"{rank.host}:{rank.pid}:{rank.number}"


def _record(line: bytes) -> _Record | None:
    """Return the record of a line; None for one that is none, or is damaged."""
    if not line.startswith(b"{") or len(line) > _LONGEST:
        return None
    try:
        value: object = json.loads(line)
        found: _Record = decoded(value, _Record)
    except (ValueError, RecursionError, MisfitError):
        return None
    return found
