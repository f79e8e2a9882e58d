"""TCP alone: two nodes of a pair send to and receive from each other at once, with no library at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.links import ListenFacts
from ncheck.facts.probe import Means, Stage
from ncheck.hostlist import fold, is_v6
from ncheck.probe.methods.method import MIB, Ground, NoPartError, Part, Way

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue


_MEASURING = 2.0  # seconds for the moves of one pair, where there are as many


_SHARE = 4  # and no more than this part of what the whole step has


_FEW = 2


class Tcp(Way):
    """The agents themselves, by the listeners that the mesh has opened; sizes ascend until one lasts long enough."""

    means = Means.TCP
    stages = frozenset({Stage.PAIR})
    sizes: ClassVar = {Stage.PAIR: (MIB, 8 * MIB, 64 * MIB, 512 * MIB)}
    least, most = 3.0, 20.0

    def unfit(self, ground: Ground) -> str:
        """Say whom nobody can connect to."""
        if why := no_network(ground):
            return why
        listening = ground.cluster.connected_facts(ListenFacts)
        deaf = [node for node in ground.nodes if node not in listening or not _heard(ground, node)]
        none = "--mesh none was given, and " if ground.settings.mesh == "none" else ""
        return f"{none}no agent listens in the plan's network on {fold(deaf)}" if deaf else ""

    def planned(self, ground: Ground, part: Part) -> tuple[str, ...]:
        """Return the interface that has the address which this node sends from."""
        source, _ = _ends(ground, part)
        held = ground.network.members[part.node] if ground.network else ()
        return tuple(seat.interface.name for seat in held if seat.ip == source)

    def variables(self, ground: Ground, node: str, net: str) -> dict[str, str | None]:  # noqa: ARG002  sockets know none
        """Return none: no library is there to read them."""
        return {}

    def part(self, ground: Ground, part: Part) -> Mapping[str, JsonValue]:
        """Return where this node sends from and to, and the run's token, by which the other one knows it."""
        source, address = _ends(ground, part)
        port = ground.cluster.connected_facts(ListenFacts)[_other(part)].ports[address]
        seconds = min(_MEASURING, part.seconds / _SHARE)
        return {"source": source, "address": address, "port": port, "token": ground.cluster.token, "seconds": seconds}


WAY = Tcp()


def no_network(ground: Ground) -> str:
    """Say why nodes cannot measure over the plan's network; "" where they can."""
    if len(ground.nodes) < _FEW:
        return "one node alone has nobody to send to"
    without = [node for node in ground.nodes if not ground.address(node)]
    return f"the plan names no network with an address of {fold(without)}" if without else ""


def _heard(ground: Ground, node: str) -> tuple[str, ...]:
    """Return the node's addresses in the plan's network on which its agent listens."""
    held = ground.network.members.get(node, ()) if ground.network else ()
    listening = ground.cluster.connected_facts(ListenFacts).get(node)
    return tuple(seat.ip for seat in held if listening and seat.ip in listening.ports)


def _ends(ground: Ground, part: Part) -> tuple[str, str]:
    """Return an address of each of the two, of one family. Raises NoPartError where there are no such."""
    theirs = _heard(ground, _other(part))
    for source in _heard(ground, part.node):
        for address in theirs:
            if is_v6(source) == is_v6(address):
                return source, address
    raise NoPartError(f"no address of it and one of {_other(part)} in the plan's network are of one family")


def _other(part: Part) -> str:
    return part.step.group[1 - part.index]
