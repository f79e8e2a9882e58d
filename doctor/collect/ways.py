"""What the kernel says of the way to where other nodes' NCCL would wait."""

from __future__ import annotations

from ipaddress import ip_address

from doctor.collect.reader import LONGEST, Reader, no_answer
from doctor.collect.shapes import mapping, words
from doctor.model.evidence import Answer, Evidence, JsonValue
from doctor.model.fact import Read
from doctor.model.facts import WayFacts

WAYS = Answer("ways")


def ways(evidence: Evidence) -> Read[WayFacts]:
    """Read them; a node of whose subnets all picks are was not asked, and is Absent."""
    reply = evidence.reply(WAYS)
    if why := no_answer(WAYS, reply):
        return why
    said = mapping(mapping(reply.value)["ways"])
    return WayFacts({str(ip_address(address)): _why(none) for address, none in said.items()})


def _why(none: JsonValue) -> str:
    return "" if none is None else words(none)[:LONGEST]


READERS = (Reader(WayFacts, (WAYS,), ways),)
