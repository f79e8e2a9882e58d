"""Network settings of the kernel, from /proc/sys/net, which every user may read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from doctor.collect.reader import Reader, no_answer
from doctor.model.evidence import Evidence, Tree
from doctor.model.fact import Read, Unread
from doctor.model.facts import Conntrack, InterfaceSettings, NetSettingsFacts

NET = "/proc/sys/net"
CONF = ("rp_filter", "arp_ignore", "arp_announce", "arp_filter")
SETTINGS = Tree((
    *(f"{NET}/ipv4/conf/*/{name}" for name in CONF),
    f"{NET}/ipv4/ip_local_port_range",
    f"{NET}/ipv4/ip_local_reserved_ports",
    f"{NET}/ipv[46]/neigh/default/gc_thresh3",
    f"{NET}/netfilter/nf_conntrack_count",
    f"{NET}/netfilter/nf_conntrack_max",
))  # fmt: skip


def net_settings(evidence: Evidence) -> Read[NetSettingsFacts]:
    """Read the settings. Raises KeyError or ValueError where the kernel shows none of what it always has."""
    reply = evidence.reply(SETTINGS)
    if why := no_answer(SETTINGS, reply):
        return why
    tree = cast("Mapping[str, object]", reply.value)
    conf = {name: _interface(tree, name) for name in _interfaces(tree)}
    if "all" not in conf:
        return Unread("/proc/sys/net/ipv4/conf/all is not there: these settings cannot be read here")
    first, last = str(tree[f"{NET}/ipv4/ip_local_port_range"]).split()
    return NetSettingsFacts(conf, (int(first), int(last)), tuple(_reserved(tree)), _neighbours(tree), _conntrack(tree))


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


READERS = (Reader(NetSettingsFacts, (SETTINGS,), net_settings),)
