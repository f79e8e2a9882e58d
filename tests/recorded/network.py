"""What a node answers about its interfaces and HCAs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.infiniband import IBSTAT, SYSFS
from ncheck.facts.nics import INTERFACES
from ncheck.model.evidence import JsonValue, Reply, Status

from .host import mac

if TYPE_CHECKING:
    from .host import Hca, Host, Nic

LOOPBACK_TYPE = 772
_FIRMWARE = {"bnxt_en": "229.1.123.0", "mlx5_core": "28.39.1002 (MT_0000000838)"}
_STATES = {"Down": 1, "Initializing": 2, "Armed": 3, "Active": 4}
_PHYSICAL = {"Polling": 2, "Disabled": 3, "LinkUp": 5}
RATES = {10: "10 Gb/sec (4X SDR)", 200: "200 Gb/sec (4X HDR)", 400: "400 Gb/sec (4X NDR)"}


def network_replies(host: Host) -> dict[str, Reply]:
    """Return the answers about interfaces and HCAs, by source key."""
    value: JsonValue = {
        "interfaces": [_interface(host, nic, index) for index, nic in enumerate(host.nics, 1)],
        "default_routes": [nic.name for nic in host.nics if nic.default_route],
        "source": "getifaddrs",
    }
    return {
        INTERFACES.key: Reply(Status.OK, value=value, seconds=0.004),
        IBSTAT.key: Reply(Status.OK, exit_status=0, stdout=ibstat(host), seconds=0.03),
        SYSFS.key: Reply(Status.OK, value=_sysfs(host), seconds=0.01),
    }


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
        "mac": "00:00:00:00:00:00" if nic.loopback else mac(host.number, index),
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
        "firmware": _FIRMWARE.get(nic.driver),
    }


def _addresses(host: Host, nic: Nic, index: int) -> list[JsonValue]:
    if nic.loopback:
        return [
            {"ip": "127.0.0.1", "prefix": 8, "family": 4, "scope": "host"},
            {"ip": "::1", "prefix": 128, "family": 6, "scope": "host"},
        ]
    link: JsonValue = {"ip": f"fe80::{host.number:x}:{index:x}", "prefix": 64, "family": 6, "scope": "link"}
    if not nic.ip:
        return [link] if nic.link_local else []
    return [{"ip": nic.ip, "prefix": nic.prefix, "family": 4, "scope": "global"}, link]


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


def _sysfs(host: Host) -> JsonValue:
    tree: dict[str, JsonValue] = {}
    for index, hca in enumerate(host.hcas):
        place = f"/sys/class/infiniband/{hca.name}"
        tree.update({f"{place}/{name}": value for name, value in _device(host, hca, index).items()})
        tree.update({f"{place}/ports/1/{name}": value for name, value in _port(host, hca, index).items()})
    return tree


def _device(host: Host, hca: Hca, index: int) -> dict[str, JsonValue]:
    ipoib = next((nic.name for nic in host.nics if nic.hca == hca.name), None)
    said: dict[str, JsonValue] = {
        "node_guid": _colons(guid(host, index)) + "\n",
        "fw_ver": "28.39.1002\n",
        "hca_type": "MT4129\n",
        "device": f"/sys/devices/pci0000:00/{hca.pci}",
        "device/numa_node": f"{hca.numa}\n",
    }
    return said | ({f"device/net/{ipoib}": None} if ipoib else {})


def _port(host: Host, hca: Hca, index: int) -> dict[str, JsonValue]:
    active = hca.state == "Active"
    return {
        "state": f"{_STATES[hca.state]}: {hca.state.upper()}\n",
        "phys_state": f"{_PHYSICAL[hca.physical]}: {hca.physical}\n",
        "rate": RATES[hca.rate] + "\n",
        "link_layer": "InfiniBand\n",
        "lid": f"{host.number * 16 + index if active else 65535:#x}\n",
        "sm_lid": "0x1\n" if active else "0x0\n",
        "gids/0": gid(host, index) + "\n",
    }


def gid(host: Host, index: int) -> str:
    """Return the first GID of an HCA's port: the default subnet prefix, and the GUID."""
    return f"fe80:0000:0000:0000:{_colons(guid(host, index))}"


def _colons(number: str) -> str:
    digits = number.removeprefix("0x")
    return ":".join(digits[i : i + 4] for i in range(0, 16, 4))
