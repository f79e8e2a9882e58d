"""Any of a node's interfaces in one subnet answers for the address of the other

## What it finds
Nodes with addresses on two interfaces or more in one subnet, where the kernel answers ARP for any address by any of
them, or asks in the name of any of them: neither arp_filter is 1, nor arp_ignore at least 1 with arp_announce at
least 1. What holds for an interface is the greater of its own value and that of "all".

## Why it matters
Peers learn one card's hardware address for both IP addresses. All traffic then arrives by one card, so a node with
two has the bandwidth of one; which one changes when entries age, and a strict rp_filter drops what came in by the
other.

## What to type
`sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2` on the node, and the same two lines in
/etc/sysctl.d. Better still, give each interface a subnet of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import together

FIX = "sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2"


@node_check("NC353", Severity.WARNING, NicFacts, NetSettingsFacts)
def arp_flux(node: NodeView) -> Iterator[Problem]:
    for subnet, seats in together(node[NicFacts]).items():
        names = list(dict.fromkeys(seat.interface.name for seat in seats))
        if ":" not in subnet and not all(_kept_apart(node[NetSettingsFacts].effective(name)) for name in names):
            yield Problem(f"each of {' and '.join(names)} answers for all addresses in {subnet}", FIX)


def _kept_apart(settings: InterfaceSettings) -> bool:
    return settings.arp_filter > 0 or (settings.arp_ignore > 0 and settings.arp_announce > 0)
