"""What a node of AWS with EFA shows: RDMA devices of neither InfiniBand nor Ethernet, which ibstat does not list."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ncheck.facts.error_counters import FIRST, LATER
from ncheck.facts.hcas import HCAS
from ncheck.facts.infiniband import IBSTAT, SYSFS
from ncheck.facts.isolation import GROUPS
from ncheck.facts.libraries import LIBRARIES
from ncheck.facts.net_plugin import NET_PLUGIN
from ncheck.facts.nics import INTERFACES
from ncheck.facts.pci import PCI
from ncheck.facts.topology import TOPO
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNT = 8
PLUG_IN = "/opt/amazon/ofi-nccl/lib/libnccl-net.so"  # where EFA's installer puts it
_PANIC = "ibpanic: [4711] main: can't init UMAD library: No such file or directory\n"
# ib_umad is loaded only where a device is one of InfiniBand; ibstat then lists those alone, and there may be none.
IBSTATS = {
    "fails": Reply(Status.OK, exit_status=255, stderr=_PANIC, seconds=0.01),
    "lists none": Reply(Status.OK, exit_status=0, stdout="", seconds=0.01),
    "missing": Reply(Status.MISSING, reason="No such file or directory"),
}


def of_efa(
    node: Evidence, ibstat: str = "lists none", counted: Mapping[str, int] | None = None, **plugin: JsonValue
) -> Evidence:
    """Return a node with EFA devices in the place of its HCAs. `counted`: what its first device counts in the run;
    `plugin`: what differs of its network plug-in.
    """
    replies = dict(node.replies)
    for source in (TOPO, LIBRARIES, GROUPS, SYSFS, PCI, INTERFACES):
        replies[source.key] = _renamed(replies[source.key])
    wires = cast("dict[str, list[dict[str, JsonValue]]]", replies[INTERFACES.key].value)
    wires["interfaces"] = [{**nic, "driver": "ena"} for nic in wires["interfaces"] if not nic["hca"]]
    replies[INTERFACES.key] = replace(replies[INTERFACES.key], value=cast("JsonValue", wires))
    for source, at in ((FIRST, 1000.0), (LATER, 1042.0)):
        replies[source.key] = Reply(Status.OK, value=_counters(at, (counted or {}) if at > 1000 else {}))
    replies |= {
        IBSTAT.key: IBSTATS[ibstat],
        SYSFS.key: Reply(Status.OK, value=_sysfs(cast("dict[str, JsonValue]", replies[SYSFS.key].value))),
        HCAS.key: Reply(Status.OK, value=_hcas()),
        NET_PLUGIN.key: Reply(Status.OK, value=_net_plugin(plugin)),
    }
    return replace(node, replies=replies)


def without_plug_in(node: Evidence, **changed: JsonValue) -> Evidence:
    """Return a node on which the loader finds no plug-in."""
    reply = node.replies[NET_PLUGIN.key]
    lost: JsonValue = {"name": "libnccl-net.so", "path": None, "sure": True}
    value = {**cast("dict[str, JsonValue]", reply.value), "plugins": [lost], **changed}
    return replace(node, replies={**node.replies, NET_PLUGIN.key: replace(reply, value=value)})


def _net_plugin(changed: Mapping[str, JsonValue]) -> JsonValue:
    """Return what EFA's installer brings."""
    plugin: dict[str, JsonValue] = {
        "name": "libnccl-net.so", "path": PLUG_IN, "kind": "aws-ofi-nccl",
        "version": "1.16.3", "build": "5c0f", "net": [6, 7, 8, 9, 10], "tuner": [2, 3], "missing": [],
        "libfabric": {"path": "/opt/amazon/efa/lib/libfabric.so.1.25.0", "version": "1.22.0amzn4.0"}, **changed,
    }  # fmt: skip
    tuner: JsonValue = {"name": "libnccl-tuner.so", "path": None, "sure": True}
    efa: list[JsonValue] = [_device(index) for index in range(COUNT)]
    return {
        "named": [], "off": False, "plugins": [plugin], "tuner": tuner, "elsewhere": [], "efa": efa,
        "efa_driver": "2.13.0g",
    }  # fmt: skip


def _device(index: int | str) -> str:
    return f"rdmap{index}s0"


def _renamed(reply: Reply) -> Reply:
    """Return a reply with EFA's names and numbers in the place of mlx5's."""

    def changed(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            text = re.sub(r"mlx5_(\d)", lambda found: _device(found[1]), value).replace("mlx5_core", "efa")
            return {"0x020700": "0x020000", "0x15b3": "0x1d0f", "0x1021": "0xefa2"}.get(text, text)
        if isinstance(value, list):
            return [changed(one) for one in value]
        if isinstance(value, dict):
            return {cast("str", changed(name)): changed(one) for name, one in value.items()}
        return value

    return replace(reply, stdout=cast("str", changed(reply.stdout)), value=changed(reply.value))


def _sysfs(tree: dict[str, JsonValue]) -> JsonValue:
    """Return what the driver efa shows: always Active, of a link layer that sysfs has no name for, without a type."""
    said = {
        "link_layer": "Unknown\n", "rate": "100 Gb/sec (4X EDR)\n", "lid": "0x0\n", "sm_lid": "0x0\n",
        "fw_ver": "0.0.0.0\n", "node_guid": "0000:0000:0000:0000\n",
    }  # fmt: skip
    kept = {path: text for path, text in tree.items() if not path.endswith("/hca_type") and "/net/" not in path}
    return {path: said.get(path.rpartition("/")[2], text) for path, text in kept.items()}


def _hcas() -> JsonValue:
    port: JsonValue = {"port": 1, "rate": "100 Gb/sec (4X EDR)", "pkeys": ["0xffff"], "gids": [
        {"index": 0, "address": "fe80:0000:0000:0000:0452:6dff:fe10:0001", "kind": "IB/RoCE v1", "netdev": ""},
    ]}  # fmt: skip
    devices: list[JsonValue] = [{"hca": _device(index), "board": "", "ports": [port]} for index in range(COUNT)]
    return {"hcas": devices, "left_out": 0, "modules": {"ib_core": "", "ib_uverbs": ""}}


def _counters(at: float, errors: Mapping[str, int]) -> JsonValue:
    counted = {"read": 7, "sent": 10**12 + round(at) * 10**7, "received": 10**12 + round(at) * 10**7}
    ports: dict[str, JsonValue] = {f"{_device(index)}:1": {**counted, "errors": {}} for index in range(COUNT)}
    ports[f"{_device(0)}:1"] = {**counted, "errors": dict(errors)}
    return {"at": at, "ports": {**ports, "eno1": {**counted, "read": 3, "errors": {}}}}
