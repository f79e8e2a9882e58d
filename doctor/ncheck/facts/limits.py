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
    """Soft limits of a non-interactive login, None where unlimited, and shared memory.

    `memlock`, `address_space` and `file_size` are in bytes; `processes` counts all processes and threads of the user.
    """

    memlock: int | None
    shm: SharedMemory | Unread
    open_files: int | None = None
    processes: int | None = None
    address_space: int | None = None
    cpu_seconds: int | None = None
    file_size: int | None = None


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
    """Soft limits; null is unlimited."""

    memlock: int | None
    open_files: int | None
    processes: int | None
    address_space: int | None
    cpu_seconds: int | None
    file_size: int | None
    shm: SharedMemoryAnswer | NotRead


LIMITS = Answer("limits", shape=LimitsAnswer)


_SHM = "/dev/shm"  # noqa: S108  only named, never written to


def limits(evidence: Evidence) -> Read[LimitsFacts]:
    """Read the limits; null is unlimited."""
    reply = evidence.reply(LIMITS)
    if why := no_answer(LIMITS, reply):
        return why
    answer = cast("LimitsAnswer", reply.value)

    def limit(value: int | None) -> int | None:
        return None if value is None else whole(value)

    return LimitsFacts(
        memlock=limit(answer["memlock"]),
        shm=_shared(answer["shm"]),
        open_files=limit(answer["open_files"]),
        processes=limit(answer["processes"]),
        address_space=limit(answer["address_space"]),
        cpu_seconds=limit(answer["cpu_seconds"]),
        file_size=limit(answer["file_size"]),
    )


def _shared(answer: SharedMemoryAnswer | NotRead) -> SharedMemory | Unread:
    if "error" in answer:
        return Unread(f"{_SHM}: {answer['error'][:LONGEST]}")
    return SharedMemory(whole(answer["total"]), whole(answer["free"]))


FACTS = (Fact(LimitsFacts, (LIMITS,), limits),)
