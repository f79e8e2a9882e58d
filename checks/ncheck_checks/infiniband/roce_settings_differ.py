"""RoCE settings differ between nodes

## What it finds
Active RoCE ports whose settings differ from those of the same port on other nodes: priority flow control (PFC), trust
(DSCP or the VLAN's priority, and which DSCP has which priority), ECN (for which priorities a port notifies of
congestion and reacts to it), the traffic class of the adapter, and the type of service of RDMA CM. If nodes name their
adapters differently, all of a node are compared as one list. No value is wanted: a network may be lossless or lossy, as
long as all nodes are alike. Not compared are settings that a driver does not show, and clusters where no job can use
RoCE.

## Why it matters
A node whose traffic goes in another priority than that of the others has no flow control on the switch, or stops
traffic that nobody else stops. Its packets are lost under load: the job is slow in large steps only, or ends with
"status=12 (IBV_WC_RETRY_EXC_ERR)".

## What to type
`dcb pfc show dev NAME` and `dcb app show dev NAME` (iproute2), or `sudo mlnx_qos -i NAME`, on a node of each side. To
set it as on the others: `sudo mlnx_qos -i NAME --trust dscp --pfc 0,0,0,1,0,0,0,0`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from shlex import quote

from ncheck import SLOW_NETWORK, Cluster, NotApplicable, Problem, Severity, Split, cluster_check, split
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.roce import RoceFacts, RocePort
from ncheck.nccl.hca_ports import usable_ports

_TRUST = "dcb app show dev {interface}"
_ECN = "grep -rH . /sys/class/net/{interface}/ecn"
# What is compared, in words, and what shows it.
_SETTINGS: Mapping[str, tuple[Callable[[RocePort], str | None], str]] = {
    "priority flow control": (lambda port: _priorities(port.pfc), "dcb pfc show dev {interface}"),
    "trust": (lambda port: None if port.dscp is None else "DSCP" if port.dscp else "VLAN priority", _TRUST),
    "the priority of each DSCP": (lambda port: _mapping(port.dscp), _TRUST),
    "ECN (notifying)": (lambda port: _priorities(port.ecn_np), _ECN),
    "ECN (reacting)": (lambda port: _priorities(port.ecn_rp), _ECN),
    "the traffic class": (lambda port: _set(port.traffic_class), "grep -rH . /sys/class/infiniband/{hca}/tc"),
    "the type of service": (lambda port: _set(port.tos), "grep -rH . /sys/kernel/config/rdma_cm/{hca}"),
}


@cluster_check(
    "NC430", Severity.WARNING, RoceFacts, InfinibandFacts, also=(LibraryFacts,), by_kind=True, explains=SLOW_NETWORK
)
def roce_settings_differ(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    roce = cluster.facts(RoceFacts)
    ports = {node: _active(roce[node], adapters) for node, adapters in usable_ports(cluster).items()}
    if without := tuple(name for name, held in ports.items() if not held):
        yield NotApplicable("no Active RoCE port that a job can use", without)
    alike = len({tuple(held) for held in ports.values() if held}) == 1
    for setting, (value, command) in _SETTINGS.items():
        differing: dict[Split[str], list[str]] = {}
        for place, values in _values(ports, value, alike=alike).items():
            if parted := split(values):
                differing.setdefault(parted, []).append(place)
        for parted, places in differing.items():
            name, port = next(iter(ports[parted.odd[-1]].items())) if not alike else (
                places[0], ports[parted.odd[-1]][places[0]]
            )  # fmt: skip
            typed = command.format(interface=quote(port.interface or "eth0"), hca=quote(name.partition(":")[0]))
            yield Problem(
                f"{setting} differs on {', '.join(places)}: {parted.summary()}", typed,
                nodes=parted.odd, look=True, summary=f"{setting} of RoCE differs",
            )  # fmt: skip


def _active(roce: RoceFacts, adapters: InfinibandFacts) -> dict[str, RocePort]:
    active = {port.name for port in adapters.ports if port.state == "Active"}
    return {name: port for name, port in roce.ports.items() if name in active}


def _values(
    ports: Mapping[str, Mapping[str, RocePort]], value: Callable[[RocePort], str | None], *, alike: bool
) -> dict[str, dict[str, str]]:
    """Return a setting by port and node; where nodes name their ports differently, as one list per node."""
    found: dict[str, dict[str, str]] = {}
    for node, held in ports.items():
        shown = {name: text for name, port in held.items() if (text := value(port)) is not None}
        if alike:
            for name, text in shown.items():
                found.setdefault(name, {})[node] = text
        elif shown:
            found.setdefault("all ports", {})[node] = " and ".join(sorted({*shown.values()}))
    return found


def _priorities(priorities: tuple[int, ...] | None) -> str | None:
    if priorities is None:
        return None
    listed = ", ".join(map(str, priorities))
    return f"priorit{'ies' if len(priorities) > 1 else 'y'} {listed}" if priorities else "off"


def _mapping(dscp: tuple[tuple[int, int], ...] | None) -> str | None:
    """Return the mapping in few words; None without one: then trust differs already."""
    return ", ".join(f"{code} to {priority}" for code, priority in dscp) if dscp else None


def _set(text: str | None) -> str | None:
    return None if text is None else text or "not set"
