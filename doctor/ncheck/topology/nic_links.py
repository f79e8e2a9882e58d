"""What the network cards of a node let through: the HCAs that carry the data, or the one interface that TCP takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ncheck.facts.infiniband import HcaPort
from ncheck.facts.nics import Interface
from ncheck.facts.probe import Carried, Step, Turn
from ncheck.parse.interface_names import Kind
from ncheck.parse.topology_matrix import closest_nics
from ncheck.topology.ceiling import Ceiling, lowest, unknown
from ncheck.topology.gpu_links import gpu_of_first_rank
from ncheck.topology.hardware import Hardware
from ncheck.topology.pcie_links import to_device

# NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
_USED = re.compile(r"\[\d+\](?P<hca>[A-Za-z0-9_.-]+):(?P<port>\d+)/")


# Beyond it one processor core copies no faster than the wire, and nothing tells how fast that is.
_FASTEST_BY_TCP = 10_000  # Mb/s


_PAYLOAD = 0.94  # of what a wire carries: the rest is headers at an MTU of 1500


@dataclass(frozen=True)
class Rails:
    """The Active HCA ports that carry a node's data, and those that were to and are not Active."""

    used: tuple[HcaPort, ...]
    dark: tuple[HcaPort, ...] = ()


def by_rdma(step: Step, turn: Turn) -> bool | None:
    """Tell whether NCCL goes by HCAs, by its own lines or what it was told; None where a plug-in may carry the data."""
    said = " ".join(turn.used)
    for words, answer in (("NET/IB", True), ("NET/Socket", False)):
        if words in said:
            return answer
    if "NET/" in said or step.net.lower() not in ("", "ib", "socket"):
        return None
    return step.net.lower() == "ib" or (not step.net and any(":" in place for place in turn.planned))


def rails_of(node: str, hardware: Hardware, turn: Turn) -> Rails | Ceiling:
    """Return the ports of NCCL's own words, else those of the plan; a ceiling where it cannot be told."""
    if hardware.infiniband is None:
        return unknown(f"the HCAs of {node}")
    held = {port.name: port for port in hardware.infiniband.ports}
    said = [found for line in turn.used if "NET/IB" in line for found in _USED.finditer(line)]
    planned = (place for place in turn.planned if ":" in place)
    named = tuple(dict.fromkeys([f"{one['hca']}:{one['port']}" for one in said] or planned))
    if missing := [place for place in named if place not in held]:
        return unknown(f"{missing[0]} of {node}")
    ports = [held[place] for place in named]
    used = tuple(port for port in ports if port.state == "Active")
    if not used:
        return unknown(f"which HCAs {node} uses")
    silent = next((port for port in used if not port.rate), None)
    if silent:
        return unknown(f"the rate of {silent.hca} of {node}")
    return Rails(used, tuple(port for port in ports if port.state != "Active"))


def nic_sum(node: str, hardware: Hardware, rails: Rails, peers: int, fastest: float) -> Ceiling:
    """Return the sum of a node's rails; `peers` is the most that a node here has, `fastest` their best rate in Gb/s."""
    parts = tuple(_cards(node, hardware, rails.used))
    lowered = [why for part in parts for why in part.lowered_by]
    if len(rails.used) < peers:
        dark = "".join(f", {port.hca} port {port.port} is {port.state}" for port in rails.dark)
        lowered.insert(0, f"{len(rails.used)} of {peers} rails on {node}{dark}")
    slow = [port for port in rails.used if (port.rate or 0.0) < fastest]
    lowered += [f"{port.hca} of {node} runs at {port.rate:g} of {fastest:g} Gb/s" for port in slow]
    total = sum(part.busbw or 0.0 for part in parts)
    return Ceiling(total, f"NIC sum: {_told(rails.used)}", tuple(dict.fromkeys(lowered)))


def one_rail(node: str, hardware: Hardware, rails: Rails, turn: Turn) -> Ceiling:
    """Return what the one HCA gives that a single rank uses: who carried most, or is nearest to the GPU."""
    port = _nearest(hardware, rails.used, turn.carried)
    card = next(_cards(node, hardware, (port,)))
    gpu = gpu_of_first_rank(hardware)
    links = hardware.pcie.gpus.get(gpu.pci, ()) if hardware.pcie and gpu else ()
    way = to_device(f"GPU {gpu.index}", node, links, idle=True) if gpu else None
    return lowest((card, way)) if way else card


def by_tcp(node: str, hardware: Hardware, turn: Turn) -> Ceiling:
    """Return what TCP reaches over a real wire that is slow enough for one core; else nobody can tell."""
    names = [place for place in turn.planned if ":" not in place]
    if hardware.nics is None or len(names) != 1:
        return unknown(f"which interface of {node} TCP goes by")
    nic = next((nic for nic in hardware.nics.interfaces if nic.name == names[0]), None)
    if nic is None or nic.kind is not Kind.PHYSICAL or not nic.speed:
        return unknown(f"the speed of {names[0]} of {node}" + (f" ({nic.kind.value})" if nic else ""))
    return _over_wire(node, nic, nic.speed)


def _over_wire(node: str, nic: Interface, speed: int) -> Ceiling:
    if speed > _FASTEST_BY_TCP:
        return unknown(f"how fast one core of {node} copies: {nic.name} has {speed / 1000:g} Gb/s")
    lowered = (f"{nic.name} of {node} is half duplex",) if nic.duplex == "half" else ()
    return Ceiling(speed / 8000 * _PAYLOAD, f"TCP over one interface of {speed / 1000:g} Gb/s", lowered)


def _nearest(hardware: Hardware, ports: tuple[HcaPort, ...], carried: Mapping[str, Carried]) -> HcaPort:
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


def _cards(node: str, hardware: Hardware, ports: tuple[HcaPort, ...]) -> Iterator[Ceiling]:
    """Yield what each card carries: its ports' rates, or what its PCIe link lets through where that is less.

    The functions of one card (0000:3b:00.0 and .1) share its link.
    """
    cards: dict[str, list[HcaPort]] = {}
    for port in ports:
        cards.setdefault(port.pci.rpartition(".")[0] or port.hca, []).append(port)
    for held in cards.values():
        rates = Ceiling(sum(port.rate or 0.0 for port in held) / 8, f"one NIC: {_told(tuple(held))}")
        links = hardware.pcie.hcas.get(held[0].hca, ()) if hardware.pcie else ()
        bus = to_device(held[0].hca, node, links)
        yield lowest((rates, bus)) if bus else rates


def _told(ports: tuple[HcaPort, ...]) -> str:
    rates = sorted({port.rate or 0.0 for port in ports}, reverse=True)
    return " + ".join(f"{sum(port.rate == rate for port in ports)} x {rate:g} Gb/s" for rate in rates)
