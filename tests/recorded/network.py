"""What a node answers about its interfaces and HCAs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doctor.collect.nics import INTERFACES
from doctor.model.evidence import JsonValue, Reply, Status

if TYPE_CHECKING:
    from .host import Hca, Host, Nic

LOOPBACK_TYPE = 772


def interface_reply(host: Host) -> dict[str, Reply]:
    """Return the agent's answer about interfaces."""
    value: JsonValue = {
        "interfaces": [_interface(host, nic, index) for index, nic in enumerate(host.nics, 1)],
        "default_routes": [nic.name for nic in host.nics if nic.default_route],
        "source": "getifaddrs",
    }
    return {INTERFACES.key: Reply(Status.OK, value=value, seconds=0.004)}


def _interface(host: Host, nic: Nic, index: int) -> JsonValue:
    physical = bool(nic.pci)
    return {
        "name": nic.name,
        "index": index,
        "flags": 0x49 if nic.loopback else (0x1043 if nic.running else 0x1003),
        "up": True,
        "running": nic.running,
        "loopback": nic.loopback,
        "addresses": _addresses(host, nic, index),
        "type": nic.type,
        "operstate": "unknown" if nic.loopback else ("up" if nic.running else "down"),
        "mtu": nic.mtu,
        "speed": nic.speed if nic.running else None,
        "mac": "00:00:00:00:00:00" if nic.loopback else _mac(host, index),
        "master": nic.master,
        "lower": list(nic.lower),
        "device": f"/sys/devices/pci0000:00/{nic.pci}" if physical else None,
        "driver": nic.driver or None,
        "pci": nic.pci or None,
        "numa": nic.numa if physical else None,
        "devtype": "bridge" if nic.bridge else None,
        "bond": False,
        "bridge": nic.bridge,
        "tun": False,
        "wireless": False,
        "vlan_id": None,
        "peer_index": nic.peer_index,
        "hca": nic.hca,
    }


def _addresses(host: Host, nic: Nic, index: int) -> list[JsonValue]:
    if nic.loopback:
        return [
            {"ip": "127.0.0.1", "prefix": 8, "family": 4, "scope": "host"},
            {"ip": "::1", "prefix": 128, "family": 6, "scope": "host"},
        ]
    if not nic.ip:
        return []
    link = f"fe80::{host.number:x}:{index:x}"
    return [
        {"ip": nic.ip, "prefix": nic.prefix, "family": 4, "scope": "global"},
        {"ip": link, "prefix": 64, "family": 6, "scope": "link"},
    ]


def _mac(host: Host, index: int) -> str:
    return f"02:5e:10:00:{host.number:02x}:{index:02x}"  # locally administered: nobody's card


def ibstat(host: Host) -> str:
    """Return what `ibstat` prints for the node's HCAs."""
    return "".join(_ca(host, hca, index) for index, hca in enumerate(host.hcas))


def guid(host: Host, index: int) -> str:
    """Return an HCA's GUID, of the locally administered kind."""
    return f"0x025e1003{host.number:04x}{index:04x}"


def _ca(host: Host, hca: Hca, index: int) -> str:
    active = hca.state == "Active"
    lines = (
        f"CA '{hca.name}'",
        "\tCA type: MT4129",
        "\tNumber of ports: 1",
        "\tFirmware version: 28.39.1002",
        "\tHardware version: 0",
        f"\tNode GUID: {guid(host, index)}",
        f"\tSystem image GUID: {guid(host, index)}",
        "\tPort 1:",
        f"\t\tState: {hca.state}",
        f"\t\tPhysical state: {hca.physical}",
        f"\t\tRate: {hca.rate}",
        f"\t\tBase lid: {host.number * 16 + index if active else 65535}",
        "\t\tLMC: 0",
        f"\t\tSM lid: {1 if active else 0}",
        "\t\tCapability mask: 0xa651e848",
        f"\t\tPort GUID: {guid(host, index)}",
        "\t\tLink layer: InfiniBand",
    )
    return "\n".join(lines) + "\n"
