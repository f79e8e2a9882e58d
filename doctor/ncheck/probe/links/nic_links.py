"""What the network cards of a node let through: the HCAs that carry the data, or the interface that TCP uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ncheck.expression import expression
from ncheck.facts.infiniband import HcaPort
from ncheck.facts.nics import Interface
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.interface_names import Kind
from ncheck.parse.topology_matrix import closest_nics
from ncheck.probe.links.ceiling import Ceiling, Component, lowest, unknown
from ncheck.probe.links.gpu_links import gpu_of_first_rank
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.links.pcie_links import to_device
from ncheck.probe.node_result import Carried, NodeResult, Step

# NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
_USED = expression(r"\[\d+\](?P<hca>[A-Za-z0-9_.-]+):(?P<port>\d+)/")

# Beyond this, one processor core copies more slowly than the wire, and its speed is unknown.
_FASTEST_BY_TCP = 10_000  # Mb/s
_PAYLOAD = 0.94  # the rest of what a wire carries is headers, at an MTU of 1500


@dataclass(frozen=True)
class Rails:
    """The Active HCA ports that carry a node's data, and those that should but are not Active."""

    used: tuple[HcaPort, ...]
    inactive: tuple[HcaPort, ...] = ()


def by_rdma(step: Step, result: NodeResult) -> bool | None:
    """Return whether NCCL uses the HCAs, by its log or by NCCL_NET; None if a plug-in may carry the data."""
    log = " ".join(result.used)
    for words, answer in (("NET/IB", True), ("NET/Socket", False)):
        if words in log:
            return answer
    if "NET/" in log or step.net.lower() not in ("", "ib", "socket"):
        return None
    return step.net.lower() == "ib" or (not step.net and any(":" in device for device in result.planned))


def rails_of(node: str, hardware: NodeHardware, result: NodeResult) -> Rails | Ceiling:
    """Return the ports in NCCL's log, otherwise those of the plan; an unknown ceiling if they are not known."""
    if hardware.infiniband is None:
        return unknown(f"the HCAs of {node}")
    known = {port.name: port for port in hardware.infiniband.ports}
    logged = [found for line in result.used if "NET/IB" in line for found in _USED.finditer(line)]
    planned = (device for device in result.planned if ":" in device)
    names = tuple(dict.fromkeys([f"{found['hca']}:{found['port']}" for found in logged] or planned))
    if missing := [name for name in names if name not in known]:
        return unknown(f"{missing[0]} of {node}")
    ports = [known[name] for name in names]
    used = tuple(port for port in ports if port.state == "Active")
    if not used:
        return unknown(f"which HCAs {node} uses")
    silent = next((port for port in used if not port.rate), None)
    if silent:
        return unknown(f"the rate of {silent.hca} of {node}")
    return Rails(used, tuple(port for port in ports if port.state != "Active"))


def nic_sum(node: str, hardware: NodeHardware, rails: Rails, peers: int, fastest: float) -> Ceiling:
    """Return the sum of a node's rails. `peers`: the most rails of any node; `fastest`: their highest rate in Gb/s."""
    parts = tuple(_cards(node, hardware, rails.used))
    lowered = [why for part in parts for why in part.lowered_by]
    if len(rails.used) < peers:
        inactive = "".join(f", {port.hca} port {port.port} is {port.state}" for port in rails.inactive)
        lowered.insert(0, f"{len(rails.used)} of {peers} rails on {node}{inactive}")
    slow = [port for port in rails.used if (port.rate or 0.0) < fastest]
    lowered += [f"{port.hca} of {node} runs at {port.rate:g} of {fastest:g} Gb/s" for port in slow]
    total = sum(part.busbw or 0.0 for part in parts)
    narrow = any(part.narrow for part in parts)
    lowered_by = tuple(dict.fromkeys(lowered))
    return Ceiling(total, f"NIC sum: {_rates(rails.used)}", lowered_by, component=Component.NIC, narrow=narrow)


def by_few_gpus(node: str, hardware: NodeHardware, ranks: int) -> Ceiling | None:
    """Return what the PCIe links of the GPUs in use carry together, where a node has more GPUs than ranks; None where
    all are in use, or that is not known. A machine has NICs for all of its GPUs.
    """
    gpus = hardware.gpus.gpus if hardware.gpus else ()
    if not hardware.pcie or ranks >= len(gpus):
        return None
    used = sorted(gpus, key=lambda gpu: gpu.index)[:ranks]
    buses = [to_device(f"GPU {gpu.index}", node, hardware.pcie.gpus.get(gpu.pci, ()), idle=True) for gpu in used]
    slowest = lowest(bus for bus in buses if bus)
    if slowest.busbw is None or not all(buses):
        return None
    return (
        replace(slowest, busbw=ranks * slowest.busbw, term=f"{slowest.term}, of {ranks} ranks")
        if ranks > 1
        else slowest
    )


def of_each_rank(node: str, hardware: NodeHardware, rails: Rails, ranks: int) -> Ceiling:
    """Return what the NIC of each rank gives, where each has one to itself or shares it; the slowest counts."""
    used = rails.used
    if len(used) > ranks:
        return unknown(f"whether the {ranks} ranks of {node} use more than one NIC each")
    card = lowest(_of_each_port(node, hardware, used))
    if card.busbw is None:
        return card
    sharing = -(-ranks // len(used))
    term = card.term if sharing == 1 else f"{card.term} for {sharing} ranks"
    return replace(card, busbw=card.busbw / sharing, term=term)


def _of_each_port(node: str, hardware: NodeHardware, used: tuple[HcaPort, ...]) -> Iterator[Ceiling]:
    for ports in _by_card(used):
        card = next(_cards(node, hardware, ports))
        if card.busbw is not None:
            rates = f"one NIC: {_rates(ports[:1])}" if card.component is Component.NIC else card.term
            yield replace(card, busbw=card.busbw / len(ports), term=rates)


def one_rail(node: str, hardware: NodeHardware, rails: Rails, result: NodeResult) -> Ceiling:
    """Return what the HCA of a single rank gives: the one that carried most, or the nearest to the GPU."""
    port = _nearest(hardware, rails.used, result.carried)
    card = next(_cards(node, hardware, (port,)))
    gpu = gpu_of_first_rank(hardware)
    links = hardware.pcie.gpus.get(gpu.pci, ()) if hardware.pcie and gpu else ()
    bus = to_device(f"GPU {gpu.index}", node, links, idle=True) if gpu else None
    return lowest((card, bus)) if bus else card


def by_tcp(node: str, hardware: NodeHardware, result: NodeResult) -> Ceiling:
    """Return what TCP reaches over a wire that one core can fill; faster wires are unknown."""
    names = [place for place in result.planned if ":" not in place]
    if hardware.nics is None or len(names) != 1:
        return unknown(f"which interface of {node} TCP uses")
    nic = next((nic for nic in hardware.nics.interfaces if nic.name == names[0]), None)
    if nic is None or nic.kind is not Kind.PHYSICAL or not nic.speed:
        return unknown(f"the speed of {names[0]} of {node}" + (f" ({nic.kind.value})" if nic else ""))
    return _over_wire(node, nic, nic.speed)


def _over_wire(node: str, nic: Interface, speed: int) -> Ceiling:
    if speed > _FASTEST_BY_TCP:
        return unknown(f"how fast one core of {node} copies: {nic.name} has {speed / 1000:g} Gb/s")
    lowered = (f"{nic.name} of {node} is half duplex",) if nic.duplex == "half" else ()
    return Ceiling(speed / 8000 * _PAYLOAD, f"TCP over one interface of {speed / 1000:g} Gb/s", lowered)


def _nearest(hardware: NodeHardware, ports: tuple[HcaPort, ...], carried: Mapping[str, Carried]) -> HcaPort:
    busiest = max(ports, key=lambda port: _moved(carried, port))
    if _moved(carried, busiest):
        return busiest
    if hardware.topology is None or not hardware.topology.gpus:
        return min(ports, key=lambda port: port.rate or 0.0)
    near, _ = closest_nics(hardware.topology, hardware.topology.gpus[0])
    names = {hardware.topology.legend.get(nic, nic) for nic in near}
    return min(ports, key=lambda port: (port.hca not in names, port.rate or 0.0))


def _moved(carried: Mapping[str, Carried], port: HcaPort) -> int:
    counted = carried.get(port.name)
    return counted.sent + counted.received if counted else 0


def _cards(node: str, hardware: NodeHardware, ports: tuple[HcaPort, ...]) -> Iterator[Ceiling]:
    """Yield what each card carries: its ports' rates, or its PCIe link if that is slower.

    The functions of one card (0000:3b:00.0 and .1) share its link.
    """
    for own in _by_card(ports):
        busbw = sum(port.rate or 0.0 for port in own) / 8
        rates = Ceiling(busbw, f"one NIC: {_rates(own)}", component=Component.NIC)
        links = hardware.pcie.hcas.get(own[0].hca, ()) if hardware.pcie else ()
        bus = to_device(own[0].hca, node, links)
        yield lowest((rates, bus)) if bus else rates


def _by_card(ports: tuple[HcaPort, ...]) -> tuple[tuple[HcaPort, ...], ...]:
    cards: dict[str, list[HcaPort]] = {}
    for port in ports:
        cards.setdefault(port.pci.rpartition(".")[0] or port.hca, []).append(port)
    return tuple(map(tuple, cards.values()))


def _rates(ports: tuple[HcaPort, ...]) -> str:
    rates = sorted({port.rate or 0.0 for port in ports}, reverse=True)
    return " + ".join(f"{sum(port.rate == rate for port in ports)} x {rate:g} Gb/s" for rate in rates)
