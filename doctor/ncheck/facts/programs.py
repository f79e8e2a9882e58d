"""Whether a node has the program that a launch starts, and the script that this is given: the words after --."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from posixpath import basename, join
from typing import TYPE_CHECKING

from ncheck.decode import Path, Shown
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.fact import Unread

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class ProgramFacts:
    """By full path, why the job cannot start it on the node ("does not exist"); "" if it can."""

    paths: Mapping[str, str | Unread]


@dataclass(frozen=True)
class LookedFor:
    """Why the job cannot start it, "" if it can."""

    trouble: Shown


@dataclass(frozen=True)
class ProgramsAnswer:
    """Each path that was asked for."""

    paths: Mapping[Path, LookedFor | Unread]


PROGRAMS = Answer("programs", shape=ProgramsAnswer)

# python3.11  bash
_INTERPRETER = expression(r"python[0-9.]*|(ba|da|z|k)?sh", re.ASCII)


@reading(PROGRAMS)
def programs(answer: ProgramsAnswer) -> ProgramFacts:
    """Read the answer."""
    return ProgramFacts({
        path: Unread(f"{path}: {found.reason}") if isinstance(found, Unread) else found.trouble
        for path, found in answer.paths.items()
    })  # fmt: skip


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
    return dict.fromkeys(cluster.names, (replace(PROGRAMS, arguments=asked),))


def _exempt(cluster: Cluster, settings: Settings) -> Mapping[str, str]:
    if settings.run.ranks:
        return dict.fromkeys(cluster.names, "the job has been started already")
    if settings.program and any(paths_of(settings.program, settings.workdir)):
        return {}
    return dict.fromkeys(cluster.names, "no command with a full path was given")


FACTS = (
    Fact(
        ProgramFacts,
        (PROGRAMS,),
        programs,
        questions=_questions,
        exempt=_exempt,
        unrecorded="the recording lacks it: no command was given then",
    ),
)
