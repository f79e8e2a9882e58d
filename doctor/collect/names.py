"""What names lead to on a node: its own, and those of the other listed nodes."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import cast

from doctor.collect.reader import LONGEST, Reader, no_answer
from doctor.hostlist import is_v6, quoted
from doctor.model.evidence import Answer, Evidence
from doctor.model.fact import Read
from doctor.model.facts import HostNameFacts, NameFacts, Resolved

HOST_NAME = Answer("host-name")
NAMES = Answer("names")


def host_name(evidence: Evidence) -> Read[HostNameFacts]:
    """Read the node's own name. Raises ValueError or KeyError for an answer that is none."""
    reply = evidence.reply(HOST_NAME)
    if why := no_answer(HOST_NAME, reply):
        return why
    said = cast("Mapping[str, object]", reply.value)
    return HostNameFacts(str(said["name"]), _resolved(said["leads_to"]))


def names(evidence: Evidence) -> Read[NameFacts]:
    """Read what the names that were asked for lead to; a node that was asked for none is Absent."""
    reply = evidence.reply(NAMES)
    if why := no_answer(NAMES, reply):
        return why
    said = cast("Mapping[str, Mapping[str, object]]", reply.value)
    return NameFacts({name: _resolved(what) for name, what in said["names"].items()})


def _resolved(said: object) -> Resolved:
    what = cast("Mapping[str, object]", said)
    if what.get("late"):
        return Resolved(late=True)
    if "error" in what:
        return Resolved(error=str(what["error"])[:LONGEST] or "it does not resolve")
    addresses = tuple(map(_address, cast("list[str]", what["addresses"])))
    return Resolved(addresses) if addresses else Resolved(error="it resolves to no address")


def _address(said: str) -> str:
    """Return an address as ipaddress writes it. Raises ValueError for a zone that is the name of no interface."""
    if "%" in said and not is_v6(said):
        raise ValueError(f"{quoted(said)} is no address")
    return str(ip_address(said))


READERS = (Reader(HostNameFacts, (HOST_NAME,), host_name), Reader(NameFacts, (NAMES,), names))
