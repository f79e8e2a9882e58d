"""The ports of InfiniBand and RoCE adapters (HCAs), from ibstat and sysfs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated

from ncheck.decode import DeviceOrEmpty, device_name
from ncheck.expression import expression
from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, Reply, Status, Tree
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.infiniband import Adapter, Port, parse_ibstat, rate_of, tool_error
from ncheck.text import LONGEST_MESSAGE


@dataclass(frozen=True)
class Gid:
    """One entry of a port's GID table that is in use. `kind` is "IB/RoCE v1" or "RoCE v2", `netdev` its interface."""

    index: int
    address: Annotated[str, _gid]
    kind: Annotated[str, _cut]
    netdev: DeviceOrEmpty = ""


# 0000:0000:0000:0000:0000:ffff:0a14:0001
_GID = expression(r"[0-9a-f]{4}(:[0-9a-f]{4}){7}")
_LONGEST_KIND = 40


def _gid(text: str) -> str:
    if not _GID.fullmatch(text):
        raise ValueError("no GID")
    return text


def _cut(text: str) -> str:
    return text[:_LONGEST_KIND]


@dataclass(frozen=True)
class HcaPort:
    """One port of one HCA. `state`: Down, Initializing, Armed, Active; `physical`: LinkUp, Polling, Disabled,
    Sleep, PortConfigurationTraining, LinkErrorRecovery, PhyTest; `rate` in Gb/s; `link_layer`: InfiniBand,
    Ethernet, OmniPath; EFA is AWS's own, which NCCL uses by a plug-in only.

    `lid`: the port's local identifier, `sm_lid`: that of the subnet manager. `pci`: its address, "0000:3b:00.0";
    `numa`: its NUMA node. `netdev`: its network interface. `gids` are the first of an Ethernet port's.
    """

    hca: str
    port: int
    state: str
    physical: str
    rate: float | None
    link_layer: str
    lid: int | None = None
    sm_lid: int | None = None
    firmware: str = ""
    hca_type: str = ""
    node_guid: str = ""
    port_guid: str = ""
    pci: str = ""
    numa: int | None = None
    netdev: str = ""
    gids: tuple[Gid, ...] = ()

    @property
    def name(self) -> str:
        """As NCCL_IB_HCA and the probe name it: mlx5_0:1."""
        return f"{self.hca}:{self.port}"

    @cached_property
    def place(self) -> tuple[str, int]:
        """What it is among the ports of a node: ("mlx5_0", 1)."""
        return self.hca, self.port


@dataclass(frozen=True)
class InfinibandFacts:
    """Every HCA port of the node. `source` is "ibstat" or "sysfs"; both give the same values."""

    ports: tuple[HcaPort, ...]
    source: str


_ROOT = "/sys/class/infiniband"

PATTERNS = tuple(
    f"{_ROOT}/*/{path}"
    for path in (
        "node_guid", "fw_ver", "hca_type", "device", "device/numa_node", "device/net/*",
        "ports/*/state", "ports/*/phys_state", "ports/*/rate", "ports/*/link_layer", "ports/*/lid", "ports/*/sm_lid",
        "ports/*/gids/[0-9]", "ports/*/gid_attrs/ndevs/0", "ports/*/gid_attrs/types/[0-9]",
    )
)  # fmt: skip

EFA = "EFA"
# What sysfs prints of a port of neither layer: of the drivers in Linux only efa has such ports (hw/efa/efa_verbs.c).
_LAYERS = {"Unknown": EFA}

_GIDS = 10  # of the 256 entries of a table; each address has two, and the first addresses come first
_STATES = {1: "Down", 2: "Initializing", 3: "Armed", 4: "Active", 5: "Active"}

_PHYSICAL = {
    1: "Sleep", 2: "Polling", 3: "Disabled", 4: "PortConfigurationTraining", 5: "LinkUp", 6: "LinkErrorRecovery",
    7: "PhyTest",
}  # fmt: skip


def devices_in(tree: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of the devices, in the order in which ibstat prints them."""
    inside = _beneath(tree, f"{_ROOT}/")
    return tuple(sorted(map(device_name, {path.partition("/")[0] for path in inside})))


def ports_in(tree: Mapping[str, object]) -> tuple[HcaPort, ...]:
    """Return every port. Raises ValueError or KeyError where a port shows no state."""
    return tuple(_port(tree, device, number) for device in devices_in(tree) for number in _numbers(tree, device))


def _efa_in(tree: Mapping[str, object]) -> tuple[HcaPort, ...]:
    """Return the ports of EFA. ibstat lists none: libibumad passes over what is no InfiniBand device (umad.c)."""
    layers = [path for path, text in tree.items() if text == "Unknown\n" and path.endswith("/link_layer")]
    devices = sorted({device_name(path.split("/")[4]) for path in layers})
    return tuple(_port(tree, device, number) for device in devices for number in _numbers(tree, device))


def location(tree: Mapping[str, object], device: str, number: int) -> tuple[str, int | None, str]:
    """Return what ibstat does not show: a device's PCI address, NUMA node and network interface."""
    link = _text(tree, f"{_ROOT}/{device}/device")
    numa = _text(tree, f"{_ROOT}/{device}/device/numa_node")
    node = int(numa) if numa.lstrip("-").isdigit() else -1
    pci = link.rsplit("/", 1)[-1] if link.count(":") > 1 else ""
    return pci, node if node >= 0 else None, _netdev(tree, device, number)


def gids(tree: Mapping[str, object], device: str, number: int) -> tuple[Gid, ...]:
    """Return the first GIDs of an Ethernet port; an empty entry shows zeros, and its type cannot be read."""
    place = f"{_ROOT}/{device}/ports/{number}"
    if _text(tree, f"{place}/link_layer") != "Ethernet":
        return ()
    found = (
        Gid(index, _text(tree, f"{place}/gids/{index}"), _text(tree, f"{place}/gid_attrs/types/{index}"))
        for index in range(_GIDS)
    )
    return tuple(gid for gid in found if gid.kind and gid.address.strip("0:"))


def _numbers(tree: Mapping[str, object], device: str) -> Iterable[int]:
    return sorted({int(path.partition("/")[0]) for path in _beneath(tree, f"{_ROOT}/{device}/ports/")})


def _beneath(tree: Mapping[str, object], folder: str) -> list[str]:
    """Return the paths in a folder, without its own."""
    length = len(folder)
    return [path[length:] for path in tree if path[:length] == folder]


def _port(tree: Mapping[str, object], device: str, number: int) -> HcaPort:
    place = f"{_ROOT}/{device}/ports/{number}"
    pci, numa, netdev = location(tree, device, number)
    layer = _text(tree, f"{place}/link_layer")
    layer = _LAYERS.get(layer, layer)
    return HcaPort(
        hca=device,
        port=number,
        state=_STATES[_leading(tree, f"{place}/state")],
        physical=_PHYSICAL.get(_leading(tree, f"{place}/phys_state"), "unknown"),
        rate=rate_of(_text(tree, f"{place}/rate")),
        link_layer=layer,
        lid=_hex(tree, f"{place}/lid"),
        sm_lid=_hex(tree, f"{place}/sm_lid"),
        firmware=_text(tree, f"{_ROOT}/{device}/fw_ver"),
        hca_type=_text(tree, f"{_ROOT}/{device}/hca_type") or (layer if layer == EFA else ""),
        node_guid=_guid(_text(tree, f"{_ROOT}/{device}/node_guid")),
        port_guid=_guid(_text(tree, f"{place}/gids/0")),
        pci=pci,
        numa=numa,
        netdev=netdev,
        gids=gids(tree, device, number),
    )


def _netdev(tree: Mapping[str, object], device: str, number: int) -> str:
    """Return the interface of this port if the GID table names it, else the first of the device."""
    if named := _text(tree, f"{_ROOT}/{device}/ports/{number}/gid_attrs/ndevs/0"):
        return device_name(named)
    names = sorted(_beneath(tree, f"{_ROOT}/{device}/device/net/"))
    return device_name(names[0]) if names else ""


def _text(tree: Mapping[str, object], path: str) -> str:
    value = tree.get(path)
    return value.strip() if isinstance(value, str) else ""


def _leading(tree: Mapping[str, object], path: str) -> int:
    """Return the number before the text: "4: ACTIVE" is 4."""
    return int(_text(tree, path).partition(":")[0])


def _hex(tree: Mapping[str, object], path: str) -> int | None:
    text = _text(tree, path)
    return int(text, 16) if text else None


def _guid(text: str) -> str:
    """Return the last 64 bits of a GUID or GID as ibstat prints them: a088:c203:00e3:142a is 0xa088c20300e3142a."""
    digits = text.replace(":", "")[-16:]
    return f"0x{digits}" if digits else ""


IBSTAT = Command(("ibstat",))
SYSFS = Tree(PATTERNS)
_NO_DEVICE = Absent("no InfiniBand or RoCE device")


def infiniband(evidence: Evidence) -> Read[InfinibandFacts]:
    """Read every port of every HCA."""
    reply, shown = evidence.reply(IBSTAT), _tree(evidence)
    tree = shown if isinstance(shown, dict) else {}
    efa = _efa_in(tree)
    devices = sorted({*devices_in(tree)} - {port.hca for port in efa})
    if reply.status is Status.MISSING or (efa and not devices):
        return _from_sysfs(shown)
    if reply.status in (Status.TIMEOUT, Status.UNANSWERED, Status.DENIED, Status.FAILED):
        return _unread(reply)
    if not reply.succeeded or not reply.stdout.strip():
        return _failed(reply, shown, devices)
    adapters = parse_ibstat(reply.stdout)
    unseen = sorted(set(devices) - {adapter.name for adapter in adapters})
    if unseen or not adapters or any(adapter.truncated for adapter in adapters):
        reason = f"ibstat does not list {', '.join(unseen)}" if unseen else "the output of ibstat is truncated"
        return Unread(reason, fix="ibstat")
    ports = tuple(_joined_port(tree, adapter, port) for adapter in adapters for port in adapter.ports)
    return InfinibandFacts((*ports, *efa), "ibstat")


def _unread(reply: Reply) -> Unread:
    why = trouble(IBSTAT, reply)
    return why if isinstance(why, Unread) else Unread("ibstat did not answer", fix="ibstat")


def _tree(evidence: Evidence) -> dict[str, object] | Unread:
    """Return what sysfs shows: nothing if it has no such folder."""
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
        return Unread(f"{devices_in(shown)[0]} has no port", fix="ls /sys/class/infiniband/*/ports")
    return InfinibandFacts(ports, "sysfs") if ports else _NO_DEVICE


def _failed(reply: Reply, shown: dict[str, object] | Unread, devices: list[str]) -> Unread | Absent:
    """Return why ibstat failed, or Absent if sysfs shows no device either."""
    if isinstance(shown, dict) and not devices and not parse_ibstat(reply.stdout):
        return _NO_DEVICE
    words = tool_error(reply.stdout + "\n" + reply.stderr) or (reply.stderr or reply.stdout).strip() or "no output"
    seen = f", while /sys/class/infiniband shows {', '.join(devices)}" if devices else ""
    return Unread(f"ibstat failed: {words.splitlines()[-1]}{seen}", fix="ibstat")


def _joined_port(tree: dict[str, object], adapter: Adapter, port: Port) -> HcaPort:
    """Join a port of ibstat with its location in sysfs. Raises ValueError for a port without a known state."""
    if port.state is None or port.state not in _STATES.values():
        shown = "no state" if port.state is None else f"an unknown state ({port.state[:LONGEST_MESSAGE]})"
        raise ValueError(f"ibstat shows {shown} of port {port.number} of {adapter.name}")
    pci, numa, netdev = location(tree, adapter.name, port.number)
    return HcaPort(
        hca=device_name(adapter.name),
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


FACTS = (Fact(InfinibandFacts, (IBSTAT, SYSFS), infiniband),)
