"""The limits that a job started over ssh would have: not those of a person's terminal."""

from __future__ import annotations

from doctor.collect.reader import LONGEST, Reader, no_answer
from doctor.collect.shapes import mapping, whole, words
from doctor.model.evidence import Answer, Evidence, JsonValue
from doctor.model.fact import Read, Unread
from doctor.model.facts import LimitsFacts, SharedMemory

LIMITS = Answer("limits")

_SHM = "/dev/shm"  # noqa: S108  it is only named, never written to


def limits(evidence: Evidence) -> Read[LimitsFacts]:
    """Read the limits; null is unlimited."""
    reply = evidence.reply(LIMITS)
    if why := no_answer(LIMITS, reply):
        return why
    said = mapping(reply.value)
    memlock = said["memlock"]
    return LimitsFacts(None if memlock is None else whole(memlock), _shared(said["shm"]))


def _shared(value: JsonValue) -> SharedMemory | Unread:
    said = mapping(value)
    if "error" in said:
        return Unread(f"{_SHM}: {words(said['error'])[:LONGEST]}")
    return SharedMemory(whole(said["total"]), whole(said["free"]))


READERS = (Reader(LimitsFacts, (LIMITS,), limits),)
