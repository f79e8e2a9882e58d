"""nccl-tests' all_reduce_perf where it is on the PATH: inside a node one process with -g N, started by the agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.probe import Means, Stage
from ncheck.hostlist import fold
from ncheck.probe.methods.method import GIB, MIB, Ground, Part
from ncheck.probe.methods.nccl import Nccl, unfit_for_ranks
from ncheck.probe.methods.tools import tools_of

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue


# all_reduce_perf_mpi: so containers of NVIDIA call the build with MPI.
PLAIN, WITH_MPI = "all_reduce_perf", "all_reduce_perf_mpi"


SIZES = (MIB, 32 * MIB, GIB)  # by one factor: the tool knows no other lists


_ITERATIONS = ("-n", "5", "-w", "1", "-c", "1")


class NcclTests(Nccl):
    """The GPUs of one node. What lies between nodes is run by mpirun: see nccl_tests_across."""

    means = Means.NCCL_TESTS
    across = "nccl-tests-mpirun"
    stages: ClassVar = frozenset({Stage.INSIDE})
    sizes: ClassVar = dict.fromkeys(Stage, SIZES)
    least, most = 4.0, 30.0
    meets = ids = False

    def unfit(self, ground: Ground) -> str:
        """Say which nodes lack it, or GPUs for its ranks. Its NCCL is its own, and may be another than the job's."""
        without = [node for node in ground.nodes if not tools_of(ground.cluster, node).keys() & {PLAIN, WITH_MPI}]
        if without:
            return f"no {PLAIN} on the PATH of {fold(without)}"
        return unfit_for_ranks(ground)

    def part(self, ground: Ground, part: Part) -> Mapping[str, JsonValue]:  # noqa: ARG002  it knows all it needs
        """Return the options of the test."""
        return {"options": [*options(part.step.sizes)]}


def options(sizes: tuple[int, ...]) -> tuple[str, ...]:
    """Return the options that run (at least) these sizes: from the smallest to the largest by one factor."""
    least, most = min(sizes), max(sizes)
    return ("-b", str(least), "-e", str(most), "-f", str(_factor(tuple(sorted(set(sizes))))), *_ITERATIONS)


def _factor(sizes: tuple[int, ...]) -> int:
    """Return the one factor between sizes that lie so; else 2, which meets all powers of two between."""
    factors = set(_factors(sizes))
    return factors.pop() if len(factors) == 1 and min(factors) > 1 else 2


def _factors(sizes: tuple[int, ...]) -> Iterator[int]:
    for smaller, larger in pairwise(sizes):
        yield larger // smaller if smaller and larger % smaller == 0 else 0


WAY = NcclTests()
