"""What is said of rails: the words of a finding, the line that repeats the test, and why nothing was tried."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from doctor.hostlist import fold
from doctor.model.facts import ProbeFacts, ToolFacts
from doctor.printable import printable
from doctor.probe.verdicts.rails import Port, Rail, Suspects, gate

_TOOLS = {"ib_write_bw", "ibv_rc_pingpong"}
_DEVICE = re.compile(r"([A-Za-z0-9_.-]{1,64}):(\d{1,3})$")  # mlx5_0:1


def fails_told(found: Suspects) -> str:
    """Say which ports fail, and with whom."""
    first = found.shown[0]
    words = printable(first.failure.words) if first.failure else ""
    if len(found.ports) == 1:
        return f"RDMA fails at {_name(found.ports[0])}, with {_partners(found)}: {words}"
    return f"RDMA fails between {first.told()}: {words}"


def slow_told(found: Suspects) -> str:
    """Say how fast the ports were, and what they should have been."""
    worst = min(found.shown, key=lambda rail: rail.gbits or 0.0)
    measured = f"{worst.gbits or 0.0:.0f} Gb/s of {worst.rate or 0.0:.0f}, less than {gate(worst.rate or 0.0):.0f}"
    if len(found.ports) == 1:
        return f"RDMA is slow at {_name(found.ports[0])}, with {_partners(found)}: {measured}"
    return f"RDMA is slow between {worst.told()}: {measured}"


def line_to_repeat(rail: Rail) -> str:
    """Return the line that repeats the test of a pair: the server in the background, then the client."""
    (server, one), (client, other) = rail.ports
    devices = [_DEVICE.match(name) for name in (one, other)]
    if not all(devices):
        return "ibv_devinfo -v"
    ends = [f"ib_write_bw -d {device[1]} -i {int(device[2])} -F --report_gbits" for device in devices if device]
    called, caller = shlex.quote(server), shlex.quote(client)
    return f"ssh {called} timeout 20 {ends[0]} & sleep 2; ssh {caller} timeout 20 {ends[1]} {called}"


def why_untried(
    tried: tuple[Rail, ...], probed: Mapping[str, ProbeFacts], tools: Mapping[str, ToolFacts]
) -> dict[str, tuple[str, ...]]:
    """Return why no rail of a node was tried, with the nodes."""
    there = {node for rail in tried for node, _ in rail.ports}
    found: dict[str, tuple[str, ...]] = {}
    for node in probed:
        if node not in there:
            held = tools.get(node)
            has = held is not None and held.tools.keys() & _TOOLS
            why = "its HCA ports were not tried" if has else _NO_TOOL
            found[why] = (*found.get(why, ()), node)
    return found


_NO_TOOL = "neither ib_write_bw (apt-get install perftest) nor ibv_rc_pingpong is on the PATH: RDMA was not tried"


def unjudged(
    tried: tuple[Rail, ...], probed: Mapping[str, ProbeFacts], tools: Mapping[str, ToolFacts]
) -> dict[str, tuple[str, ...]]:
    """Return why nothing is known of how fast a node's rails are, with the nodes."""
    measured = {node for rail in tried if rail.gbits is not None and rail.rate is not None for node, _ in rail.ports}
    why = dict(why_untried(tried, probed, tools))
    known = {node for nodes in why.values() for node in nodes}
    rest = tuple(node for node in probed if node not in measured | known)
    return {**why, **({"no bandwidth of its rails was measured": rest} if rest else {})}


def _name(port: Port) -> str:
    return f"{port[0]} {port[1]}"


def _partners(found: Suspects) -> str:
    return fold(node for rail in found.shown for node, port in rail.ports if (node, port) not in found.ports)
