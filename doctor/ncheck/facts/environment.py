"""The environment variables and configuration files that control NCCL, MPI and gloo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ncheck.facts.definition import Fact, no_answer
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class EnvironmentFacts:
    """The variables that control NCCL, MPI and gloo, as a non-interactive login sets them, and the lines of NCCL's
    configuration files by path. `missing_files`: NCCL's variables that name a file that does not exist.
    """

    variables: Mapping[str, str]
    files: Mapping[str, tuple[str, ...] | Unread | Absent]
    missing_files: tuple[str, ...] = ()


ENVIRONMENT = Answer("environment")


def environment(evidence: Evidence) -> Read[EnvironmentFacts]:
    """Read the variables of the login, overridden by those of the job's environment."""
    reply = evidence.reply(ENVIRONMENT)
    if why := no_answer(ENVIRONMENT, reply):
        return why
    answer = cast("Mapping[str, Mapping[str, object]]", reply.value)
    variables = {**answer["variables"], **answer["job_variables"]}
    files = {path: _file(path, lines) for path, lines in answer["files"].items()}
    missing = tuple(str(name) for name in answer.get("missing", ()))
    return EnvironmentFacts({name: str(value) for name, value in variables.items()}, files, missing)


def _file(path: str, lines: object) -> tuple[str, ...] | Unread | Absent:
    if lines is None:
        return Absent(f"{path} not found")
    if isinstance(lines, dict):
        return Unread(f"{path}: {lines.get('error')}")
    return tuple(str(line) for line in cast("list[object]", lines))


FACTS = (Fact(EnvironmentFacts, (ENVIRONMENT,), environment),)


IFNAME = "NCCL_SOCKET_IFNAME"
