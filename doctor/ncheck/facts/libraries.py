"""The libraries that a job opens by name and that no other fact shows, and the devices that libibverbs opens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.facts.shapes import device_name
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read

NO_HCA = Absent("no InfiniBand or RoCE device")


@dataclass(frozen=True)
class LibraryFacts:
    """Why a library cannot be opened in the job's environment, "" if it can; Absent where nothing needs it.

    `uverbs`: the same of each HCA's device, /dev/infiniband/uverbs0 or another, by the name of the HCA.
    `listed`: the HCAs that libibverbs finds there; None if it was not asked.
    """

    verbs: str | Absent
    mpi: str | Absent
    uverbs: Mapping[str, str] | Absent = NO_HCA
    listed: tuple[str, ...] | None = None


class LibrariesAnswer(TypedDict):
    """Why a library or a device does not open, "" if it does; null where nothing needs it.

    Recordings of earlier releases have no `uverbs` and no `listed`.
    """

    verbs: str | None
    mpi: str | None
    uverbs: dict[str, str] | None
    listed: list[str] | None


LIBRARIES = Answer("libraries", shape=LibrariesAnswer)


def libraries(evidence: Evidence) -> Read[LibraryFacts]:
    """Read the answer."""
    reply = evidence.reply(LIBRARIES)
    if why := no_answer(LIBRARIES, reply):
        return why
    answer = cast("LibrariesAnswer", reply.value)
    uverbs, listed = answer.get("uverbs"), answer.get("listed")
    return LibraryFacts(
        _trouble(answer["verbs"], NO_HCA.reason),
        _trouble(answer["mpi"], "no daemon of Open MPI"),
        NO_HCA if uverbs is None else {device_name(hca): why[:LONGEST] for hca, why in uverbs.items()},
        None if listed is None else tuple(map(device_name, listed)),
    )


def _trouble(value: str | None, absent: str) -> str | Absent:
    return Absent(absent) if value is None else value[:LONGEST]


FACTS = (Fact(LibraryFacts, (LIBRARIES,), libraries),)
