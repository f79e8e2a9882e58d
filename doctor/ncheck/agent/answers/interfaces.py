"""Every interface of this network namespace, in the kernel's order: addresses by getifaddrs, the rest from sysfs."""

import array
import fcntl
import os
import socket
import struct

from ncheck.agent.answers.getifaddrs import getifaddrs
from ncheck.agent.files import leaf, line_of, need_sysfs, number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Tuple

    from ncheck.agent.answers.getifaddrs import Address

NET = "/sys/class/net"
IFF_UP, IFF_LOOPBACK, IFF_RUNNING = 0x1, 0x8, 0x40
SIOCETHTOOL = 0x8946  # linux/sockios.h
ETHTOOL_GDRVINFO = 0x3  # linux/ethtool.h
DRVINFO_BYTES = 196  # struct ethtool_drvinfo: cmd u32, driver, version and fw_version char[32], and more
DRIVER, FIRMWARE = 4, 68

READS = (
    "getifaddrs(3): every interface with its addresses; its driver and firmware, as `ethtool -i` asks for them",
    "/sys/class/net/*/{type,mtu,speed,duplex,address,ifindex,iflink,uevent,master,lower_*}",
    "/sys/class/net/*/{bonding,bridge,tun_flags,wireless,phy80211,device,device/driver,device/numa_node,device/infiniband}",
    "/proc/net/vlan/*, /proc/net/route, /proc/net/ipv6_route",
)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"interfaces": [...], "default_routes": [...]}."""
    need_sysfs()
    found = getifaddrs()
    interfaces = [_interface(name, *found[name]) for name in found]
    interfaces.sort(key=lambda interface: interface["index"])
    return {"interfaces": interfaces, "default_routes": default_routes()}


def _interface(name: str, flags: int, addresses: "List[Address]") -> "Dict[str, Any]":
    base = NET + "/" + name
    device = _real(base + "/device")
    driver, firmware = ethtool(name)
    index, iflink = number_in(base + "/ifindex"), number_in(base + "/iflink")
    return {
        "name": name, "index": index if index is not None else _index_of(name), "addresses": addresses,
        "up": bool(flags & IFF_UP), "running": bool(flags & IFF_RUNNING), "loopback": bool(flags & IFF_LOOPBACK),
        "type": number_in(base + "/type"), "mtu": number_in(base + "/mtu"),
        "speed": _not_minus_one(number_in(base + "/speed")), "duplex": _duplex(line_of(base + "/duplex")),
        "mac": line_of(base + "/address") or None,
        "master": _last(_real(base + "/master")), "lower": _lower(base),
        "device": device, "driver": _last(_real(base + "/device/driver")) or driver,
        "firmware": firmware if device else None, "pci": _pci(device),
        "numa": _not_minus_one(number_in(base + "/device/numa_node")), "devtype": _devtype(base),
        "bond": os.path.isdir(base + "/bonding"), "bridge": os.path.isdir(base + "/bridge"),
        "tun": os.path.exists(base + "/tun_flags"),
        "wireless": os.path.isdir(base + "/wireless") or os.path.exists(base + "/phy80211"),
        "vlan_id": _vlan(name), "peer_index": iflink if iflink not in (index, 0) else None, "hca": _hca(base),
    }  # fmt: skip


def _index_of(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0


def _real(path: str) -> "Optional[str]":
    return os.path.realpath(path) if os.path.exists(path) else None


def _last(path: "Optional[str]") -> "Optional[str]":
    return os.path.basename(path) if path else None


def _not_minus_one(number: "Optional[int]") -> "Optional[int]":
    return None if number is not None and number < 0 else number


def _duplex(word: "Optional[str]") -> "Optional[str]":
    return word if word in ("full", "half") else None


def _lower(base: str) -> "List[str]":
    try:
        return sorted(entry[len("lower_") :] for entry in os.listdir(base) if entry.startswith("lower_"))
    except OSError:
        return []


def _pci(device: "Optional[str]") -> "Optional[str]":
    """Find the PCI address in /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0 or above a virtio device."""
    for part in reversed((device or "").split("/")):
        if len(part.split(":")) == 3 and "." in part:
            return part
    return None


def _devtype(base: str) -> "Optional[str]":
    text = leaf(base + "/uevent")
    # The line looks like this: DEVTYPE=bond
    for line in text.splitlines() if isinstance(text, str) else ():
        if line.startswith("DEVTYPE="):
            return line[len("DEVTYPE=") :]
    return None


def _vlan(name: str) -> "Optional[int]":
    text = leaf("/proc/net/vlan/" + name)
    # bond0.100  VID: 100	 REORDER_HDR: 1  dev->priv_flags: 1021
    words = text.split() if isinstance(text, str) else []
    return int(words[words.index("VID:") + 1]) if "VID:" in words else None


def _hca(base: str) -> "Optional[str]":
    try:
        return min(os.listdir(base + "/device/infiniband"))
    except (OSError, ValueError):
        return None


def ethtool(name: str) -> "Tuple[Optional[str], Optional[str]]":
    """Return (driver, firmware) as `ethtool -i` reports them, veth and tun included; None for what it does not.

    It reports nothing of WireGuard, and in some sandboxes.
    """
    info = array.array("B", struct.pack("I", ETHTOOL_GDRVINFO).ljust(DRVINFO_BYTES, b"\0"))
    request = struct.pack("16sP", name.encode("utf-8", "surrogateescape"), info.buffer_info()[0]).ljust(40, b"\0")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            fcntl.ioctl(asking.fileno(), SIOCETHTOOL, request)
    except (OSError, ValueError):
        return None, None
    driver, firmware = (info.tobytes()[begin : begin + 32].partition(b"\0")[0] for begin in (DRIVER, FIRMWARE))
    return driver.decode("ascii", "replace") or None, firmware.decode("ascii", "replace") or None


def default_routes() -> "List[str]":
    """Return the interfaces of the default routes, lowest metric first, IPv4 before IPv6, each once."""
    routes = sorted(_ipv4_defaults()) + sorted(_ipv6_defaults())
    names: "List[str]" = []
    for _, name in routes:
        if name not in names:
            names.append(name)
    return names


def _ipv4_defaults() -> "Iterator[Tuple[int, str]]":
    text = leaf("/proc/net/route")
    # eth0	00000000	0102000A	0003	0	0	100	00000000	0	0	0
    for line in (text if isinstance(text, str) else "").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == fields[7] == "00000000" and int(fields[3], 16) & 1:
            yield int(fields[6]), fields[0]


def _ipv6_defaults() -> "Iterator[Tuple[int, str]]":
    text = leaf("/proc/net/ipv6_route")
    # 000...0 00 000...0 00 fe80...1 00000400 00000001 00000000 00000003     eth0   (dest, plen, src, plen, hop, metric)
    for line in (text if isinstance(text, str) else "").splitlines():
        fields = line.split()
        if len(fields) == 10 and fields[1] == "00" and not fields[0].strip("0") and fields[9] != "lo":
            yield int(fields[5], 16), fields[9]
