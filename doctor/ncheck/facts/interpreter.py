"""The Python interpreter that the job would use, and the frameworks installed in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

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


INTERPRETER = Answer("interpreter")


NCCL_WHEELS = "nvidia-nccl-"  # not a framework: the version of the NCCL in use is read from the library


def interpreter(evidence: Evidence) -> Read[InterpreterFacts]:
    """Read the job's interpreter; an empty list of frameworks is an answer too."""
    reply = evidence.reply(INTERPRETER)
    if why := trouble(INTERPRETER, reply):
        return Absent("no Python interpreter for a job on this node") if isinstance(why, Absent) else why
    answer = cast("Mapping[str, object]", reply.value)
    return InterpreterFacts(
        path=_text(answer, "path"),
        version=_text(answer, "version"),
        how=str(answer.get("how") or ""),
        frameworks={name: version for name, version in _packages(answer).items() if not name.startswith(NCCL_WHEELS)},
        container=str(answer.get("container") or ""),
    )


def packages(evidence: Evidence) -> dict[str, str]:
    """Return the frameworks in the job's interpreter by name; {} if it could not be read."""
    reply = evidence.reply(INTERPRETER)
    if not reply.succeeded or not isinstance(reply.value, dict):
        return {}
    return _packages(cast("Mapping[str, object]", reply.value))


def _packages(answer: Mapping[str, object]) -> dict[str, str]:
    """Return what is installed. Raises KeyError or AttributeError if the answer lacks the list."""
    return {name: str(version) for name, version in cast("Mapping[str, object]", answer["packages"]).items()}


def _text(answer: Mapping[str, object], key: str) -> str:
    """Return a string that must not be empty. Raises TypeError for anything else."""
    value = answer[key]
    if not isinstance(value, str) or not value:
        raise TypeError(f"{key} is not a string")
    return value


FACTS = (Fact(InterpreterFacts, (INTERPRETER,), interpreter),)
