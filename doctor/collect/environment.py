"""The variables that steer NCCL, MPI and gloo, and the lines of NCCL's configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from doctor.collect.reader import Reader, no_answer
from doctor.model.evidence import Answer, Evidence
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import EnvironmentFacts

ENVIRONMENT = Answer("environment")


def environment(evidence: Evidence) -> Read[EnvironmentFacts]:
    """Read the login's variables, with what the job's environment sets over them."""
    reply = evidence.reply(ENVIRONMENT)
    if why := no_answer(ENVIRONMENT, reply):
        return why
    said = cast("Mapping[str, Mapping[str, object]]", reply.value)
    variables = {**said["variables"], **said["job_variables"]}
    files = {path: _file(path, lines) for path, lines in said["files"].items()}
    missing = tuple(str(name) for name in said.get("missing", ()))
    return EnvironmentFacts({name: str(value) for name, value in variables.items()}, files, missing)


def _file(path: str, lines: object) -> tuple[str, ...] | Unread | Absent:
    if lines is None:
        return Absent(f"{path}: not there")
    if isinstance(lines, dict):
        return Unread(f"{path}: {lines.get('error')}")
    return tuple(str(line) for line in cast("list[object]", lines))


READERS = (Reader(EnvironmentFacts, (ENVIRONMENT,), environment),)
