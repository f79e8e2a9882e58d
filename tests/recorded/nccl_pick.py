"""What NCCL itself answers when it is asked which address it picks: as things are, and under the plan's variables."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from ncheck.facts.nccl_pick import PICK
from ncheck.model.evidence import JsonValue, Note, Reply, Status
from ncheck.plan.planned_pick import PLANNED

from .host import address
from .software import LIBRARIES

if TYPE_CHECKING:
    from .host import Host

NOTHING_TO_TRY = "the plan sets nothing that NCCL reads"


def pick_replies(host: Host) -> dict[str, Reply | Note]:
    """Return both answers; under the plan only where the plan has something to set."""
    asked: JsonValue = {"variables": {"NCCL_SOCKET_IFNAME": f"={host.planned}"}, "interfaces": [host.planned]}
    return {
        PICK.key: _answer(host, host.picked or address(host.number), {}),
        PLANNED.key: _answer(host, address(host.number), asked) if host.planned else Note(NOTHING_TO_TRY),
    }


def _answer(host: Host, ip: str, asked: JsonValue) -> Reply:
    value: JsonValue = {
        "version": host.nccl,
        "path": f"{LIBRARIES}/libnccl.so.{host.nccl}",
        "code": 0,
        "id": _identifier(host, ip),
        "words": "",
        "rendezvous": "",
        "asked": asked,
    }
    return Reply(Status.OK, value=value, seconds=0.05)


def _identifier(host: Host, ip: str) -> str:
    """Return the 128 bytes: a random number, AF_INET, a port, the address."""
    magic, port = (0x6E636368_65636B00 + host.number).to_bytes(8, "little"), (40000 + host.number).to_bytes(2, "big")
    return (magic + b"\2\0" + port + IPv4Address(ip).packed).ljust(128, b"\0").hex()
