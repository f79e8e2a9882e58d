"""The kernel's network settings (sysctl): rp_filter, ARP, neighbour tables, ports, connection tracking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import cast

from ncheck.facts.definition import Fact, no_answer
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence, Tree
from ncheck.model.fact import Read, Unread


@dataclass(frozen=True)
class InterfaceSettings:
    """net.ipv4.conf.NAME.*, as set; the effective values combine these with those of "all".

    `rp_filter`, `arp_ignore`, `arp_announce` and `arp_filter` are the kernel's numbers
    (Documentation/networking/ip-sysctl).
    """

    rp_filter: int = 0
    arp_ignore: int = 0
    arp_announce: int = 0
    arp_filter: int = 0


@dataclass(frozen=True)
class Conntrack:
    """The connections that netfilter tracks in this network namespace. `count`: how many there are; `most`: how
    many there may be.
    """

    count: int
    most: int


@dataclass(frozen=True)
class NetSettingsFacts:
    """`conf` is net.ipv4.conf by interface, "all" among them.

    `ephemeral` is the range of client ports, both ends included, and `reserved` the ranges excluded from it.
    `neighbours` maps the family, 4 or 6, to how many entries its neighbour table may have, unless the kernel does
    not show it (a container, IPv6 off). `conntrack` is None if netfilter tracks no connections. `buffers`: bytes
    that the kernel gives to TCP's buffers at most, by setting (tcp_rmem, tcp_wmem), where it shows them.
    """

    conf: Mapping[str, InterfaceSettings]
    ephemeral: tuple[int, int]
    reserved: tuple[tuple[int, int], ...] = ()
    neighbours: Mapping[int, int] = field(default_factory=dict)
    conntrack: Conntrack | None = None
    buffers: Mapping[str, int] = field(default_factory=dict)

    @property
    def ports(self) -> int:
        """The number of ports that clients can use."""
        first, last = self.ephemeral
        return last - first + 1 - sum(max(0, min(last, b) - max(first, a) + 1) for a, b in self.reserved)

    def effective(self, name: str) -> InterfaceSettings:
        """Return the effective settings of an interface: the greater of its own value and that of "all"."""
        own, every = self.conf.get(name, InterfaceSettings()), self.conf["all"]
        return InterfaceSettings(
            rp_filter=max(own.rp_filter, every.rp_filter),
            arp_ignore=max(own.arp_ignore, every.arp_ignore),
            arp_announce=max(own.arp_announce, every.arp_announce),
            arp_filter=max(own.arp_filter, every.arp_filter),
        )


NET = "/proc/sys/net"
CONF = ("rp_filter", "arp_ignore", "arp_announce", "arp_filter")
BUFFERS = ("tcp_rmem", "tcp_wmem")

SETTINGS = Tree((
    *(f"{NET}/ipv4/conf/*/{name}" for name in CONF),
    f"{NET}/ipv4/ip_local_port_range",
    f"{NET}/ipv4/ip_local_reserved_ports",
    *(f"{NET}/ipv4/{name}" for name in BUFFERS),
    f"{NET}/ipv[46]/neigh/default/gc_thresh3",
    f"{NET}/netfilter/nf_conntrack_count",
    f"{NET}/netfilter/nf_conntrack_max",
))  # fmt: skip


def net_settings(evidence: Evidence) -> Read[NetSettingsFacts]:
    """Read the settings. Raises KeyError or ValueError if one that every kernel has is missing."""
    reply = evidence.reply(SETTINGS)
    if why := no_answer(SETTINGS, reply):
        return why
    tree = cast("Mapping[str, object]", reply.value)
    conf = {name: _interface(tree, name) for name in _interfaces(tree)}
    if "all" not in conf:
        return Unread("/proc/sys/net/ipv4/conf/all not found: the network settings cannot be read here")
    first, last = str(tree[f"{NET}/ipv4/ip_local_port_range"]).split()
    return NetSettingsFacts(
        conf, (int(first), int(last)), tuple(_reserved(tree)), _neighbours(tree), _conntrack(tree), _buffers(tree)
    )


def _interfaces(tree: Mapping[str, object]) -> list[str]:
    # /proc/sys/net/ipv4/conf/bond0.100/rp_filter
    return [path.split("/")[6] for path in tree if path.startswith(f"{NET}/ipv4/conf/") and path.endswith("/rp_filter")]


def _interface(tree: Mapping[str, object], name: str) -> InterfaceSettings:
    return InterfaceSettings(*(int(str(tree[f"{NET}/ipv4/conf/{name}/{key}"])) for key in CONF))


def _reserved(tree: Mapping[str, object]) -> Iterator[tuple[int, int]]:
    # 8080,9148,30000-32767
    text = tree.get(f"{NET}/ipv4/ip_local_reserved_ports")
    for part in str(text or "").strip().split(","):
        if part:
            first, _, last = part.partition("-")
            yield int(first), int(last or first)


def _neighbours(tree: Mapping[str, object]) -> dict[int, int]:
    most = {family: tree.get(f"{NET}/ipv{family}/neigh/default/gc_thresh3") for family in (4, 6)}
    return {family: int(text) for family, text in most.items() if isinstance(text, str)}


def _conntrack(tree: Mapping[str, object]) -> Conntrack | None:
    count, most = (tree.get(f"{NET}/netfilter/nf_conntrack_{name}") for name in ("count", "max"))
    return Conntrack(int(count), int(most)) if isinstance(count, str) and isinstance(most, str) else None


def _buffers(tree: Mapping[str, object]) -> dict[str, int]:
    # 4096	131072	6291456
    texts = {name: tree.get(f"{NET}/ipv4/{name}") for name in BUFFERS}
    return {name: int(text.split()[2]) for name, text in texts.items() if isinstance(text, str)}


FACTS = (Fact(NetSettingsFacts, (SETTINGS,), net_settings),)
