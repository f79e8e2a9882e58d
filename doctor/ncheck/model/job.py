"""A running job as triage sees it: its ranks, which process on which node each one is, and who is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from ncheck.errors import SettingsError
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass

LEAST_STALLED, MOST_STALLED = 10.0, 3600.0  # seconds without progress after which a watched job may be examined


@dataclass(frozen=True)
class Target:
    """Which job triage is asked about, and how far it may look. Nothing named: the only job that runs.

    `pid` is a process of the job, on `node` or on any; `match` a regular expression for a command line; `slurm` an id.
    `stacks`: read the stacks of the ranks; `native`: native frames too, which pauses each rank for some milliseconds;
    `dump`: ask PyTorch for a dump of its flight recorder, where it listens. `ras`: ask NCCL's RAS, too, of a release
    that a question can crash.
    """

    pid: int | None = None
    node: str | None = None
    match: str | None = None
    slurm: str | None = None
    stacks: bool = True
    native: bool = False
    dump: bool = False
    ras: bool = False

    @property
    def names_one(self) -> bool:
        return any(one is not None for one in (self.pid, self.match, self.slurm))


def target_of(job: str | None, match: str | None, slurm: str | None, *, named: str = "--", **how: bool) -> Target:
    """Return the target that a user names; `named` is what stands before a name in messages. Raises SettingsError."""
    if sum(one is not None for one in (job, match, slurm)) > 1:
        raise SettingsError(f"{named}job, {named}match and {named}slurm name one job each: use only one of them")
    node, _, pid = (job or "").rpartition(":")
    if job is not None and not (pid.isascii() and pid.isdecimal() and 0 < int(pid[:20]) < _MOST_PROCESSES):
        raise SettingsError(f"{named}job: {quoted(job)} is no process; write its number, as in 4711 or gpu02:4711")
    try:
        re.compile(match or "")
    except re.error as error:
        raise SettingsError(f"{named}match: not a regular expression: {error}") from None
    if slurm is not None and not re.fullmatch(r"\d+(?:[_+]\d+)?", slurm, re.ASCII):
        raise SettingsError(f"{named}slurm: {quoted(slurm)} is no job id of Slurm; to list yours: squeue --me")
    return Target(int(pid) if job else None, node or None, match, slurm, **how)


_MOST_PROCESSES = 1 << 31


@dataclass(frozen=True)
class Process:
    """One process. `started` is in clock ticks since boot; pid and `started` together name it for ever.

    `inner_pid` is its number in its own namespace, as in a container; `user` its number. `argv` is bounded.
    `variables` are those of launchers, NCCL, gloo, MPI and the rendezvous, without secrets; None if unreadable.
    `state` is the letter of /proc/PID/stat; `namespace` its network namespace.
    """

    pid: int
    parent: int
    started: int
    state: str = "S"
    name: str = ""
    argv: tuple[str, ...] = ()
    user: int = 0
    inner_pid: int = 0
    namespace: str = ""
    variables: Mapping[str, str] | None = None

    @property
    def command(self) -> str:
        return " ".join(self.argv) or f"[{self.name}]"


@dataclass(frozen=True)
class RankProcess:
    """One rank of the job. `rank` is its global number, None if its environment does not say it.

    `children` are the processes beneath it: data loaders, compilers. They are no ranks.
    """

    rank: int | None
    node: str
    process: Process
    size: int | None = None
    local_rank: int | None = None
    launcher: str = ""
    children: tuple[Process, ...] = ()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def variables(self) -> Mapping[str, str]:
        return self.process.variables or {}

    @property
    def shown(self) -> str:
        """Name the rank for people: "rank 3 (pid 4711 on gpu02)"."""
        name = "process" if self.rank is None else f"rank {self.rank}"
        return f"{name} (pid {self.pid} on {self.node})"


@dataclass(frozen=True)
class Job:
    """The ranks of one job, by number, then by node and pid. `key` is what they have in common, for people.

    `size` is the world size that most ranks name, None if none does. `launchers` are the processes above the ranks, by
    node: mpirun, torchrun, srun; and what these have started that is no rank, such as ssh. A node may have launchers
    and no ranks; a job that has not come further than its launchers has no ranks at all.
    """

    key: str
    ranks: tuple[RankProcess, ...]
    size: int | None = None
    launchers: Mapping[str, tuple[Process, ...]] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that have ranks, in the order of their lowest rank."""
        return tuple(dict.fromkeys(one.node for one in self.ranks))

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks that no process is, out of the world size."""
        return tuple(sorted(set(range(self.size or 0)) - {one.rank for one in self.ranks}))

    def on(self, node: str) -> Iterator[RankProcess]:
        """Yield the ranks of one node."""
        return (one for one in self.ranks if one.node == node)

    def find(self, node: str, pid: int) -> RankProcess | None:
        """Return the rank that a process is, or belongs to; its number may be that of its own namespace."""
        for one in self.on(node):
            if pid in (one.pid, one.process.inner_pid) or any(pid in (it.pid, it.inner_pid) for it in one.children):
                return one
        return None

    def numbered(self, rank: int) -> RankProcess | None:
        """Return the rank with this number; None if no process is that rank."""
        return next((one for one in self.ranks if one.rank == rank), None)
