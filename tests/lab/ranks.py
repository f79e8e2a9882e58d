"""A job's ranks on the lab's hosts, started over ssh with nothing but RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from shlex import join

from .hosts import Lab
from .launching import Launched, Watch, launched
from .layers import ROOT, User

PORT = 29500
HOOK = (sys.executable, "-m", "ncheck.hook")
JOB = ("/run/job.py", "0")


@dataclass(frozen=True)
class Started:
    """One rank: where, and with which variables beside the usual ones; `words` follow the hook."""

    rank: int
    node: str
    words: Sequence[str] = JOB
    more: Mapping[str, str] = field(default_factory=dict)
    user: User = ROOT
    front: Sequence[str] = HOOK

    def line(self, size: int) -> str:
        usual = {"RANK": self.rank, "WORLD_SIZE": size, "MASTER_ADDR": "node01", "MASTER_PORT": PORT}
        variables = [f"{name}={value}" for name, value in {**usual, **self.more}.items()]
        return join(["ssh", "-n", self.node, join(["env", *variables, *self.front, *self.words])])


def ran(lab: Lab, ranks: Iterable[Started], size: int = 3, limit: float = 100) -> list[Launched]:
    """Run these ranks to their ends, all at once."""
    ranks = tuple(ranks)
    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(lambda rank: launched(lab, rank.line(size), Watch(limit), user=rank.user), ranks))


def everywhere(lab: Lab, **variables: str) -> list[Started]:
    """One rank on each of three nodes."""
    return [Started(rank, name, more=variables) for rank, name in enumerate(lab.names[:3])]
