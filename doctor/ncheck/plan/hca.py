"""NCCL_IB_HCA and NCCL_IB_GID_INDEX: only where what NCCL does by itself, all Active ports, would be wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.model.plan import Setting
from ncheck.nccl.choice import LINK_STATE_COUNTS, release_of, settings_in_force
from ncheck.nccl.hca import AUTOMATIC_GID, USED_LAYERS, active, ipv4_index, listed, taken
from ncheck.parity import nodes_by_value
from ncheck.plan.advice import Advice
from ncheck.plan.node_by_node import OWN, lines_to_type, merged, own_values
from ncheck.plan.sight import Sight

HCA, GID = "NCCL_IB_HCA", "NCCL_IB_GID_INDEX"


def advise_hcas(sight: Sight) -> Advice:
    """Return the settings of the ports; none at all where not every node has an Active one."""
    if not sight.rdma:
        return Advice({})
    found = fabric(sight)
    if not all(found.kept.values()):  # no port of some node would be left: nothing can be said of what they are for
        return Advice({})
    ports, gids = _ports(sight, found), _gids(sight, found)
    return Advice(
        {**ports.env, **gids.env}, (*ports.notes, *gids.notes), per_node=merged(ports.per_node, gids.per_node)
    )


def _set_already(sight: Sight, variable: str) -> dict[str, str]:
    environments = sight.known(EnvironmentFacts)
    found = {node: settings_in_force(own, LINK_STATE_COUNTS).get(variable, "") for node, own in environments.items()}
    return {node: value for node, value in found.items() if value}


def _ports(sight: Sight, found: Fabric) -> Advice:
    own = _set_already(sight, HCA)
    held = sight.known(InfinibandFacts)
    used = {node: taken(own.get(node, ""), held[node].ports) for node in held}
    if own and all(used.values()):
        return Advice({})  # somebody has chosen, and it leads somewhere
    wrong = [node for node, ports in used.items() if not ports or set(ports) - set(found.kept[node])]
    if not wrong:
        return Advice({})
    evidence = tuple(_left_out(found))
    reason = f"NCCL would use all Active ports on {fold(wrong)}, and not all are the job's"
    values = {node: listed(ports) for node, ports in found.kept.items()}
    together = listed(port for ports in found.kept.values() for port in ports)
    if all(set(taken(together, held[node].ports)) == set(active(found.kept[node])) for node in held):
        return Advice({HCA: Setting(together, reason, evidence)}, evidence)
    release = _releases(sight)[-1] if _releases(sight) else LINK_STATE_COUNTS
    return Advice(
        {HCA: Setting(None, f"{reason}; the names differ: {OWN}", evidence)},
        (*evidence, *lines_to_type(HCA, values, sight.environments, release)),
        per_node=own_values(HCA, values, reason),
    )


def _left_out(found: Fabric) -> list[str]:
    """Say of the Active ports that are not the job's why, ports of one reason on the same nodes together."""
    owners: dict[tuple[str, str], dict[str, None]] = {}
    for node, ports in found.left_out.items():
        for port, why in ports.items():
            owners.setdefault((port.name, why), {})[node] = None
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, why), nodes in owners.items():
        alike.setdefault((why, fold(nodes)), []).append(name)
    return [f"{', '.join(names)} left out on {nodes}: {why}" for (why, nodes), names in alike.items()]


def _releases(sight: Sight) -> list[tuple[int, ...]]:
    return sorted(release_of(one.version) for one in sight.known(LoadedNcclFacts).values())


def _gids(sight: Sight, found: Fabric) -> Advice:
    """Name the GID of RoCE v2 with the IPv4 address to an NCCL that would take the table's first one."""
    known, kept = sight.known(LoadedNcclFacts), found.kept
    old = [node for node in kept if node in known and () < release_of(known[node].version) < AUTOMATIC_GID]
    roce = all(port.link_layer == "Ethernet" for ports in kept.values() for port in ports)
    if not roce or len(old) < len(kept) or _set_already(sight, GID):
        return Advice({})
    indexes = {node: _index(active(ports)) for node, ports in kept.items()}
    version = known[old[0]].version
    if unclear := [node for node, index in indexes.items() if index is None]:
        why = f"NCCL {version} needs RoCE v2's GID index, and on {fold(unclear)} no one index is right for all ports"
        return Advice({GID: Setting(None, f"{why}; NCCL 2.21 finds it by itself", decided=False)}, (f"{GID}: {why}",))
    if set(indexes.values()) == {0}:
        return Advice({})
    return _named(sight, {node: str(index) for node, index in indexes.items()}, version)


def _named(sight: Sight, values: Mapping[str, str], version: str) -> Advice:
    why = f"NCCL {version} takes GID 0 by itself; RoCE v2 with the IPv4 address is at"
    groups = nodes_by_value(values)
    if len(groups) == 1:
        index = next(iter(groups))
        return Advice({GID: Setting(index, f"{why} {index}")})
    told = ", ".join(f"{index} on {fold(nodes)}" for index, nodes in groups.items())
    return Advice(
        {GID: Setting(None, f"{why} {told}: {OWN}")},
        tuple(lines_to_type(GID, values, sight.environments, release_of(version))),
        per_node=own_values(GID, values, why),
    )


def _index(ports: tuple[HcaPort, ...]) -> int | None:
    """Return the one index at which all ports have it, None where there is none."""
    found = {ipv4_index(port) for port in ports}
    return found.pop() if len(found) == 1 else None


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
