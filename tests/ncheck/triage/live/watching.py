"""Ranks that were watched, made by hand: by default each computes and talks to the others, as in a healthy job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ncheck.model.cluster import Cluster
from ncheck.model.job import Job
from ncheck.triage.facts.activity import ActivityFacts, Look, MountUse, ProcessActivity, Space, Thread
from ncheck.triage.facts.processes import ProcessesFacts

from .jobs import cluster, spread

ROOT = MountUse("/", "ext4", "/dev/vda", used="/home/a")
ROOM = Space(1 << 40, 1 << 39, 1000, 900)


def looks(states: str = "SS", cpu: float = 1.0, traffic: int = 1 << 20, **more: Any) -> tuple[Look, ...]:
    """Return looks at a process that used so many seconds of CPU and moved so many bytes in between."""
    first = Look(states[0], read=100, written=100, ran=10**9, delay=0)
    if len(states) == 1:
        return (first,)
    grown = {"state": states[1], "read": 100 + traffic, "ran": 10**9 + int(cpu * 1e9), **more}
    return first, replace(first, **grown)


_FIGURES = {"cpu", "traffic", *Look.__dataclass_fields__} - {"written"}  # that word is of files here


def watched(pid: int, rank_pid: int = 0, states: str = "SS", **words: Any) -> ProcessActivity:
    """Return a process; `cpu`, `traffic` and figures of its last look go into its looks."""
    figures = {name: words.pop(name) for name in [*words] if name in _FIGURES}
    known: dict[str, Any] = {
        "looks": looks(states, **figures), "threads": (Thread(pid, "python3", tuple(states), 10**6),), "cwd": "/home/a",
        "mounts": (ROOT,), "libraries": {}, "output": ("/home/a/log", "/home/a/log"),
    }  # fmt: skip
    return ProcessActivity(pid, rank_pid or pid, "python3", **{**known, **words})


def facts(processes: Iterable[ProcessActivity], **words: Any) -> ActivityFacts:
    known: dict[str, Any] = {"spaces": {"/home/a": ROOM}, "groups": {}, "cpus": 64}
    return ActivityFacts({one.pid: one for one in processes}, **{**known, **words})


def seen(
    *odd: ProcessActivity, ranks: int = 4, job: Job | None = None, gpus: bool = False,
    usual: Mapping[str, Any] | None = None, **words: Any,
) -> tuple[Job, Cluster]:  # fmt: skip
    """Return a job on two nodes, all of whose ranks are as `usual` says, except for the processes given."""
    job = job or spread(ranks)
    known = {}
    for node in job.nodes:
        mine = {one.pid: watched(one.pid, **(usual or {})) for one in job.on(node)}
        mine |= {one.pid: one for one in odd if one.rank_pid in mine}
        held = dict.fromkeys(mine, ("nvidia0",)) if gpus else {}
        known[node] = {ActivityFacts: facts(mine.values(), **words), ProcessesFacts: ProcessesFacts((), held)}
    return job, cluster(known)
