"""What carries a job's data between nodes: HCA ports, or one interface of each node; and the speed that is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import Kind, NicFacts
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.fact import Absent
from ncheck.nccl.choice import choices
from ncheck.nccl.settings import GLOO, PlacedSetting, is_on
from ncheck.parity import nodes_by_value
from ncheck.plan.hca import sort_ports
from ncheck.plan.inputs import environments, logged_in, rdma_everywhere
from ncheck.plan.variables import job_network
from ncheck.probe.links.algorithms import settings_on
from ncheck.probe.links.hardware import hardware_of

NAMED = "--link-speed"


@dataclass(frozen=True)
class Carriers:
    """`rdma`: NCCL uses the HCAs. Otherwise `interfaces` has the one that carries the data, of each node that has
    exactly one. `cpus`: no node has a GPU, and gloo carries the data.
    """

    rdma: bool
    interfaces: Mapping[str, str]
    cpus: bool


def carriers_of(reached: Cluster) -> Carriers:
    """Return what carries the data of a job on these nodes, which were all logged in to."""
    cpus = all(isinstance(reached.known[name].get(GpuFacts), Absent) for name in reached.names)
    if len(reached) == 1:
        return Carriers(rdma=False, interfaces={}, cpus=cpus)
    if cpus:
        return Carriers(rdma=False, interfaces=dict(_of_gloo(reached)), cpus=True)
    kept = any(by_sockets(settings_on(hardware_of(reached.known[name]))) for name in reached.names)
    if rdma_everywhere(reached) and not kept:
        return Carriers(rdma=True, interfaces={}, cpus=False)
    return Carriers(rdma=False, interfaces=dict(_of_nccl(reached)), cpus=False)


def by_sockets(settings: Mapping[str, PlacedSetting]) -> bool:
    """Return whether these settings keep NCCL from the HCAs."""
    net = settings["NCCL_NET"].value.lower() if "NCCL_NET" in settings else ""
    return is_on(settings, "NCCL_IB_DISABLE") or net == "socket"


def _of_gloo(reached: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the interface that GLOO_SOCKET_IFNAME names, otherwise the one in the network of the plan."""
    network, own = job_network(reached).network, environments(reached)
    for node, addresses in network.members.items() if network else ():
        names = dict.fromkeys(address.interface.name for address in addresses)
        named = own[node].variables.get(GLOO)
        if named is None or named in names:
            yield node, named or next(iter(names))


def _of_nccl(reached: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the interface that NCCL itself picks, where it picks one alone."""
    own, nccl = environments(reached), reached.facts(LoadedNcclFacts)
    for node, nics in reached.facts(NicFacts).items():
        found = {tuple(nic.name for nic, _ in choice.used) for choice in choices(nics, own[node], nccl.get(node))}
        if len(found) == 1 and len(names := found.pop()) == 1:
            yield node, names[0]


def at_speed(cluster: Cluster, speed: float | None) -> tuple[Cluster, tuple[str, ...]]:
    """Return the cluster as if what carries the data had so many Gb/s; None changes nothing. And what that replaced."""
    if speed is None:
        return cluster, ()
    reached = logged_in(cluster)
    carriers, ports = carriers_of(reached), sort_ports(reached).used
    known, shown = dict(cluster.known), dict[str, dict[str, float | None]]()
    for node in reached.names:
        names = tuple(port.name for port in ports[node]) if carriers.rdma else (carriers.interfaces.get(node, ""),)
        known[node], shown[node] = _with_speed(known[node], names, speed)
    return replace(cluster, known=known), tuple(_said(shown, speed))


def _said(shown: Mapping[str, Mapping[str, float | None]], speed: float) -> Iterator[str]:
    """Yield what is said of a speed that is named; `shown`: by node and NIC, what it shows."""
    if not any(shown.values()):
        yield f"{NAMED} is not used: which one NIC of each node carries the data is not known"
    nodes: dict[tuple[float | None, tuple[str, ...]], list[str]] = {}
    for node, rates in shown.items():
        for rate, names in nodes_by_value(rates).items():
            nodes.setdefault((rate, names), []).append(node)
    for (rate, names), where in nodes.items():
        instead = f"in place of the {rate:g} Gb/s that it shows" if rate else "as it shows no speed"
        if rate != speed:
            yield f"{folded(names)} on {fold(where)}: {speed:g} Gb/s by {NAMED}, {instead}"


def folded(names: Iterable[str]) -> str:
    """Return "mlx5_[0-7]:1" for the names of these ports, or "eth0" for that of an interface."""
    nics: dict[str, list[str]] = {}
    for name in names:
        nic, colon, port = name.partition(":")
        nics.setdefault(colon + port, []).append(nic)
    return ", ".join(f"{fold(same)}{port}" for port, same in nics.items())


def _with_speed(facts: Facts, names: tuple[str, ...], speed: float) -> tuple[Facts, dict[str, float | None]]:
    """Return a node's facts with this speed of these NICs, and the speeds that they show."""
    hcas, nics = facts.get(InfinibandFacts), facts.get(NicFacts)
    changed, shown = dict(facts), dict[str, float | None]()
    if isinstance(hcas, InfinibandFacts):
        shown |= {port.name: port.rate for port in hcas.ports if port.name in names}
        ports = tuple(replace(port, rate=speed) if port.name in names else port for port in hcas.ports)
        changed[InfinibandFacts] = replace(hcas, ports=ports)
    if isinstance(nics, NicFacts):
        shown |= {nic.name: nic.speed / 1000 if nic.speed else None for nic in nics.interfaces if nic.name in names}
        mbps = round(speed * 1000)  # of the path, whatever kind of interface it begins at
        known = (replace(nic, speed=mbps, kind=Kind.PHYSICAL) if nic.name in names else nic for nic in nics.interfaces)
        changed[NicFacts] = NicFacts(tuple(known))
    return changed, shown
