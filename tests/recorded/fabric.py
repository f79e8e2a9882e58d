"""What a node's fabric looks like: the counters of its ports and cards, the same at both looks but for the traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.error_counters import FIRST, LATER
from ncheck.model.evidence import JsonValue, Reply, Status

if TYPE_CHECKING:
    from .host import Host

_ERRORS_OF_A_PORT, _ERRORS_OF_A_CARD = 18, 3
_CARRIED = 10**9  # bytes during the run


def fabric_replies(host: Host) -> dict[str, Reply]:
    """Return the answers, by source key."""
    return {
        FIRST.key: Reply(Status.OK, value={"at": 1000.0, "ports": _ports(host, 0)}, seconds=0.004),
        LATER.key: Reply(Status.OK, value={"at": 1042.0, "ports": _ports(host, _CARRIED)}, seconds=0.004),
    }


def _ports(host: Host, more: int) -> dict[str, JsonValue]:
    """Return what is counted. Every port once lost its link, when its switch was exchanged."""
    carried: dict[str, JsonValue] = {"sent": 7 * 10**12 + more, "received": 7 * 10**12 + more}
    ports: dict[str, JsonValue] = {
        f"{hca.name}:1": {"read": _ERRORS_OF_A_PORT, "errors": {"link_downed": 1}, **carried} for hca in host.hcas
    }
    cards = [nic.name for nic in host.nics if nic.pci]
    return ports | {name: {"read": _ERRORS_OF_A_CARD, "errors": {}, **carried} for name in cards}
