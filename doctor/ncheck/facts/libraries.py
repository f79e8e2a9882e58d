"""The libraries that a job opens by name and that no other fact shows: libibverbs and Open MPI's libmpi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read


@dataclass(frozen=True)
class LibraryFacts:
    """Why a library cannot be opened in the job's environment, "" if it can; Absent where nothing needs it."""

    verbs: str | Absent
    mpi: str | Absent


class LibrariesAnswer(TypedDict):
    """Why a library does not open, "" if it does; null where nothing needs it."""

    verbs: str | None
    mpi: str | None


LIBRARIES = Answer("libraries", shape=LibrariesAnswer)


def libraries(evidence: Evidence) -> Read[LibraryFacts]:
    """Read the answer."""
    reply = evidence.reply(LIBRARIES)
    if why := no_answer(LIBRARIES, reply):
        return why
    answer = cast("LibrariesAnswer", reply.value)
    return LibraryFacts(
        _trouble(answer["verbs"], "no InfiniBand or RoCE device"), _trouble(answer["mpi"], "no daemon of Open MPI")
    )


def _trouble(value: str | None, absent: str) -> str | Absent:
    return Absent(absent) if value is None else value[:LONGEST]


FACTS = (Fact(LibraryFacts, (LIBRARIES,), libraries),)
