"""Which network carried a step, and the line that shows how its links are."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from doctor.model.facts import HcaPort, Turn
from doctor.probe.expect.hardware import Hardware
from doctor.probe.expect.nic_links import by_rdma
from doctor.probe.verdicts.seen import busiest

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
