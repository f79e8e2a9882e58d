"""An interface is slower or faster than those of the other nodes in its subnet

## What it finds
Subnets in which every node has an address, and nodes whose interface there runs at another speed than the rest.
Interfaces whose driver tells no speed, as in many virtual machines, are left out.

## Why it matters
A port that came up at 1 Gb/s after a bad negotiation is reachable and healthy in every other way. All ranks wait for
it in every step that goes over TCP.

## What to type
`sudo ethtool NAME` on the named nodes shows the speed and what both ends offer; change the cable or the switch port.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import shared


@cluster_check("NC303", Severity.WARNING, NicFacts)
def interface_speed_differs(cluster: Cluster) -> Iterator[Problem]:
    for subnet, members in shared(cluster.facts(NicFacts)).items():
        speeds = {node: max(seat.interface.speed or 0 for seat in seats) for node, seats in members.items()}
        parted = split({node: f"{speed / 1000:g} Gb/s" for node, speed in speeds.items() if speed})
        if parted:
            name = members[parted.odd[0]][0].interface.name
            message = f"the speed of interfaces in {subnet} differs: {parted.told()}"
            yield Problem(message, f"sudo ethtool {quote(name)}", nodes=parted.odd)
