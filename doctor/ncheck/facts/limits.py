"""The resource limits of a non-interactive login, and the size of /dev/shm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, cast, final

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.facts.shapes import whole
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read, Unread


@dataclass(frozen=True)
class SharedMemory:
    """The size and the free space of /dev/shm, in bytes."""

    total: int
    free: int


@dataclass(frozen=True)
class LimitsFacts:
    """Limits of a non-interactive login: locked memory in bytes (None: unlimited), and shared memory."""

    memlock: int | None
    shm: SharedMemory | Unread


@final
class SharedMemoryAnswer(TypedDict):
    """Bytes of /dev/shm."""

    total: int
    free: int


@final
class NotRead(TypedDict):
    """Why /dev/shm cannot be read."""

    error: str


class LimitsAnswer(TypedDict):
    """Bytes; null is unlimited."""

    memlock: int | None
    shm: SharedMemoryAnswer | NotRead


LIMITS = Answer("limits", shape=LimitsAnswer)


_SHM = "/dev/shm"  # noqa: S108  only named, never written to


def limits(evidence: Evidence) -> Read[LimitsFacts]:
    """Read the limits; null is unlimited."""
    reply = evidence.reply(LIMITS)
    if why := no_answer(LIMITS, reply):
        return why
    answer = cast("LimitsAnswer", reply.value)
    memlock = answer["memlock"]
    return LimitsFacts(None if memlock is None else whole(memlock), _shared(answer["shm"]))


def _shared(answer: SharedMemoryAnswer | NotRead) -> SharedMemory | Unread:
    if "error" in answer:
        return Unread(f"{_SHM}: {answer['error'][:LONGEST]}")
    return SharedMemory(whole(answer["total"]), whole(answer["free"]))


FACTS = (Fact(LimitsFacts, (LIMITS,), limits),)
