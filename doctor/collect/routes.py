"""What the kernel says of the route to where other nodes' NCCL would wait."""

from __future__ import annotations

from ipaddress import ip_address

from doctor.collect.reader import LONGEST, Reader, no_answer
from doctor.collect.shapes import mapping, words
from doctor.model.evidence import Answer, Evidence, JsonValue
from doctor.model.fact import Read
from doctor.model.facts import RouteFacts

ROUTES = Answer("routes")


def routes(evidence: Evidence) -> Read[RouteFacts]:
    """Read them; a node of whose subnets all picks are was not asked, and is Absent."""
    reply = evidence.reply(ROUTES)
    if why := no_answer(ROUTES, reply):
        return why
    said = mapping(mapping(reply.value)["routes"])
    return RouteFacts({str(ip_address(address)): _why(none) for address, none in said.items()})


def _why(none: JsonValue) -> str:
    return "" if none is None else words(none)[:LONGEST]


READERS = (Reader(RouteFacts, (ROUTES,), routes),)
