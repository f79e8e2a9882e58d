"""A job's ranks on the lab's hosts, started over ssh with nothing but RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from shlex import join

from .hosts import Lab
from .launching import Launched, Watch, launched
from .layers import PACKAGES, ROOT, User

PORT = 29500
HOOK = (sys.executable, "-m", "ncheck.hook")
JOB = ("/run/job.py", "0")
SITE = f"/run/site/{PACKAGES}"  # where the job's interpreter finds NCCL


@dataclass(frozen=True)
class Started:
    """One rank: the number of its node, and the variables beside the usual ones. `after`: seconds; `words`: what the
    hook runs.
    """

    rank: int
    node: int
    more: Mapping[str, str] = field(default_factory=dict)
    after: float = 0
    words: Sequence[str] = JOB
    user: User = ROOT

    def line(self, size: int) -> str:
        usual = {"RANK": self.rank, "WORLD_SIZE": size, "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": PORT}
        variables = {**usual, "PYTHONPATH": SITE, **self.more}
        words = ["env", *(f"{name}={value}" for name, value in variables.items()), *HOOK, *self.words]
        return join(["ssh", "-n", f"node{self.node:02}", join(words)])


def ran(lab: Lab, ranks: Iterable[Started], size: int) -> list[Launched]:
    """Run these ranks to their ends, side by side."""
    ranks = tuple(ranks)

    def run(rank: Started) -> Launched:
        time.sleep(rank.after)  # it is what the case is about
        return launched(lab, rank.line(size), Watch(100), user=rank.user)

    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(run, ranks))


def everywhere(*words: str, **more: str) -> list[Started]:
    """One rank on each of three nodes."""
    return [Started(rank, rank + 1, more, words=words or JOB) for rank in range(3)]
