"""The interfaces that NCCL's TCP transport uses besides the first one, and that no other node is behind.

Each rank listens at one address of each interface that NCCL selects, and others connect there: one address that they
cannot reach is enough for the job to hang (NCCL source, transport/net_socket.cc and graph/search.cc).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from ipaddress import ip_address

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import EFA, InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.net_plugin import OF_INFINIBAND, NetPluginFacts
from ncheck.facts.nics import BMC_DRIVERS, Address, Interface, NicFacts, SubnetAddress
from ncheck.facts.routes import RouteFacts, unroutable
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster, NodeView
from ncheck.model.fact import Absent, Read
from ncheck.nccl.choice import Choice, choices
from ncheck.nccl.hca import active
from ncheck.nccl.hca_ports import usable
from ncheck.nccl.net_plugin import loaded
from ncheck.nccl.setting_problems import rdma_off
from ncheck.nccl.settings import PlacedSetting, settings_of
from ncheck.network.link_faults import ADDRESS_FACTS, best_addresses, faults
from ncheck.network.subnets import SubnetMembers, machines, subnets
from ncheck.parity import nodes_by_value

# What `over_tcp` reads, besides EnvironmentFacts.
TCP_FACTS = (InfinibandFacts, LibraryFacts, LoadedNcclFacts, NetPluginFacts)

_PLUGIN = "NCCL_NET_PLUGIN"
Where = tuple[str, str]  # an interface's name, and an address


def over_tcp(cluster: Cluster) -> bool | None:
    """Tell whether NCCL sends a job's data over TCP: on some node it has nothing better. None: that is unknown.

    What could not be read of libraries may be there. Which network a plug-in uses is its own affair.
    """
    environments, nccls = cluster.facts(EnvironmentFacts), cluster.facts(LoadedNcclFacts)
    libraries = cluster.facts(LibraryFacts)
    hcas = {**cluster.missing(InfinibandFacts), **cluster.facts(InfinibandFacts)}
    plugins = {**cluster.missing(NetPluginFacts), **cluster.facts(NetPluginFacts)}
    found = {
        _over_tcp(hcas.get(name), environments.get(name), nccls.get(name), libraries.get(name), plugins.get(name))
        for name in cluster.names
    }
    return True if True in found else None if None in found else False


def _over_tcp(
    hcas: Read[InfinibandFacts] | None,
    environment: EnvironmentFacts | None,
    nccl: LoadedNcclFacts | None,
    libraries: LibraryFacts | None,
    plugin: Read[NetPluginFacts] | None,
) -> bool | None:
    settings = settings_of(environment, nccl) if environment else {}
    by_plugin = _by_plugin(settings, plugin, nccl)
    if by_plugin:
        return False
    if not isinstance(hcas, InfinibandFacts):
        return True if isinstance(hcas, Absent) else None
    ports = [port for port in active(hcas.ports) if usable(port.hca, libraries)]
    if not ports and by_plugin is None and any(port.link_layer == EFA for port in hcas.ports):
        return None
    return not ports or any(rdma_off(settings, ports))


def _by_plugin(
    settings: Mapping[str, PlacedSetting], found: Read[NetPluginFacts] | None, nccl: LoadedNcclFacts | None
) -> bool | None:
    """Return whether a network plug-in carries the data; None where it is not known which one NCCL loads. One that is
    of InfiniBand uses the same ports as NCCL itself, by the same settings.
    """
    network, named = (settings[name].value.lower() if name in settings else "" for name in ("NCCL_NET", _PLUGIN))
    if network in ("ib", "socket"):
        return False
    if isinstance(found, NetPluginFacts):
        plugin = loaded(found, nccl)
        return plugin is not None and plugin.kind != OF_INFINIBAND
    return True if network or named not in ("", "none") else False if isinstance(found, Absent) else None


@dataclass(frozen=True)
class DeadEnd:
    """An interface that NCCL uses on a node, its address there, and why other nodes cannot connect to it."""

    name: str
    ip: str
    why: str


@dataclass(frozen=True)
class Used:
    """What NCCL uses on a node by one set of its rules: `choice`, and those of its interfaces that lead nowhere."""

    choice: Choice
    dead: tuple[DeadEnd, ...]


DEAD_END_FACTS = (NcclPickFacts, RouteFacts, *ADDRESS_FACTS)  # what `used_by_nccl` reads, besides these and TCP_FACTS


def used_by_nccl(cluster: Cluster) -> dict[str, tuple[Used, ...]]:
    """Return what NCCL uses on each node: once, or if its release is unknown, by the old rules and by the new ones.

    Nodes whose first interface leads nowhere itself are left out: that is another fault, with the same repair.
    """
    best, nodes = best_addresses(cluster), _Nodes(cluster)
    found: dict[str, tuple[Used, ...]] = {}
    for node in cluster:
        alternatives = choices(
            node[NicFacts], node[EnvironmentFacts], node.maybe(LoadedNcclFacts), node.maybe(NcclPickFacts)
        )
        good = {(address.interface.name, address.ip): address for address in best[node.name]}
        judged = [choice for choice in alternatives if choice.where in good and not choice.stray]
        if judged:
            found[node.name] = tuple(Used(choice, tuple(nodes.dead_ends(node, choice, good))) for choice in judged)
    return found


def in_each(alternatives: tuple[Used, ...]) -> tuple[DeadEnd, ...]:
    """Return what leads nowhere whatever NCCL's release is."""
    sure = set.intersection(*({end.name for end in used.dead} for used in alternatives))
    return tuple(end for end in alternatives[-1].dead if end.name in sure)


@dataclass(frozen=True)
class _Nodes:
    """What several nodes together show of an address."""

    cluster: Cluster
    _faults: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def dead_ends(self, node: NodeView, choice: Choice, good: Mapping[Where, SubnetAddress]) -> Iterator[DeadEnd]:
        own = good[choice.where].subnet
        for nic, address in choice.used:
            member = good.get((nic.name, address.ip))
            if why := self._why_lost(node.name, member, own) if member else self._why_not(nic, address):
                yield DeadEnd(nic.name, address.ip, why)

    def _why_not(self, nic: Interface, address: Address) -> str:
        """Return why an address is none at which other nodes can reach this one."""
        if nic.driver in BMC_DRIVERS:
            return "the network of the management controller"
        if ip_address(address.ip).is_link_local:
            return "a link-local address"
        if not nic.running:
            return "without a link" if nic.up else "down"
        if address.ip in self._shared:
            return "other nodes have the same address"
        return f"{nic.kind.value}, no network between nodes"

    def _why_lost(self, node: str, member: SubnetAddress, own: str) -> str:
        """Return why other nodes do not reach an address, although it is one of its kind; "" as far as is known."""
        if member.subnet == own:
            return ""
        if (why := self._faulty(member.subnet).get(node)) and not self._faulty(own):
            return why
        lost = self._without_route.get(member.ip, ())
        return f"{fold(lost)} {'has' if len(lost) == 1 else 'have'} no route to it" if lost else ""

    def _faulty(self, subnet: str) -> Mapping[str, str]:
        """Return the nodes that do not reach each other in a subnet, each with its first fault."""
        if subnet not in self._faults:
            found = faults(self.cluster.facts(LinkFacts), subnet, self._members.get(subnet, ()))
            sides = ((node, fault.summary) for fault in reversed(found) for pair in fault.pairs for node in pair)
            self._faults[subnet] = dict(sides)
        return self._faults[subnet]

    @cached_property
    def _without_route(self) -> Mapping[str, Mapping[str, str]]:
        return unroutable(self.cluster.facts(RouteFacts))

    @cached_property
    def _machines(self) -> Mapping[str, NicFacts]:
        return machines(self.cluster.facts(NicFacts), self.cluster.facts(IdentityFacts))

    @cached_property
    def _members(self) -> Mapping[str, SubnetMembers]:
        return subnets(self._machines)

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The addresses that several nodes have, on interfaces of any kind."""
        own = [{address.ip for nic in nics.interfaces for address in nic.addresses} for nics in self._machines.values()]
        counted = Counter(ip for addresses in own for ip in addresses)
        return frozenset(ip for ip, count in counted.items() if count > 1)


_NAMED = 3  # interfaces in a message


def described(dead: Mapping[str, tuple[DeadEnd, ...]]) -> str:
    """Return "veth3f9a1c2 (a link-local address), br-5b1d7c3e9f20 (other nodes have the same address)"."""
    names: dict[str, dict[str, None]] = {}
    for end in (end for ends in dead.values() for end in ends):
        names.setdefault(end.why, {})[end.name] = None
    return ", ".join(f"{_few([*own])} ({why})" for why, own in names.items())


def _few(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def selections(used: Mapping[str, Used]) -> tuple[str, ...]:
    """Return lines such as "NCCL uses eno1 10.0.0.1, veth3f9a1c2 fe80::2: gpu01"."""
    lines: dict[str, str] = {}
    for node, own in used.items():
        by = f"{own.choice.why} selects" if own.choice.why.startswith("NCCL_") else "NCCL uses"
        lines[node] = f"{by} {', '.join(f'{nic.name} {address.ip}' for nic, address in own.choice.used)}"
    return tuple(f"{line}: {fold(nodes)}" for line, nodes in nodes_by_value(lines).items())
