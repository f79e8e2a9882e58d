"""Which HCA ports should be up, from the same port of other nodes and from other ports of the same card."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from shlex import quote

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.hostlist import fold
from ncheck.model.check import Problem
from ncheck.model.cluster import Cluster
from ncheck.model.fact import Absent, Read
from ncheck.nccl.hca import USED_LAYERS, active, natural
from ncheck.parity import Split, nodes_by_value, split

MISSING_ADAPTER = "missing adapter"  # what a check may explain: that a node has fewer ports than the others
Ports = Mapping[str, InfinibandFacts]
Place = tuple[str, int]  # an HCA's name and the number of its port
PortsByNode = Mapping[str, tuple[HcaPort, ...]]


def chosen(nodes: Ports, wanted: Callable[[HcaPort], bool]) -> PortsByNode:
    """Return the wanted ports by node; nodes without any are left out."""
    found = {node: tuple(port for port in facts.ports if wanted(port)) for node, facts in nodes.items()}
    return {node: ports for node, ports in found.items() if ports}


def broken(nodes: Ports, wanted: Callable[[HcaPort], bool]) -> PortsByNode:
    """Return each node's wanted ports that are Down and should not be.

    A port that is Active on at least half of the nodes should be up on all, an Ethernet port only on a node with fewer
    Active ones than the others: its cable may be in another port. Any other port is not reported if it is the spare
    port of a card in use, an Ethernet port, or Down on every node.
    """
    states, wires = _states_by_place(nodes), {node: _active_ethernet(facts) for node, facts in nodes.items()}
    usual = Counter(wires.values())
    most = max((count for count, having in usual.items() if 2 * having >= len(nodes)), default=max(usual, default=0))
    found = {
        node: tuple(
            port for port in facts.ports
            if wanted(port) and _broken(port, facts, states[port.place])
            and (port.link_layer != "Ethernet" or wires[node] < most)
        )
        for node, facts in nodes.items()
    }  # fmt: skip
    return {node: ports for node, ports in found.items() if ports}


def dark(nodes: Ports) -> PortsByNode:
    """Return the InfiniBand ports of cards that none of several nodes uses, on nodes that use other cards.

    Cards without a cable look like this, and so does a switch that is off.
    """
    states = _states_by_place(nodes)
    found = {
        node: tuple(port for port in facts.ports if _dark(port, facts, states[port.place]))
        for node, facts in nodes.items()
    }
    return {node: ports for node, ports in found.items() if ports}


def usable(hca: str, libraries: Read[LibraryFacts] | None) -> bool:
    """Return whether a job on a node can use an HCA: libibverbs loads and lists it, and its device opens. What could
    not be read may be usable.
    """
    if not isinstance(libraries, LibraryFacts):
        return True
    listed = libraries.listed is None or hca in libraries.listed
    opens = isinstance(libraries.uverbs, Absent) or libraries.uverbs.get(hca) == ""
    return libraries.verbs == "" and listed and opens


def usable_ports(cluster: Cluster) -> Ports:
    """Return the ports by node, without Ethernet ones where no job on any node can use RoCE: the drivers of many
    ordinary network cards make RoCE devices, and these clusters use TCP.

    The check must declare InfinibandFacts and LibraryFacts.
    """
    nodes, libraries = cluster.facts(InfinibandFacts), cluster.facts(LibraryFacts)
    roce = any(
        usable(port.hca, libraries.get(node)) for node, facts in nodes.items()
        for port in active(facts.ports) if port.link_layer == "Ethernet"
    )  # fmt: skip
    return {
        node: facts if roce else replace(facts, ports=tuple(one for one in facts.ports if one.link_layer != "Ethernet"))
        for node, facts in nodes.items()
    }


def hcas_in_use(nodes: Ports, libraries: Mapping[str, LibraryFacts]) -> dict[str, frozenset[str]]:
    """Return the HCAs that a job on InfiniBand or RoCE would use, by node: those with Active ports.

    A node's RoCE ports count where a job can use those of some node: many clusters have them and use TCP. Ports of
    neither layer, such as EFA's, are not NCCL's.
    """
    layers = {
        layer: {
            node: frozenset(port.hca for port in active(facts.ports) if port.link_layer == layer)
            for node, facts in nodes.items()
        }
        for layer in USED_LAYERS
    }
    ib, roce = layers["InfiniBand"], layers["Ethernet"]
    roce_in_use = any(usable(hca, libraries.get(node)) for node in nodes if not ib[node] for hca in roce[node])
    return {node: ib[node] or (roce[node] if roce_in_use else frozenset()) for node in nodes}


def problems(ports: PortsByNode, fault: str, fix: str, brief: str, *, look: bool = True) -> Iterator[Problem]:
    """Yield one problem for all nodes with the same ports; `{hca}`, `{port}` and `{netdev}` become the first one's.

    `brief` follows the name of the HCA in the headline: "has no link".
    """
    port_names = {node: tuple([port.place for port in found]) for node, found in ports.items()}
    for places, nodes in nodes_by_value(port_names).items():
        hca, number = places[0]
        lines = nodes_by_value({node: _states(ports[node]) for node in nodes})
        yield Problem(
            message=f"{listed(places)}: {fault}",
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
    """Return how the rates of Active ports differ, with the ports of each difference; see `differing`."""
    rates = {
        node: {port.place: f"{port.rate:g} Gb/s" if port.rate else "" for port in facts.ports if port.state == "Active"}
        for node, facts in nodes.items()
    }
    return differing(nodes, rates, _counted)


def differing(
    nodes: Ports, values: Mapping[str, Mapping[Place, str]], together: Callable[[Iterable[str]], str]
) -> dict[Split[str], list[str]]:
    """Return how the values of ports differ, with the ports of each difference: port by port, or one value `together`
    for a node's ports if the nodes name their ports differently. A value "" is unknown.
    """
    found: dict[Split[str], list[str]] = {}
    if named_differently(nodes):
        whole = {node: together(values.get(node, {}).values()) for node in nodes}
        if parted := split({node: value for node, value in whole.items() if value}):
            found[parted] = ["all ports"]
        return found
    for place in sorted({place for own in values.values() for place in own}):
        if parted := split({node: own[place] for node, own in values.items() if own.get(place)}):
            found.setdefault(parted, []).append(f"{place[0]} port {place[1]}")
    return found


def named_differently(nodes: Ports) -> bool:
    """Return whether nodes have ports that the one with the most lacks, or has with another link layer.

    A node with fewer ports may name them alike. In virtual machines a name may be of InfiniBand or Ethernet by chance.
    """
    places = [{(port.place, port.link_layer) for port in facts.ports} for facts in nodes.values()]
    most: set[tuple[Place, str]] = max(places, key=len, default=set())
    return not all(own <= most for own in places)


def only_one(values: Iterable[str]) -> str:
    """Return the value that all ports share; "" if they have several, of which other nodes may have fewer."""
    shared = set(values)
    return shared.pop() if len(shared) == 1 else ""


def _counted(values: Iterable[str]) -> str:
    """Count the ports by value: "8 x 400 Gb/s"."""
    counts = Counter(value for value in values if value)
    ordered = sorted(counts.items(), key=lambda item: natural(item[0]))
    return " + ".join(f"{count} x {value}" for value, count in ordered) or "none"


def listed(places: Iterable[Place]) -> str:
    return ", ".join(f"{hca} port {port}" for hca, port in places)


def _states(ports: tuple[HcaPort, ...]) -> str:
    return ", ".join(f"{port.hca} port {port.port}: {port.state}, {port.physical}" for port in ports)


def _states_by_place(nodes: Ports) -> dict[Place, Counter[str]]:
    states = defaultdict[Place, Counter[str]](Counter)
    for facts in nodes.values():
        for port in facts.ports:
            states[port.place][port.state] += 1
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


def _active_ethernet(facts: InfinibandFacts) -> int:
    return sum(port.state == "Active" and port.link_layer == "Ethernet" for port in facts.ports)


def _is_spare(port: HcaPort, own: InfinibandFacts) -> bool:
    """Tell whether another port of the same card is in use."""
    return any(other.state == "Active" and _card(other) == _card(port) for other in own.ports)


def _card(port: HcaPort) -> str:
    """Return the card's PCI address without the function: the ports of one card are its functions."""
    return port.pci.rpartition(".")[0] or port.hca
