"""A framework is not the same on every node

## What it finds
Nodes whose job interpreter holds another version of torch, tensorflow, jax, paddle, deepspeed or the like than the
rest, or lacks what most have. Where nodes have GPUs and that interpreter has no framework, it is likely the wrong one:
the verdict is unknown, unless it finds an NCCL of its own, as jobs in C++ do; then there is nothing to compare here,
and NCCL itself is compared. Horovod has its own check.

## Why it matters
Every rank runs the same program over its own copy. Two versions disagree about what is sent when, or bring two NCCLs:
the job stops at its first collective, or goes on with wrong numbers.

## What to type
`python3 -m pip install torch==VERSION` in the job's environment on the named nodes. If the job uses another Python
than the one named here: `ncheck --python /path/to/python nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, Split, cluster_check, split
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts


@cluster_check("NC206", Severity.ERROR, InterpreterFacts, also=(GpuFacts, LoadedNcclFacts), by_kind=True)
def framework_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    pythons = cluster.facts(InterpreterFacts)
    names = sorted({name for python in pythons.values() for name in python.frameworks} - {"horovod"})
    for name in names:
        if parted := _parted(name, pythons):
            wanted = next(version for version, _ in parted.groups if version != "none")
            fix = f"python3 -m pip install {quote(f'{name}=={wanted}')}"
            yield Problem(f"{name} differs: {parted.told()}", fix, nodes=parted.odd)
    if not names:
        yield _none_anywhere(cluster, sorted({f"{python.path} ({python.how})" for python in pythons.values()}))


def _none_anywhere(cluster: Cluster, interpreters: list[str]) -> Inconclusive | NotApplicable:
    where = ", ".join(interpreters)
    if not any(isinstance(node.maybe(GpuFacts), GpuFacts) for node in cluster):
        return NotApplicable(f"no framework lives in {where}, and there is no GPU that would want one")
    if all(isinstance(node.maybe(LoadedNcclFacts), LoadedNcclFacts) for node in cluster):
        return NotApplicable(
            f"no framework lives in {where}; NCCL itself is compared. Another Python is named with --python"
        )
    return Inconclusive(f"no framework lives in {where}: name the job's Python with --python")


def _parted(name: str, pythons: Mapping[str, InterpreterFacts]) -> Split[str] | None:
    """Part the nodes by version. One that lacks what most lack is left out, unless it has no framework at all."""
    held = {node: python.frameworks.get(name, "none") for node, python in pythons.items()}
    usual = 2 * list(held.values()).count("none") <= len(held)
    return split({n: v for n, v in held.items() if usual or v != "none" or not pythons[n].frameworks})
