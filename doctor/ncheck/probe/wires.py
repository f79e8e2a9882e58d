"""What the run itself shows of why a node falls short: an idle rail, GPUDirect RDMA off, too few PCIe lanes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from shlex import quote

from ncheck.facts.infiniband import HcaPort
from ncheck.facts.pcie import PcieLink
from ncheck.facts.probe import Turn
from ncheck.topology.hardware import Hardware
from ncheck.topology.nic_links import by_rdma

# NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
_NO_GDR = re.compile(r"GPU Direct RDMA Disabled for HCA \d+ '(?P<hca>[\w.-]+)'")


_LITTLE = 0.05  # of what the busiest rail carried


def busiest(turn: Turn) -> str:
    """Return the interface or HCA port of the plan that carried most of a step, "" where none is known to have."""
    moved = {place: _moved(turn, place) for place in turn.planned if _moved(turn, place)}
    return max(moved, key=lambda place: moved[place], default="")


def idle_rails(turns: Iterable[Turn]) -> tuple[str, ...]:
    """Return the HCA ports of the plan that carried next to nothing in steps where others of the node carried data.

    A step with one rank a node uses one rail, and tells nothing of the others.
    """
    idle: dict[str, None] = {}
    for turn in turns:
        if turn.step.world > len(turn.step.group) > 1:
            moved = {place: _moved(turn, place) for place in turn.planned if ":" in place}
            most = max(moved.values(), default=0)
            idle.update(dict.fromkeys(place for place, count in moved.items() if count < _LITTLE * most))
    return tuple(idle)


def seen_of(node: str, hardware: Hardware, turns: Iterable[Turn]) -> tuple[str, ...]:
    """Return the facts that lower what a node reaches, each as a line."""
    held = tuple(turns)
    said = (found for turn in held for line in (*turn.used, *turn.log) for found in _NO_GDR.finditer(line))
    without = ", ".join(dict.fromkeys(found["hca"] for found in said))
    idle = (f"{place} of {node} carried next to nothing, while its other rails did" for place in idle_rails(held))
    no_gdr = (f"GPUDirect RDMA is off for {without} of {node}, by NCCL's own words",) if without else ()
    return (*idle, *no_gdr, *_narrow(node, hardware))


def _narrow(node: str, hardware: Hardware) -> Iterator[str]:
    if hardware.pcie is None:
        return
    names = {gpu.pci: f"GPU {gpu.index}" for gpu in hardware.gpus.gpus} if hardware.gpus else {}
    devices: Mapping[str, tuple[PcieLink, ...]] = {
        **{names.get(address, address): links for address, links in hardware.pcie.gpus.items()}, **hardware.pcie.hcas
    }  # fmt: skip
    for name, links in devices.items():
        for link in links:
            if link.width and link.most_width and link.width < link.most_width:
                yield f"PCIe x{link.width} of x{link.most_width} at {name} of {node}"


def _moved(turn: Turn, place: str) -> int:
    carried = turn.carried.get(place)
    return carried.sent + carried.received if carried else 0


FABRIC = "sudo iblinkinfo"


_BARE = Hardware()


def by_infiniband(turn: Turn, hardware: Hardware) -> bool:
    """Tell whether HCAs carried it over a fabric of their own; RoCE goes by Ethernet."""
    return _by_hcas(turn) and not any(port.link_layer == "Ethernet" for port in _ports(turn, hardware))


def shows_links(turns: Mapping[str, Turn], hardware: Mapping[str, Hardware]) -> str:
    """Return what shows the links of a step: those of the fabric, or what the first node's interface lost."""
    for node, turn in turns.items():
        own = hardware.get(node, _BARE)
        if by_infiniband(turn, own):
            return FABRIC
        if name := _interface(turn, own):
            return f"sudo ethtool -S {quote(name)}"
    return "ip -s link"


def _by_hcas(turn: Turn) -> bool:
    return not turn.step.means.on_cpus and by_rdma(turn.step, turn) is True


def _interface(turn: Turn, hardware: Hardware) -> str:
    """Return the Ethernet interface that carried the data, or was to; "" where none is known."""
    if _by_hcas(turn):
        return next((port.netdev for port in _ports(turn, hardware) if port.netdev), "")
    names = [place for place in turn.planned if ":" not in place]
    carried = busiest(turn)
    return carried if carried in names else next(iter(names), "")


def _ports(turn: Turn, hardware: Hardware) -> list[HcaPort]:
    known = hardware.infiniband.ports if hardware.infiniband else ()
    return [port for port in known if port.name in turn.planned]
