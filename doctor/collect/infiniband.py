"""InfiniBand and RoCE ports: ibstat where it exists, /sys/class/infiniband where it does not, the same facts from both.

Where the two contradict each other nothing is read: a device that sysfs shows and ibstat fails on is a sick device.
"""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Command, Evidence, Reply, Status, Tree
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import HcaPort, InfinibandFacts
from doctor.parse.ibstat import Adapter, Port, parse_ibstat, tool_error
from doctor.parse.sysfs_infiniband import PATTERNS, devices_in, gids, ports_in, whereabouts

IBSTAT = Command(("ibstat",))
SYSFS = Tree(PATTERNS)

_NOTHING = Absent("no InfiniBand or RoCE device")


def infiniband(evidence: Evidence) -> Read[InfinibandFacts]:
    """Read every port of every HCA."""
    said, shown = evidence.reply(IBSTAT), _tree(evidence)
    if said.status in (Status.TIMEOUT, Status.UNANSWERED, Status.DENIED, Status.FAILED):
        return _unread(said)
    if said.status is Status.MISSING:
        return _from_sysfs(shown)
    devices = devices_in(shown) if isinstance(shown, dict) else ()
    if not said.succeeded or not said.stdout.strip():
        return _failed(said, shown, devices)
    adapters = parse_ibstat(said.stdout)
    unseen = sorted(set(devices) - {adapter.name for adapter in adapters})
    if unseen or not adapters or any(adapter.cut for adapter in adapters):
        return Unread(f"ibstat does not tell of {', '.join(unseen) or 'all it began with'}", fix="ibstat")
    tree = shown if isinstance(shown, dict) else {}
    return InfinibandFacts(tuple(_port(tree, one, port) for one in adapters for port in one.ports), "ibstat")


def _unread(said: Reply) -> Unread:
    why = trouble(IBSTAT, said)
    return why if isinstance(why, Unread) else Unread("ibstat gave no answer", fix="ibstat")


def _tree(evidence: Evidence) -> dict[str, object] | Unread:
    """Return what sysfs shows; no such folder means no device."""
    reply = evidence.reply(SYSFS)
    if reply.status is Status.MISSING:
        return {}
    if reply.succeeded and isinstance(reply.value, dict):
        return dict(reply.value)
    return Unread(f"/sys/class/infiniband: {reply.reason or reply.status.value}", fix="ls /sys/class/infiniband")


def _from_sysfs(shown: dict[str, object] | Unread) -> Read[InfinibandFacts]:
    if isinstance(shown, Unread):
        return shown
    ports = ports_in(shown)
    if devices_in(shown) and not ports:
        return Unread(f"{devices_in(shown)[0]} shows no port", fix="ls /sys/class/infiniband/*/ports")
    return InfinibandFacts(ports, "sysfs") if ports else _NOTHING


def _failed(said: Reply, shown: dict[str, object] | Unread, devices: tuple[str, ...]) -> Unread | Absent:
    """Weigh an ibstat that failed or printed nothing against sysfs."""
    if isinstance(shown, dict) and not devices and not parse_ibstat(said.stdout):
        return _NOTHING
    words = tool_error(said.stdout + "\n" + said.stderr) or (said.stderr or said.stdout).strip() or "it printed nothing"
    seen = f", while /sys/class/infiniband shows {', '.join(devices)}" if devices else ""
    return Unread(f"ibstat failed: {words.splitlines()[-1]}{seen}", fix="ibstat")


def _port(tree: dict[str, object], adapter: Adapter, port: Port) -> HcaPort:
    """Join what ibstat says of a port with where sysfs shows the device. Raises ValueError for a port with no state."""
    if port.state is None:
        raise ValueError(f"ibstat says nothing of port {port.number} of {adapter.name}")
    pci, numa, netdev = whereabouts(tree, adapter.name, port.number)
    return HcaPort(
        hca=adapter.name,
        port=port.number,
        state=port.state,
        physical=port.physical or "unknown",
        rate=port.rate,
        link_layer=port.link_layer or "",
        lid=port.lid,
        sm_lid=port.sm_lid,
        firmware=adapter.firmware or "",
        hca_type=adapter.type or "",
        node_guid=adapter.node_guid or "",
        port_guid=port.guid or "",
        pci=pci,
        numa=numa,
        netdev=netdev,
        gids=gids(tree, adapter.name, port.number),
    )


READERS = (Reader(InfinibandFacts, (IBSTAT, SYSFS), infiniband),)
