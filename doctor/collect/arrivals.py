"""What the kernel says that it would do with packets of other nodes."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import cast

from doctor.collect.reader import Reader, no_answer
from doctor.model.evidence import Answer, Evidence
from doctor.model.fact import Read
from doctor.model.facts import Arrival, ArrivalFacts

ARRIVALS = Answer("arrivals")


def arrivals(evidence: Evidence) -> Read[ArrivalFacts]:
    """Read them; a node on which nothing could come in by a wrong interface was not asked, and is Absent."""
    reply = evidence.reply(ARRIVALS)
    if why := no_answer(ARRIVALS, reply):
        return why
    said = cast("Mapping[str, list[Mapping[str, object]]]", reply.value)
    return ArrivalFacts(tuple(_arrival(one) for one in said["arrivals"]))


def _arrival(one: Mapping[str, object]) -> Arrival:
    """Raise ValueError for what is no address and TypeError for what is no yes or no."""
    taken = one["taken"]
    if not isinstance(taken, bool):
        raise TypeError(f"{taken!r} is neither true nor false")
    address, source = (str(ip_address(str(one[key]))) for key in ("address", "source"))
    return Arrival(str(one["interface"]), address, source, taken)


READERS = (Reader(ArrivalFacts, (ARRIVALS,), arrivals),)
