"""Several interfaces in one subnet answer for each other's addresses

## What it finds
Nodes with addresses on two or more interfaces in one subnet, where the kernel answers ARP requests for any of these
addresses on any of the interfaces. This is the case unless arp_filter is 1, or both arp_ignore and arp_announce are at
least 1. The effective value of an interface is the larger one of its own setting and of "all".

## Why it matters
Peers learn the hardware address of one card for both IP addresses. All traffic then arrives on one card, so a node with
two cards has the bandwidth of one. Which card it is changes when ARP entries expire, and a strict rp_filter drops
packets that arrive on the other card.

## What to type
`sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2` on the node, and the same two lines in
/etc/sysctl.d. A separate subnet for each interface is better.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import several_interfaces

FIX = "sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2"


@node_check("NC353", Severity.WARNING, NicFacts, NetSettingsFacts)
def arp_flux(node: NodeView) -> Iterator[Problem]:
    for subnet, addresses in several_interfaces(node[NicFacts]).items():
        names = list(dict.fromkeys(address.interface.name for address in addresses))
        if ":" not in subnet and not all(_answers_alone(node[NetSettingsFacts].effective(name)) for name in names):
            yield Problem(f"each of {' and '.join(names)} answers ARP requests for all addresses in {subnet}", FIX)


def _answers_alone(settings: InterfaceSettings) -> bool:
    return settings.arp_filter > 0 or (settings.arp_ignore > 0 and settings.arp_announce > 0)
