"""NCCL_IB_HCA and NCCL_IB_GID_INDEX: set only where NCCL's default, all Active ports, would be wrong.

Clusters here hold only nodes that were logged in to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.plan import Setting
from ncheck.nccl.hca import AUTOMATIC_GID, USED_LAYERS, active, ipv4_index, selected, value_for
from ncheck.nccl.settings import LINK_STATE_COUNTS, release_of, settings_in_force
from ncheck.parity import nodes_by_value
from ncheck.plan.advice import PER_NODE, Advice, commands_to_set, merged, per_node_values
from ncheck.plan.inputs import environments, rdma_everywhere

HCA, GID = "NCCL_IB_HCA", "NCCL_IB_GID_INDEX"


def advise_hcas(cluster: Cluster) -> Advice:
    """Return the settings of the HCA ports; none unless every node has an Active port."""
    if not rdma_everywhere(cluster):
        return Advice({})
    ports = sort_ports(cluster)
    if not all(ports.used.values()):  # a node would have no port left: what the ports are for is unclear
        return Advice({})
    hcas, gids = _advise_ports(cluster, ports), _advise_gids(cluster, ports)
    return Advice({**hcas.env, **gids.env}, (*hcas.notes, *gids.notes), per_node=merged(hcas.per_node, gids.per_node))


def _already_set(cluster: Cluster, variable: str) -> dict[str, str]:
    values = {
        node: settings_in_force(environment, LINK_STATE_COUNTS).get(variable, "")
        for node, environment in cluster.facts(EnvironmentFacts).items()
    }
    return {node: value for node, value in values.items() if value}


def _advise_ports(cluster: Cluster, ports: JobPorts) -> Advice:
    values = _already_set(cluster, HCA)
    facts = cluster.facts(InfinibandFacts)
    by_default = {node: selected(values.get(node, ""), facts[node].ports) for node in facts}
    if values and all(by_default.values()):
        return Advice({})  # the user chose, and some port is selected on each node
    wrong = [node for node, own in by_default.items() if not own or set(own) - set(ports.used[node])]
    if not wrong:
        return Advice({})
    evidence = tuple(_not_used(ports))
    reason = f"NCCL would use all Active ports on {fold(wrong)}, and not all are for the job"
    per_node = {node: value_for(own) for node, own in ports.used.items()}
    common = value_for(port for own in ports.used.values() for port in own)
    if all(set(selected(common, facts[node].ports)) == set(active(ports.used[node])) for node in facts):
        return Advice({HCA: Setting(common, reason, evidence)}, evidence)
    releases = sorted(release_of(nccl.version) for nccl in cluster.facts(LoadedNcclFacts).values())
    release = releases[-1] if releases else LINK_STATE_COUNTS
    return Advice(
        {HCA: Setting(None, f"{reason}; the names differ: {PER_NODE}", evidence)},
        (*evidence, *commands_to_set(HCA, per_node, environments(cluster), release)),
        per_node=per_node_values(HCA, per_node, reason),
    )


def _not_used(ports: JobPorts) -> list[str]:
    """Return why Active ports are not used, ports with one reason on the same nodes together."""
    owners: dict[tuple[str, str], dict[str, None]] = {}
    for node, reasons in ports.not_used.items():
        for port, reason in reasons.items():
            owners.setdefault((port.name, reason), {})[node] = None
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, reason), nodes in owners.items():
        alike.setdefault((reason, fold(nodes)), []).append(name)
    return [f"{', '.join(names)} not used on {nodes}: {reason}" for (reason, nodes), names in alike.items()]


def _advise_gids(cluster: Cluster, ports: JobPorts) -> Advice:
    """Set the index of the RoCE v2 GID with the IPv4 address for a release of NCCL that would use index 0."""
    known = cluster.facts(LoadedNcclFacts)
    old = [node for node in ports.used if node in known and () < release_of(known[node].version) < AUTOMATIC_GID]
    roce = all(port.link_layer == "Ethernet" for own in ports.used.values() for port in own)
    if not roce or len(old) < len(ports.used) or _already_set(cluster, GID):
        return Advice({})
    indexes = {node: _common_index(active(own)) for node, own in ports.used.items()}
    version = known[old[0]].version
    if unclear := [node for node, index in indexes.items() if index is None]:
        why = (
            f"NCCL {version} needs the RoCE v2 GID index, and on {fold(unclear)} no single index is right for all ports"
        )
        return Advice({GID: Setting(None, f"{why}; NCCL 2.21 finds it itself", decided=False)}, (f"{GID}: {why}",))
    if set(indexes.values()) == {0}:
        return Advice({})
    reason = f"NCCL {version} uses GID index 0 by default; RoCE v2 with the IPv4 address is at index"
    values = {node: str(index) for node, index in indexes.items()}
    groups = nodes_by_value(values)
    if len(groups) == 1:
        index = next(iter(groups))
        return Advice({GID: Setting(index, f"{reason} {index}")})
    where = ", ".join(f"{index} on {fold(nodes)}" for index, nodes in groups.items())
    return Advice(
        {GID: Setting(None, f"{reason} {where}: {PER_NODE}")},
        tuple(commands_to_set(GID, values, environments(cluster), release_of(version))),
        per_node=per_node_values(GID, values, reason),
    )


def _common_index(ports: tuple[HcaPort, ...]) -> int | None:
    """Return the index if it is the same on all ports, else None."""
    indexes = {ipv4_index(port) for port in ports}
    return indexes.pop() if len(indexes) == 1 else None


Place = tuple[str, int, str]  # HCA, port, type of card: ports at the same place of two nodes should be alike


@dataclass(frozen=True)
class JobPorts:
    """By node: the ports that the job should use, and the Active ports that it should not use, each with the reason."""

    used: Mapping[str, tuple[HcaPort, ...]]
    not_used: Mapping[str, Mapping[HcaPort, str]]


def sort_ports(cluster: Cluster) -> JobPorts:
    """Sort the ports of all nodes. A port that is down on one node and Active on others is kept: it needs repair."""
    nodes = {node: facts.ports for node, facts in cluster.facts(InfinibandFacts).items()}
    usual = _UsualPorts(cluster, nodes)
    reasons = {node: {port: usual.why_not(node, port) for port in ports} for node, ports in nodes.items()}
    return JobPorts(
        {node: tuple(port for port, reason in own.items() if not reason) for node, own in reasons.items()},
        {
            node: {port: reason for port, reason in own.items() if reason and port in active(nodes[node])}
            for node, own in reasons.items()
        },
    )


class _UsualPorts:
    """What is usual among the ports of all nodes, computed once."""

    def __init__(self, cluster: Cluster, nodes: Mapping[str, tuple[HcaPort, ...]]) -> None:
        self.nodes = nodes
        nics, logins = cluster.facts(NicFacts), cluster.facts(LoginFacts)
        self.login_devices = {
            node: frozenset(_login_devices(nics.get(node), logins[node].login.address)) for node in nodes
        }
        self.rates: dict[Place, float] = {}
        for port in (port for ports in nodes.values() for port in active(ports)):
            self.rates[_place(port)] = max(self.rates.get(_place(port), 0.0), port.rate or 0.0)
        self.holders = Counter(_place(port) for ports in nodes.values() for port in ports)
        self.alike = any(count == len(nodes) for count in self.holders.values())  # else names mean nothing
        self.layer = self._best_layer()
        self.rate = self._best_rate()

    def why_not(self, node: str, port: HcaPort) -> str:
        """Return why the job should not use a port; "" if it should."""
        rate = self.rates.get(_place(port))
        if rate is None or port.link_layer not in USED_LAYERS:
            return "it is Active on no node"
        if port.link_layer != self.layer:
            return f"its link layer is {port.link_layer}, the others use {self.layer}"
        if self._slow_and_for_logins(node, port):
            return f"logins arrive on {port.netdev}, and other ports are faster"
        if rate not in (0.0, self.rate):
            return f"{rate:g} Gb/s, the others {self.rate:g}: probably a separate network, such as storage"
        rare = self.alike and 2 * self.holders[_place(port)] < len(self.nodes)
        return "most nodes have no such port" if rare else ""

    def _slow_and_for_logins(self, node: str, port: HcaPort) -> bool:
        if port.netdev not in self.login_devices[node]:
            return False
        own = self.rates.get(_place(port), 0.0)
        return own < max((self.rates.get(_place(other), 0.0) for other in active(self.nodes[node])), default=0.0)

    def _best_layer(self) -> str:
        """Return the link layer with the highest total rate; InfiniBand if both are equal."""
        sums: Counter[str] = Counter()
        for port in (port for ports in self.nodes.values() for port in active(ports)):
            sums[port.link_layer] += round(port.rate or 1)
        return max(sums, key=lambda layer: (sums[layer], layer == "InfiniBand"), default="InfiniBand")

    def _best_rate(self) -> float:
        """Return the rate with the highest total, without ports for logins; of two equal totals the higher rate."""
        sums: Counter[float] = Counter()
        for node, ports in self.nodes.items():
            for port in active(ports):
                if port.link_layer == self.layer and not self._slow_and_for_logins(node, port):
                    sums[self.rates[_place(port)]] += round(self.rates[_place(port)])
        return max(sums, key=lambda rate: (sums[rate], rate), default=0.0)


def _place(port: HcaPort) -> Place:
    return port.hca, port.port, port.hca_type


def _login_devices(nics: NicFacts | None, address: str) -> Iterator[str]:
    """Yield the interfaces with the login address or the default route, and the cards of a bond among them."""
    interfaces = nics.interfaces if nics else ()
    names = {nic.name for nic in interfaces if nic.default_route or any(own.ip == address for own in nic.addresses)}
    yield from names
    yield from (nic.name for nic in interfaces if nic.master in names)
