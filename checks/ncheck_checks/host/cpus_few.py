"""The job may use few CPUs on a node

## What it finds
Nodes where the login may use fewer CPUs than the node has GPUs, or less than half of the CPUs that it may use on other
nodes with as many CPUs and the same GPUs. The CPU set (affinity) counts, and the quota of control groups. Inside a job,
where a launcher binds each rank to CPUs of its own, nothing is judged.

## Why it matters
A rank keeps one CPU busy, NCCL's threads and each data loader another. With too few, GPUs wait for data, collectives
are slow, and all nodes wait for this one. In Slurm, a job gets one CPU per task unless it asks for more; a container
has what `--cpus` or `resources.limits.cpu` gives it.

## What to type
`nproc` shows what a login may use, `lscpu` what there is. In Slurm, `--cpus-per-task`; in a container, raise the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, fold, nodes_by_value
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.ranks import RanksFacts

LESS = 2  # so many times less than on the other nodes


@cluster_check("NC618", Severity.WARNING, HostSettingsFacts, also=(GpuFacts, RanksFacts), by_kind=True, alone=True)
def cpus_few(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    ranks = cluster.facts(RanksFacts)
    settings = {node: held for node, held in cluster.facts(HostSettingsFacts).items() if node not in ranks}
    gpus = cluster.facts(GpuFacts)
    if ranks:
        yield NotApplicable("inside a job, a rank has its own CPUs", tuple(ranks))
    numbers = {node: len(held.gpus) for node, held in gpus.items()}
    usable = {node: held.usable_cpus for node, held in settings.items()}

    alike: dict[int | None, list[int]] = {}
    for held in settings.values():
        alike.setdefault(held.online_cpus, []).append(held.usable_cpus)
    usual_of = {online: sorted(counts)[len(counts) // 2] for online, counts in alike.items()}

    def usual(node: str) -> int:
        return usual_of[settings[node].online_cpus]

    scarce = {node: (count, numbers[node]) for node, count in usable.items() if count < numbers.get(node, 0)}
    for (count, number), nodes in nodes_by_value(scarce).items():
        yield _problem(f"a job may use {_cpus(count)} for {number} GPUs on {fold(nodes)}", nodes, settings)
    fewer = {node: count for node, count in usable.items() if LESS * count < usual(node) and node not in scarce}
    for (count, others), nodes in nodes_by_value({node: (count, usual(node)) for node, count in fewer.items()}).items():
        message = f"a job may use {_cpus(count)} on {fold(nodes)}, {others} on other nodes like it"
        yield _problem(message, nodes, settings)


def _problem(message: str, nodes: tuple[str, ...], settings: Mapping[str, HostSettingsFacts]) -> Problem:
    online = tuple(f"{node}: {settings[node].online_cpus} CPUs online" for node in nodes if settings[node].online_cpus)
    fix = "nproc; cat /proc/self/cgroup"
    return Problem(message, fix, online, nodes, look=True, summary="a job may use few CPUs")


def _cpus(count: int) -> str:
    return "1 CPU" if count == 1 else f"{count} CPUs"
