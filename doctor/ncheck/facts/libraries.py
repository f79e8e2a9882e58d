"""The libraries that a job opens by name and that no other fact shows: libibverbs and Open MPI's libmpi."""

from __future__ import annotations

from dataclasses import dataclass

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.facts.shapes import mapping, words
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Absent, Read


@dataclass(frozen=True)
class LibraryFacts:
    """Why a library cannot be opened in the job's environment, "" if it can; Absent where nothing needs it."""

    verbs: str | Absent
    mpi: str | Absent


LIBRARIES = Answer("libraries")


def libraries(evidence: Evidence) -> Read[LibraryFacts]:
    """Read the answer."""
    reply = evidence.reply(LIBRARIES)
    if why := no_answer(LIBRARIES, reply):
        return why
    answer = mapping(reply.value)
    return LibraryFacts(
        _trouble(answer["verbs"], "no InfiniBand or RoCE device"), _trouble(answer["mpi"], "no daemon of Open MPI")
    )


def _trouble(value: JsonValue, absent: str) -> str | Absent:
    return Absent(absent) if value is None else words(value)[:LONGEST]


FACTS = (Fact(LibraryFacts, (LIBRARIES,), libraries),)
