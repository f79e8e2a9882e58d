"""The Python interpreter that the job would use, and the frameworks installed in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import Fact, trouble
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read


@dataclass(frozen=True)
class InterpreterFacts:
    """The interpreter that the job would use. `frameworks` maps torch, tensorflow, horovod, oneflow, paddle, jax,
    deepspeed and the like to their versions; it is empty if none is installed. `container` is the command that entered
    one ("docker exec -i train"), or the kind of container that the node itself is (docker).
    `how` says why this interpreter: "--python", "active venv", "active conda", "python3 on PATH".
    """

    path: str
    version: str
    how: str
    frameworks: Mapping[str, str]
    container: str = ""


class InterpreterAnswer(TypedDict):
    """The job's interpreter, and the packages that matter to it."""

    path: str
    version: str
    how: str | None
    packages: dict[str, str]
    container: str | None


INTERPRETER = Answer("interpreter", shape=InterpreterAnswer)


# tensorflow-gpu: a name becomes part of commands
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


NCCL_WHEELS = "nvidia-nccl-"  # not a framework: the version of the NCCL in use is read from the library


def interpreter(evidence: Evidence) -> Read[InterpreterFacts]:
    """Read the job's interpreter; an empty list of frameworks is an answer too."""
    reply = evidence.reply(INTERPRETER)
    if why := trouble(INTERPRETER, reply):
        return Absent("no Python interpreter for a job on this node") if isinstance(why, Absent) else why
    answer = cast("InterpreterAnswer", reply.value)
    if not answer["path"] or not answer["version"]:
        raise ValueError("its path or version is empty")
    return InterpreterFacts(
        path=answer["path"],
        version=answer["version"],
        how=answer.get("how") or "",
        frameworks={name: held for name, held in packages(evidence).items() if not name.startswith(NCCL_WHEELS)},
        container=answer.get("container") or "",
    )


def packages(evidence: Evidence) -> dict[str, str]:
    """Return the frameworks in the job's interpreter by name; {} if it could not be read."""
    reply = evidence.reply(INTERPRETER)
    held = cast("InterpreterAnswer", reply.value)["packages"] if reply.succeeded else {}
    return {name: version for name, version in held.items() if _PACKAGE.fullmatch(name)}


FACTS = (Fact(InterpreterFacts, (INTERPRETER,), interpreter),)
