"""Versions and software, as the job would have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ncheck.facts.definition import Fact, no_answer
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class EnvironmentFacts:
    """The variables that steer NCCL, MPI and gloo, in the environment that a non-interactive login gets, and the
    lines of NCCL's configuration files by path, as written. `missing_files`: variables of NCCL's that name a file that
    is not there.
    """

    variables: Mapping[str, str]
    files: Mapping[str, tuple[str, ...] | Unread | Absent]
    missing_files: tuple[str, ...] = ()


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


FACTS = (Fact(EnvironmentFacts, (ENVIRONMENT,), environment),)


IFNAME = "NCCL_SOCKET_IFNAME"
