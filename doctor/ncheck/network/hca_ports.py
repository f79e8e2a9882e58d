"""Which ports of the HCAs ought to be up: reasoned from the same port of the other nodes and from the same card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from shlex import quote

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.hostlist import fold
from ncheck.model.check import Problem
from ncheck.parity import Split, gathered, split

Ports = Mapping[str, InfinibandFacts]


Chosen = Mapping[str, tuple[HcaPort, ...]]


def chosen(nodes: Ports, wanted: Callable[[HcaPort], bool]) -> Chosen:
    """Return the ports that are wanted by node; nodes without any are left out."""
    found = {node: tuple(port for port in facts.ports if wanted(port)) for node, facts in nodes.items()}
    return {node: ports for node, ports in found.items() if ports}


def broken(nodes: Ports, wanted: Callable[[HcaPort], bool]) -> Chosen:
    """Return each node's wanted ports that are Down and should not be.

    A port that is Active on at least half of the nodes is meant to be up on all. Any other is let off where it is the
    spare port of a card in use, an Ethernet port, or dark on every node alike.
    """
    states = _states_by_place(nodes)
    found = {
        node: tuple(port for port in facts.ports if wanted(port) and _broken(port, facts, states[_place(port)]))
        for node, facts in nodes.items()
    }
    return {node: ports for node, ports in found.items() if ports}


def dark(nodes: Ports) -> Chosen:
    """Return the InfiniBand ports of cards that no node of several has in use, on nodes that do use other cards.

    Cards nobody cabled look like this, and so does a switch that is off.
    """
    states = _states_by_place(nodes)
    found = {
        node: tuple(port for port in facts.ports if _dark(port, facts, states[_place(port)]))
        for node, facts in nodes.items()
    }
    return {node: ports for node, ports in found.items() if ports}


def problems(ports: Chosen, fault: str, fix: str) -> Iterator[Problem]:
    """Yield one problem for all nodes with the same ports; `{hca}`, `{port}` and `{netdev}` become the first one's."""
    told = {node: tuple((port.hca, port.port) for port in found) for node, found in ports.items()}
    for places, nodes in gathered(told).items():
        hca, number = places[0]
        lines = gathered({node: _states(ports[node]) for node in nodes})
        yield Problem(
            message=f"{_listed(places)}: {fault}",
            fix=fix.format(hca=quote(hca), port=number, netdev=quote(ports[nodes[0]][0].netdev or hca)),
            evidence=tuple(f"{line} on {fold(members)}" for line, members in lines.items()),
            nodes=nodes,
        )


def without_rate(nodes: Ports) -> Chosen:
    """Return the Active ports that do not say their rate."""
    return chosen(nodes, lambda port: port.state == "Active" and not port.rate)


def rates_apart(nodes: Ports) -> dict[Split[str], list[str]]:
    """Return how the rates of Active ports part, with the ports that part so: by port, or as one list a node where
    nodes do not name their ports alike.
    """
    active = {node: {_place(p): p.rate for p in facts.ports if p.state == "Active"} for node, facts in nodes.items()}
    apart: dict[Split[str], list[str]] = {}
    if len({tuple(sorted(map(_place, facts.ports))) for facts in nodes.values()}) > 1:
        if parted := split({node: _rates(rates) for node, rates in active.items()}):
            apart[parted] = ["all ports"]
        return apart
    for place in sorted({place for rates in active.values() for place in rates}):
        held = {node: f"{rates[place]:g} Gb/s" for node, rates in active.items() if rates.get(place)}
        if parted := split(held):
            apart.setdefault(parted, []).append(f"{place[0]} port {place[1]}")
    return apart


def _rates(rates: Mapping[tuple[str, int], float | None]) -> str:
    """Say how many ports have which rate: "8 x 400 Gb/s"."""
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
    off_everywhere = alike["Down"] == alike.total() > 1
    in_use = any(other.state == "Active" and other.link_layer != "Ethernet" for other in own.ports)
    return off_everywhere and in_use and port.link_layer != "Ethernet" and not _is_spare(port, own)


def _is_spare(port: HcaPort, own: InfinibandFacts) -> bool:
    """Tell whether the card of this port has another one in use."""
    return any(other.state == "Active" and _card(other) == _card(port) for other in own.ports)


def _place(port: HcaPort) -> tuple[str, int]:
    return port.hca, port.port


def _card(port: HcaPort) -> str:
    """Name the card: its PCI slot without the function, since the ports of one card are functions of it."""
    return port.pci.rpartition(".")[0] or port.hca
