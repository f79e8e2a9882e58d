"""Jobs made by hand: the ranks of a cluster, without any process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ncheck.model.cluster import Cluster, FactType
from ncheck.model.job import Job, Process, RankProcess

FIRST_PID = 4000


def process(pid: int, **words: Any) -> Process:
    return replace(
        Process(pid, 1, pid * 10, "S", "python3", ("python3", "train.py"), 1000, pid, "net:[1]", {}), **words
    )


def rank(number: int | None, node: str, pid: int = 0, **words: Any) -> RankProcess:
    """Return a rank; its pid is 4000 and its number."""
    return RankProcess(number, node, process(pid or FIRST_PID + (number or 0)), **words)


def job(*ranks: RankProcess, size: int | None = None, **words: Any) -> Job:
    return Job("test", ranks, size if size is not None else len(ranks), **words)


def spread(ranks: int, nodes: int = 2) -> Job:
    """Return a job of so many ranks on node0, node1 ..., in blocks."""
    return job(*(rank(number, f"node{number * nodes // ranks}") for number in range(ranks)))


def cluster(known: Mapping[str, Mapping[FactType, object]]) -> Cluster:
    """Return the cluster of these nodes with these facts."""
    return Cluster.of(known)
