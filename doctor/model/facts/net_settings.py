"""What the kernel was told about networks, by sysctl: filters, ARP, neighbours, ports, tracked connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class InterfaceSettings:
    """net.ipv4.conf.NAME.*, as set; what holds is made of these and of those of "all"."""

    rp_filter: int = 0
    arp_ignore: int = 0
    arp_announce: int = 0
    arp_filter: int = 0


@dataclass(frozen=True)
class Conntrack:
    """Connections that netfilter keeps track of in this network namespace, and how many there may be."""

    count: int
    most: int


@dataclass(frozen=True)
class NetSettingsFacts:
    """`conf` is net.ipv4.conf by interface, "all" among them.

    `ephemeral` is the range that the kernel takes a client's port from, both ends included, and `reserved` the ranges
    that it leaves out. `neighbours` maps the family, 4 or 6, to the most entries of its neighbour table; one that is
    not shown (a container, IPv6 off) is not there. `conntrack` is None where netfilter tracks nothing.
    """

    conf: Mapping[str, InterfaceSettings]
    ephemeral: tuple[int, int]
    reserved: tuple[tuple[int, int], ...] = ()
    neighbours: Mapping[int, int] = field(default_factory=dict)
    conntrack: Conntrack | None = None

    @property
    def ports(self) -> int:
        """How many ports a client may get."""
        first, last = self.ephemeral
        return last - first + 1 - sum(max(0, min(last, b) - max(first, a) + 1) for a, b in self.reserved)

    def effective(self, name: str) -> InterfaceSettings:
        """Return what holds for an interface: the greater of its own value and that of "all"."""
        own, every = self.conf.get(name, InterfaceSettings()), self.conf["all"]
        return InterfaceSettings(
            rp_filter=max(own.rp_filter, every.rp_filter),
            arp_ignore=max(own.arp_ignore, every.arp_ignore),
            arp_announce=max(own.arp_announce, every.arp_announce),
            arp_filter=max(own.arp_filter, every.arp_filter),
        )
