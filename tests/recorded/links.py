"""What a node answers about the network between the nodes: where it listens, and which links carry data."""

from __future__ import annotations

from ipaddress import ip_interface
from typing import TYPE_CHECKING

from ncheck.facts.links import CONNECT, LISTEN
from ncheck.model.evidence import JsonValue, Reply, Status

if TYPE_CHECKING:
    from .host import Host, Nic

TORCH_PORT = 29500


def link_replies(host: Host) -> dict[str, Reply]:
    """Return the answers to `listen` and `connect`, by source key. Only the first node has the job's port."""
    wires = [nic for nic in host.nics if nic.ip and nic.default_route]
    ports: JsonValue = {wire.ip: 41000 + host.number * 16 + place for place, wire in enumerate(wires)}
    holder = host.port_holder
    port: JsonValue = {"port": TORCH_PORT, "assumed": not holder, "free": not holder, "taken_by": holder, "error": ""}
    needed: JsonValue = [port] if host.number == 1 else []
    listening: JsonValue = {"ports": ports, "failed": {}, "needed": needed}
    reached: JsonValue = {
        "reaches": [_reach(host, wire) for wire in wires],
        "broken": [_broken(wire, *failed) for wire in wires for failed in host.broken],
        "tried": list(host.peers),
        "lossy": [],
        "counted": True,
        "late": [],
    }
    return {
        LISTEN.key: Reply(Status.OK, value=listening, seconds=0.002),
        CONNECT.key: Reply(Status.OK, value=reached, seconds=0.03),
    }


def _reach(host: Host, wire: Nic) -> JsonValue:
    return {
        "subnet": _subnet(wire),
        "source": wire.ip,
        "tried": len(host.peers),
        "reached": len(host.peers) - len(host.broken),
    }


_WORDS = {
    "filtered": "no answer within 5 s",
    "large-lost": "small messages pass; of 256 KiB sent nothing more arrived for 5 s",
    "large-lost-back": "small messages pass; of 256 KiB sent back nothing more arrived for 5 s",
}


def _broken(wire: Nic, target: str, address: str, cause: str) -> JsonValue:
    return {
        "source": wire.ip, "target": target, "address": address, "subnet": _subnet(wire), "cause": cause,
        "detail": _WORDS[cause], "port": 0,
    }  # fmt: skip


def _subnet(wire: Nic) -> str:
    return str(ip_interface(f"{wire.ip}/{wire.prefix}").network)
