"""gloo: torch.distributed between nodes that have no GPU to measure, one rank a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.probe import Means, Stage
from ncheck.hostlist import fold
from ncheck.nccl.settings import GLOO
from ncheck.probe.methods.method import KIB, MIB, Ground, NoPartError, Part, Way
from ncheck.probe.methods.tcp import no_network

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue


_MEASURING = 3.0  # seconds for the sums of one step, where there are as many


_SHARE = 4  # and no more than this part of what the whole step has


_LARGE = (MIB, 16 * MIB, 64 * MIB)


class Gloo(Way):
    """The torch that the job's interpreter has. Its all-reduce is in place, and so are all rows."""

    means = Means.GLOO
    stages = frozenset({Stage.PAIR, Stage.SCALING, Stage.ALL})
    sizes: ClassVar = {Stage.PAIR: _LARGE, Stage.SCALING: _LARGE, Stage.ALL: (8, 64 * KIB, *_LARGE)}
    least, most = 3.0, 20.0
    meets = True
    to_meet = 25.0  # torch is imported meanwhile, on every node

    def unfit(self, ground: Ground) -> str:
        """Say who has no torch, and where there is no network."""
        held = ground.cluster.connected_facts(InterpreterFacts)
        without = [node for node in ground.nodes if node not in held or "torch" not in held[node].frameworks]
        if without:
            return f"the job's interpreter has no torch on {fold(without)}"
        return no_network(ground)

    def planned(self, ground: Ground, part: Part) -> tuple[str, ...]:
        """Return the interface that GLOO_SOCKET_IFNAME names, else those in the plan's network."""
        held = ground.network.members.get(part.node, ()) if ground.network else ()
        named = ground.variables(part.node).get(GLOO)
        names = dict.fromkeys(seat.interface.name for seat in held)
        return tuple(name for name in names if named in (None, name))

    def meeting(self, ground: Ground, node: str) -> dict[str, JsonValue]:
        """Return the address at which the node opens its store."""
        return {"address": ground.address(node)}

    def part(self, ground: Ground, part: Part) -> Mapping[str, JsonValue]:
        """Return the store of the leader, and the node's rank."""
        held = ground.meeting(part.leader)
        if held is None or not held.port:
            raise NoPartError(held.why if held and held.why else f"{part.leader} told of no store where ranks can meet")
        return {
            "meeting": {"address": ground.address(part.leader), "port": held.port}, "first": part.first,
            "seconds": min(_MEASURING, part.seconds / _SHARE),
        }  # fmt: skip


WAY = Gloo()
