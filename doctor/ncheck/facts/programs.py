"""Whether a node has the program that a launch starts, and the script that this is given: the words after --."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from posixpath import basename, join
from typing import TYPE_CHECKING, TypedDict, cast, final

from ncheck.facts.definition import LONGEST, Fact, no_answer
from ncheck.facts.shapes import absolute_path
from ncheck.model.evidence import Answer, Evidence, JsonValue, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class ProgramFacts:
    """By full path, why the job cannot start it on the node ("does not exist"); "" if it can."""

    paths: Mapping[str, str | Unread]


@final
class LookedFor(TypedDict):
    """Why the job cannot start it, "" if it can."""

    trouble: str


@final
class NotRead(TypedDict):
    """Why a path could not be looked at."""

    error: str


class ProgramsAnswer(TypedDict):
    """Each path that was asked for."""

    paths: dict[str, LookedFor | NotRead]


PROGRAMS = Answer("programs", shape=ProgramsAnswer)

# python3.11  bash
_INTERPRETER = re.compile(r"python[0-9.]*|(ba|da|z|k)?sh", re.ASCII)


def programs(evidence: Evidence) -> Read[ProgramFacts]:
    """Read the answer."""
    reply = evidence.reply(PROGRAMS)
    if reply.status is Status.UNANSWERED and evidence.recorded:
        return Absent("the recording lacks it: no command was given then")
    if why := no_answer(PROGRAMS, reply):
        return why
    answer = cast("ProgramsAnswer", reply.value)
    return ProgramFacts({absolute_path(path): _state(path, found) for path, found in answer["paths"].items()})


def _state(path: str, found: LookedFor | NotRead) -> str | Unread:
    if "error" in found:
        return Unread(f"{path}: {found['error'][:LONGEST]}")
    return printable(found["trouble"], LONGEST)


def paths_of(program: tuple[str, ...], workdir: str | None) -> tuple[str, str]:
    """Return the full paths of a command's program and of the script that it is given; "" for what has none.

    A name that a PATH leads to has none, and a relative path only where the folder of the job is known (--workdir).
    """
    first, *rest = program
    script = ""
    if _INTERPRETER.fullmatch(basename(first)):
        rest = rest[1:] if rest[:1] == ["-u"] else rest
        script = rest[0] if rest and not rest[0].startswith("-") else ""
    return _full(first if "/" in first else "", workdir), _full(script, workdir)


def _full(path: str, workdir: str | None) -> str:
    if not path or path.startswith("/"):
        return path
    return join(workdir, path) if workdir and workdir.startswith("/") else ""


def _questions(cluster: Cluster, settings: Settings, _: float) -> Questions:
    program, script = paths_of(settings.program, settings.workdir)
    asked: JsonValue = {"programs": [program] if program else [], "files": [script] if script else []}
    return dict.fromkeys(cluster.names, (Answer(PROGRAMS.name, arguments=asked, shape=ProgramsAnswer),))


def _exempt(cluster: Cluster, settings: Settings) -> Mapping[str, str]:
    if settings.ranks:
        return dict.fromkeys(cluster.names, "the job has been started already")
    if settings.program and any(paths_of(settings.program, settings.workdir)):
        return {}
    return dict.fromkeys(cluster.names, "no command with a full path was given")


FACTS = (Fact(ProgramFacts, (PROGRAMS,), programs, questions=_questions, exempt=_exempt),)
