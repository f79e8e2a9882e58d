"""Interfaces in one subnet run at different speeds

## What it finds
Subnets in which every node has an address, and nodes whose interface there runs at another speed than the others.
Interfaces whose driver reports no speed, as in many virtual machines, are not compared.

## Why it matters
A port that came up at 1 Gb/s after a failed negotiation is reachable and looks healthy in every other way. All ranks
wait for it in every step that uses TCP.

## What to type
`sudo ethtool NAME` on the named nodes shows the speed and what both ends offer; replace the cable or change the switch
port.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import shared, speed


@cluster_check("NC303", Severity.WARNING, NicFacts)
def interface_speed_differs(cluster: Cluster) -> Iterator[Problem]:
    for subnet, members in shared(cluster.facts(NicFacts)).items():
        speeds = {node: speed({node: addresses}) for node, addresses in members.items()}
        parted = split({node: f"{mbps / 1000:g} Gb/s" for node, mbps in speeds.items() if mbps})
        if parted:
            name = members[parted.odd[0]][0].interface.name
            message = f"the speed of interfaces in {subnet} differs: {parted.summary()}"
            yield Problem(message, f"sudo ethtool {quote(name)}", nodes=parted.odd, look=True)
