"""Which HCA ports should be up, from the same port of other nodes and from other ports of the same card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from shlex import quote

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.hostlist import fold
from ncheck.model.check import Problem
from ncheck.parity import Split, nodes_by_value, split

Ports = Mapping[str, InfinibandFacts]


PortsByNode = Mapping[str, tuple[HcaPort, ...]]


def chosen(nodes: Ports, wanted: Callable[[HcaPort], bool]) -> PortsByNode:
    """Return the wanted ports by node; nodes without any are left out."""
    found = {node: tuple(port for port in facts.ports if wanted(port)) for node, facts in nodes.items()}
    return {node: ports for node, ports in found.items() if ports}


def broken(nodes: Ports, wanted: Callable[[HcaPort], bool]) -> PortsByNode:
    """Return each node's wanted ports that are Down and should not be.

    A port that is Active on at least half of the nodes should be up on all. Any other port is not reported if it is the
    spare port of a card in use, an Ethernet port, or Down on every node.
    """
    states = _states_by_place(nodes)
    found = {
        node: tuple(port for port in facts.ports if wanted(port) and _broken(port, facts, states[_place(port)]))
        for node, facts in nodes.items()
    }
    return {node: ports for node, ports in found.items() if ports}


def dark(nodes: Ports) -> PortsByNode:
    """Return the InfiniBand ports of cards that none of several nodes uses, on nodes that use other cards.

    Cards without a cable look like this, and so does a switch that is off.
    """
    states = _states_by_place(nodes)
    found = {
        node: tuple(port for port in facts.ports if _dark(port, facts, states[_place(port)]))
        for node, facts in nodes.items()
    }
    return {node: ports for node, ports in found.items() if ports}


def problems(ports: PortsByNode, fault: str, fix: str, brief: str, *, look: bool = True) -> Iterator[Problem]:
    """Yield one problem for all nodes with the same ports; `{hca}`, `{port}` and `{netdev}` become the first one's.

    `brief` follows the name of the HCA in the headline: "has no link".
    """
    port_names = {node: tuple(map(_place, found)) for node, found in ports.items()}
    for places, nodes in nodes_by_value(port_names).items():
        hca, number = places[0]
        lines = nodes_by_value({node: _states(ports[node]) for node in nodes})
        yield Problem(
            message=f"{_listed(places)}: {fault}",
            fix=fix.format(hca=quote(hca), port=number, netdev=quote(ports[nodes[0]][0].netdev or hca)),
            evidence=tuple(f"{line} on {fold(members)}" for line, members in lines.items()),
            nodes=nodes,
            look=look,
            summary=f"{hca}{f' and {len(places) - 1} more' if len(places) > 1 else ''} {brief}",
        )


def without_rate(nodes: Ports) -> PortsByNode:
    """Return the Active ports that report no rate."""
    return chosen(nodes, lambda port: port.state == "Active" and not port.rate)


def differing_rates(nodes: Ports) -> dict[Split[str], list[str]]:
    """Return how the rates of Active ports differ, with the ports of each difference: port by port, or as one list per
    node if the nodes name their ports differently.
    """
    active = {node: {_place(p): p.rate for p in facts.ports if p.state == "Active"} for node, facts in nodes.items()}
    differing: dict[Split[str], list[str]] = {}
    if len({tuple(sorted(map(_place, facts.ports))) for facts in nodes.values()}) > 1:
        if parted := split({node: _rates(rates) for node, rates in active.items()}):
            differing[parted] = ["all ports"]
        return differing
    for place in sorted({place for rates in active.values() for place in rates}):
        own = {node: f"{rates[place]:g} Gb/s" for node, rates in active.items() if rates.get(place)}
        if parted := split(own):
            differing.setdefault(parted, []).append(f"{place[0]} port {place[1]}")
    return differing


def _rates(rates: Mapping[tuple[str, int], float | None]) -> str:
    """Count the ports by rate: "8 x 400 Gb/s"."""
    counts = Counter(rate for rate in rates.values() if rate is not None)
    return " + ".join(f"{count} x {rate:g} Gb/s" for rate, count in sorted(counts.items())) or "none"


def _listed(places: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{hca} port {port}" for hca, port in places)


def _states(ports: tuple[HcaPort, ...]) -> str:
    return ", ".join(f"{port.hca} port {port.port}: {port.state}, {port.physical}" for port in ports)


def _states_by_place(nodes: Ports) -> dict[tuple[str, int], Counter[str]]:
    states: dict[tuple[str, int], Counter[str]] = {}
    for facts in nodes.values():
        for port in facts.ports:
            states.setdefault(_place(port), Counter())[port.state] += 1
    return states


def _broken(port: HcaPort, own: InfinibandFacts, alike: Counter[str]) -> bool:
    if port.state != "Down":
        return False
    if 2 * alike["Active"] >= alike.total():
        return True
    return port.link_layer != "Ethernet" and not _is_spare(port, own) and not _dark(port, own, alike)


def _dark(port: HcaPort, own: InfinibandFacts, alike: Counter[str]) -> bool:
    down_everywhere = alike["Down"] == alike.total() > 1
    in_use = any(other.state == "Active" and other.link_layer != "Ethernet" for other in own.ports)
    return down_everywhere and in_use and port.link_layer != "Ethernet" and not _is_spare(port, own)


def _is_spare(port: HcaPort, own: InfinibandFacts) -> bool:
    """Tell whether another port of the same card is in use."""
    return any(other.state == "Active" and _card(other) == _card(port) for other in own.ports)


def _place(port: HcaPort) -> tuple[str, int]:
    return port.hca, port.port


def _card(port: HcaPort) -> str:
    """Return the card's PCI address without the function: the ports of one card are its functions."""
    return port.pci.rpartition(".")[0] or port.hca
