"""The environment variables and configuration files that control NCCL, MPI and gloo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import Fact, no_answer
from ncheck.hostlist import quoted
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


class EnvironmentAnswer(TypedDict):
    """The variables of the login and of the job; the lines of NCCL's files, None for one that is not there."""

    variables: dict[str, str]
    job_variables: dict[str, str]
    files: dict[str, list[str] | dict[str, str] | None]
    missing: list[str] | None


ENVIRONMENT = Answer("environment", shape=EnvironmentAnswer)


# OMPI_MCA_btl_tcp_if_include: a name becomes part of commands, and a shell has no other names
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")


def is_variable(name: str) -> bool:
    """Return whether a shell can have a variable of this name."""
    return _NAME.fullmatch(name) is not None


def environment(evidence: Evidence) -> Read[EnvironmentFacts]:
    """Read the variables of the login, overridden by those of the job's environment."""
    reply = evidence.reply(ENVIRONMENT)
    if why := no_answer(ENVIRONMENT, reply):
        return why
    answer = cast("EnvironmentAnswer", reply.value)
    variables = {**answer["variables"], **answer["job_variables"]}
    files = {_path(path): _file(path, lines) for path, lines in answer["files"].items()}
    missing = tuple(filter(is_variable, answer.get("missing") or ()))
    return EnvironmentFacts({name: value for name, value in variables.items() if is_variable(name)}, files, missing)


def _path(path: str) -> str:
    """Return the path of a file. Raises ValueError for one that cannot be part of a command."""
    if path.startswith("-") or not path.isprintable():
        raise ValueError(f"{quoted(path)} is not a path")
    return path


def _file(path: str, lines: list[str] | dict[str, str] | None) -> tuple[str, ...] | Unread | Absent:
    if lines is None:
        return Absent(f"{path} not found")
    return Unread(f"{path}: {lines.get('error')}") if isinstance(lines, dict) else tuple(lines)


FACTS = (Fact(EnvironmentFacts, (ENVIRONMENT,), environment),)


IFNAME = "NCCL_SOCKET_IFNAME"
