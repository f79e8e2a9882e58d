"""/sys/class/infiniband to ports: what ibstat itself reads, in ibstat's words.

Sources: kernel ABI documentation sysfs-class-infiniband; libibumad, which ibstat is built on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from doctor.model.facts import Gid, HcaPort
from doctor.parse.ibstat import rate_of

_ROOT = "/sys/class/infiniband"
PATTERNS = tuple(
    f"{_ROOT}/*/{path}"
    for path in (
        "node_guid", "fw_ver", "hca_type", "device", "device/numa_node", "device/net/*",
        "ports/*/state", "ports/*/phys_state", "ports/*/rate", "ports/*/link_layer", "ports/*/lid", "ports/*/sm_lid",
        "ports/*/gids/[0-9]", "ports/*/gid_attrs/ndevs/0", "ports/*/gid_attrs/types/[0-9]",
    )
)  # fmt: skip

_GIDS = 10  # of the 256 places of a table; an address has two, and the first addresses stand first

_STATES = {1: "Down", 2: "Initializing", 3: "Armed", 4: "Active", 5: "Active"}
_PHYSICAL = {
    1: "Sleep", 2: "Polling", 3: "Disabled", 4: "PortConfigurationTraining", 5: "LinkUp", 6: "LinkErrorRecovery",
    7: "PhyTest",
}  # fmt: skip

Tree = Mapping[str, object]


def devices_in(tree: Tree) -> tuple[str, ...]:
    """Return the names of the devices, in the order in which ibstat prints them."""
    return tuple(sorted({path.split("/")[4] for path in tree if path.startswith(_ROOT + "/")}))


def ports_in(tree: Tree) -> tuple[HcaPort, ...]:
    """Return every port. Raises ValueError or KeyError where a port shows no state."""
    return tuple(_port(tree, device, number) for device in devices_in(tree) for number in _numbers(tree, device))


def whereabouts(tree: Tree, device: str, number: int) -> tuple[str, int | None, str]:
    """Return a device's PCI address, its NUMA node and its network interface: what ibstat does not tell."""
    link = _text(tree, f"{_ROOT}/{device}/device")
    numa = _text(tree, f"{_ROOT}/{device}/device/numa_node")
    node = int(numa) if numa.lstrip("-").isdigit() else -1
    pci = link.rsplit("/", 1)[-1] if link.count(":") > 1 else ""
    return pci, node if node >= 0 else None, _netdev(tree, device, number)


def gids(tree: Tree, device: str, number: int) -> tuple[Gid, ...]:
    """Return the first GIDs of an Ethernet port; an empty place shows zeros, and its type cannot be read."""
    place = f"{_ROOT}/{device}/ports/{number}"
    if _text(tree, f"{place}/link_layer") != "Ethernet":
        return ()
    found = (
        Gid(index, _text(tree, f"{place}/gids/{index}"), _text(tree, f"{place}/gid_attrs/types/{index}"))
        for index in range(_GIDS)
    )
    return tuple(gid for gid in found if gid.kind and gid.address.strip("0:"))


def _numbers(tree: Tree, device: str) -> Iterable[int]:
    prefix = f"{_ROOT}/{device}/ports/"
    return sorted({int(path[len(prefix) :].split("/")[0]) for path in tree if path.startswith(prefix)})


def _port(tree: Tree, device: str, number: int) -> HcaPort:
    place = f"{_ROOT}/{device}/ports/{number}"
    pci, numa, netdev = whereabouts(tree, device, number)
    return HcaPort(
        hca=device,
        port=number,
        state=_STATES[_leading(tree, f"{place}/state")],
        physical=_PHYSICAL.get(_leading(tree, f"{place}/phys_state"), "unknown"),
        rate=rate_of(_text(tree, f"{place}/rate")),
        link_layer=_text(tree, f"{place}/link_layer"),
        lid=_hex(tree, f"{place}/lid"),
        sm_lid=_hex(tree, f"{place}/sm_lid"),
        firmware=_text(tree, f"{_ROOT}/{device}/fw_ver"),
        hca_type=_text(tree, f"{_ROOT}/{device}/hca_type"),
        node_guid=_guid(_text(tree, f"{_ROOT}/{device}/node_guid")),
        port_guid=_guid(_text(tree, f"{place}/gids/0")),
        pci=pci,
        numa=numa,
        netdev=netdev,
        gids=gids(tree, device, number),
    )


def _netdev(tree: Tree, device: str, number: int) -> str:
    """Return the interface of this very port where the GID table names it, else the first of the device."""
    if named := _text(tree, f"{_ROOT}/{device}/ports/{number}/gid_attrs/ndevs/0"):
        return named
    prefix = f"{_ROOT}/{device}/device/net/"
    names = sorted(path[len(prefix) :] for path in tree if path.startswith(prefix))
    return names[0] if names else ""


def _text(tree: Tree, path: str) -> str:
    value = tree.get(path)
    return value.strip() if isinstance(value, str) else ""


def _leading(tree: Tree, path: str) -> int:
    """Return the number before the words: "4: ACTIVE" is 4."""
    return int(_text(tree, path).partition(":")[0])


def _hex(tree: Tree, path: str) -> int | None:
    text = _text(tree, path)
    return int(text, 16) if text else None


def _guid(text: str) -> str:
    """Return the last 64 bits of a GUID or GID as ibstat prints them: a088:c203:00e3:142a is 0xa088c20300e3142a."""
    digits = text.replace(":", "")[-16:]
    return f"0x{digits}" if digits else ""
