"""The ranks of a job as they were watched: what several readers of live evidence ask of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job, RankProcess
from ncheck.text import printable
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Source
from ncheck.triage.facts.activity import ActivityFacts, MountUse, ProcessActivity
from ncheck.triage.facts.processes import ProcessesFacts

SOURCE: Source = "processes"


@dataclass(frozen=True)
class Watched:
    """A rank that was watched, and what is beneath it."""

    rank: RankProcess
    own: ProcessActivity
    beneath: tuple[ProcessActivity, ...]
    facts: ActivityFacts
    holds_gpu: bool

    @property
    def ranks(self) -> tuple[int, ...]:
        return () if self.rank.rank is None else (self.rank.rank,)

    @property
    def share(self) -> float:
        """How many CPUs the rank itself kept busy."""
        return self.own.cpu_seconds / max(self.facts.seconds, 0.1)

    @property
    def wants(self) -> float:
        """How many CPUs the rank itself would have kept busy on a node that is not crowded."""
        return self.own.wanted_seconds / max(self.facts.seconds, 0.1)

    @property
    def spins(self) -> bool:
        """Whether it may be busy while it only waits: NCCL, MPI, UCX and Horovod look again and again."""
        paths = self.own.libraries
        return self.holds_gpu or paths is None or any(re.search(r"/lib(?:mpi|ucp)\b|/mpi_lib", path) for path in paths)

    @property
    def loaders(self) -> tuple[ProcessActivity, ...]:
        return tuple(one for one in self.beneath if self.is_loader(one))

    def is_loader(self, child: ProcessActivity) -> bool:
        """Whether a child is one of the rank's own kind: forked from it, or a worker that names itself."""
        argv = next((one.argv for one in self.rank.children if one.pid == child.pid), ())
        forked = bool(argv) and argv == self.rank.process.argv
        return child.name.startswith("pt_data") or forked or (not argv and child.name == self.own.name)

    def grown(self, *names: str) -> int | None:
        """Return by how much figures of the rank itself have grown together; None if one cannot be read."""
        found = [self.own.grown(name) for name in names]
        return None if None in found else sum(filter(None, found))

    def clue(self, cause: str, grade: Grade, text: str, **more: object) -> Clue:
        return Clue(SOURCE, cause, grade, text, self.ranks, (self.rank.node,), **more)  # type: ignore[arg-type]


def watched(job: Job, cluster: Cluster) -> Iterator[Watched]:
    processes = cluster.facts(ProcessesFacts)
    for node, facts in cluster.facts(ActivityFacts).items():
        gpus = processes[node].gpus if node in processes else {}
        for rank in job.on(node):
            own = facts.of(rank.pid)
            if isinstance(own, ProcessActivity):
                yield Watched(rank, own, facts.beneath(rank.pid), facts, bool(gpus.get(rank.pid)))


def mount_of(path: str, mounts: Iterable[MountUse]) -> MountUse | None:
    """Return the file system of a path."""
    above = [one for one in mounts if path == one.point or path.startswith(one.point.rstrip("/") + "/")]
    return max(above, key=lambda one: len(one.point), default=None)


def listed(word: str, names: Sequence[object]) -> str:
    """Return "rank 3", "ranks 3, 4 and 12 more"."""
    shown = ", ".join(map(str, names[:_MOST_LISTED]))
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"{word}{'s' if word and len(names) > 1 else ''} {shown}{more}".strip()


_MOST_LISTED = 8


def clean(text: str) -> str:
    """Return a node's own text for people."""
    return printable(text, 200)
