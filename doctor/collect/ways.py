"""What the kernel says of the way to where other nodes' NCCL would wait."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import cast

from doctor.collect.reader import LONGEST, Reader, no_answer
from doctor.model.evidence import Answer, Evidence
from doctor.model.fact import Read
from doctor.model.facts import WayFacts

WAYS = Answer("ways")


def ways(evidence: Evidence) -> Read[WayFacts]:
    """Read them; a node of whose subnets all picks are was not asked, and is Absent."""
    reply = evidence.reply(WAYS)
    if why := no_answer(WAYS, reply):
        return why
    said = cast("Mapping[str, Mapping[str, object]]", reply.value)["ways"]
    return WayFacts({str(ip_address(address)): _why(none) for address, none in said.items()})


def _why(none: object) -> str:
    """Raise TypeError for what is neither words nor nothing."""
    if none is not None and not isinstance(none, str):
        raise TypeError(f"{none!r} is no reason")
    return (none or "")[:LONGEST]


READERS = (Reader(WayFacts, (WAYS,), ways),)
