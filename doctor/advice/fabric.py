"""Which ports of the HCAs are the job's fabric, and which are there for storage, for logins or for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from doctor.advice.sight import Sight
from doctor.model.facts import HcaPort, InfinibandFacts, LoginFacts, NicFacts
from doctor.nccl.hca_list import USED_LAYERS, active

Place = tuple[str, int, str]  # HCA, port, type of card: the same place of two nodes is meant to be alike


@dataclass(frozen=True)
class Fabric:
    """By node: the ports that the job should use, and the Active ones that it should not, each with why."""

    kept: Mapping[str, tuple[HcaPort, ...]]
    left_out: Mapping[str, Mapping[HcaPort, str]]


def fabric(sight: Sight) -> Fabric:
    """Sort the ports of all nodes. A port that is down here and Active elsewhere is kept: it is to be mended."""
    nodes = {node: facts.ports for node, facts in sight.known(InfinibandFacts).items()}
    sorter = _Sorter(sight, nodes)
    reasons = {node: {port: sorter.why_not(node, port) for port in ports} for node, ports in nodes.items()}
    return Fabric(
        {node: tuple(port for port, why in found.items() if not why) for node, found in reasons.items()},
        {
            node: {port: why for port, why in found.items() if why and port in active(nodes[node])}
            for node, found in reasons.items()
        },
    )


class _Sorter:
    """What is usual among all nodes, worked out once."""

    def __init__(self, sight: Sight, nodes: Mapping[str, tuple[HcaPort, ...]]) -> None:
        self.nodes = nodes
        self.logins = {node: frozenset(_login_devices(sight, node)) for node in nodes}
        self.rates: dict[Place, float] = {}
        for port in (port for ports in nodes.values() for port in active(ports)):
            self.rates[_place(port)] = max(self.rates.get(_place(port), 0.0), port.rate or 0.0)
        self.holders = Counter(_place(port) for ports in nodes.values() for port in ports)
        self.layer = self._best_layer()
        self.rate = self._best_rate()

    def why_not(self, node: str, port: HcaPort) -> str:
        """Say why a port is not the job's; "" where it is."""
        rate = self.rates.get(_place(port))
        if rate is None or port.link_layer not in USED_LAYERS:
            return "no node has it Active"
        if port.link_layer != self.layer:
            return f"its link layer is {port.link_layer}, the others' {self.layer}"
        if self._of_logins(node, port):
            return f"logins come in by {port.netdev}, and others are faster"
        if rate not in (0.0, self.rate):
            return f"{rate:g} Gb/s beside {self.rate:g}: a network of its own, such as storage's"
        odd = self._alike and 2 * self.holders[_place(port)] < len(self.nodes)
        return "most nodes have no such port" if odd else ""

    @property
    def _alike(self) -> bool:
        """Tell whether some port is called the same on all nodes; else names say nothing."""
        return any(count == len(self.nodes) for count in self.holders.values())

    def _of_logins(self, node: str, port: HcaPort) -> bool:
        own = self.rates.get(_place(port), 0.0)
        fastest = max((self.rates.get(_place(other), 0.0) for other in active(self.nodes[node])), default=0.0)
        return port.netdev in self.logins[node] and own < fastest

    def _best_layer(self) -> str:
        """Return the link layer that carries most; InfiniBand where both carry as much."""
        sums: Counter[str] = Counter()
        for port in (port for ports in self.nodes.values() for port in active(ports)):
            sums[port.link_layer] += round(port.rate or 1)
        return max(sums, key=lambda layer: (sums[layer], layer == "InfiniBand"), default="InfiniBand")

    def _best_rate(self) -> float:
        """Return the rate of the ports that together carry most, logins' left out; the higher of two alike."""
        sums: Counter[float] = Counter()
        for node, ports in self.nodes.items():
            for port in active(ports):
                if port.link_layer == self.layer and not self._of_logins(node, port):
                    sums[self.rates[_place(port)]] += round(self.rates[_place(port)])
        return max(sums, key=lambda rate: (sums[rate], rate), default=0.0)


def _place(port: HcaPort) -> Place:
    return port.hca, port.port, port.hca_type


def _login_devices(sight: Sight, node: str) -> Iterator[str]:
    """Yield the interfaces by which the node is logged in to or leaves for far networks, a bond's cards too."""
    nics, login = sight.known(NicFacts).get(node), sight.known(LoginFacts).get(node)
    address = login.login.address if login else ""
    every = nics.interfaces if nics else ()
    tops = {nic.name for nic in every if nic.default_route or any(one.ip == address for one in nic.addresses)}
    yield from tops
    yield from (nic.name for nic in every if nic.master in tops)
