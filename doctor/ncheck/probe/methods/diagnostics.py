"""NCCL's own diagnostics, which it runs from 2.31 on at the start of a communicator where a variable asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.probe import Means, Stage
from ncheck.hostlist import fold
from ncheck.nccl.settings import release_of
from ncheck.parse.nccl_diagnostics import SINCE, VARIABLES
from ncheck.probe.methods.nccl import Nccl, pinned_net, unfit_for_nccl

if TYPE_CHECKING:
    from ncheck.probe.methods.method import Ground


class Diagnostics(Nccl):
    """One communicator of all ranks, and no all-reduce but the first: what NCCL prints is read."""

    means = Means.DIAGNOSTICS
    stages: ClassVar = frozenset({Stage.ALL})
    sizes: ClassVar = {}
    least, most = 6.0, 30.0

    def unfit(self, ground: Ground) -> str:
        """Say which nodes' NCCL has none."""
        if why := unfit_for_nccl(ground):
            return why
        loaded = ground.cluster.connected_facts(LoadedNcclFacts)
        old = [node for node in ground.nodes if release_of(loaded[node].version) < SINCE]
        return f"NCCL before {'.'.join(map(str, SINCE))} on {fold(old)}" if old else ""

    def usual(self, ground: Ground, stage: Stage) -> tuple[int, ...]:  # noqa: ARG002  one communicator is all
        """Return no size."""
        return ()

    def fitting(self, ground: Ground, stage: Stage, sizes: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return no size, whatever --sizes names."""
        return ()

    def net(self, ground: Ground, stage: Stage) -> str:  # noqa: ARG002  there is one stage
        """Pin what the plan means, so that what it would use is diagnosed."""
        return pinned_net(ground) if len(ground.nodes) > 1 else ""

    def variables(self, ground: Ground, node: str, net: str) -> dict[str, str | None]:
        """Return the plan's variables and those that ask for the diagnostics."""
        return {**super().variables(ground, node, net), **VARIABLES}


WAY = Diagnostics()
