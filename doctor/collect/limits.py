"""The limits that a job started over ssh would have: not those of a person's terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from doctor.collect.reader import Reader, no_answer
from doctor.model.evidence import Answer, Evidence
from doctor.model.fact import Read, Unread
from doctor.model.facts import LimitsFacts

LIMITS = Answer("limits")

_SHM = "/dev/shm"  # noqa: S108  it is only named, never written to


def limits(evidence: Evidence) -> Read[LimitsFacts]:
    """Read the limits; null is unlimited. Raises KeyError where a limit was not told at all."""
    reply = evidence.reply(LIMITS)
    if why := no_answer(LIMITS, reply):
        return why
    said = cast("Mapping[str, object]", reply.value)
    shm = cast("Mapping[str, object]", said.get("shm") or {"error": "not told"})
    return LimitsFacts(
        memlock=_limit(said["memlock"]),
        open_files=_limit(said["open_files"]),
        shm_total=_bytes(shm, "total"),
        shm_free=_bytes(shm, "free"),
    )


def _limit(value: object) -> int | None:
    """Return a limit, None for unlimited. Raises TypeError for what is neither."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise TypeError(f"{value!r} is no limit")


def _bytes(shm: Mapping[str, object], key: str) -> int | Unread:
    value = shm.get(key)
    return value if isinstance(value, int) else Unread(f"{_SHM}: {shm.get('error') or 'not told'}")


READERS = (Reader(LimitsFacts, (LIMITS,), limits),)
