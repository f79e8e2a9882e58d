"""The environment variables and configuration files that control NCCL, MPI and gloo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Annotated

from ncheck.decode import OPTIONAL, Null
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact
from ncheck.hostlist import quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Absent, Unread


def _path(path: str) -> str:
    """Return the path of a file. Raises ValueError for one that cannot be part of a command."""
    if path.startswith("-") or not path.isprintable():
        raise ValueError(f"{quoted(path)} is not a path")
    return path


@dataclass(frozen=True)
class Assignment:
    """A line of a start-up file that sets a variable: the file ("~/.bashrc"), and the line's number from 1.

    `sets`: all variables that the line sets; empty where it does anything else.
    """

    file: Annotated[str, _path]
    line: int
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnvironmentFacts:
    """The variables that control NCCL, MPI and gloo, as a non-interactive login sets them, and the lines of NCCL's
    configuration files by path. `missing_files`: variables of NCCL that name a file that does not exist, and those of
    Open MPI that name such a folder. `start_up`: by variable, the lines of start-up files that set it.
    """

    variables: Mapping[str, str]
    files: Mapping[str, tuple[str, ...] | Unread | Absent]
    missing_files: tuple[str, ...] = ()
    start_up: Mapping[str, tuple[Assignment, ...]] = field(default_factory=dict)

    @cached_property
    def placed(self) -> dict[tuple[int, ...], Mapping[str, tuple[str, str]]]:
        """NCCL's settings by release, of those that were asked for: see nccl/settings.py."""
        return {}


@dataclass(frozen=True)
class EnvironmentAnswer:
    """The variables of the login and of the job; the lines of NCCL's files, None for one that is not there."""

    variables: Mapping[str, str]
    job_variables: Mapping[str, str]
    files: Mapping[Annotated[str, _path], tuple[str, ...] | Unread | None]
    missing: Annotated[tuple[str, ...], OPTIONAL, Null(())]
    start_up: Annotated[Mapping[str, tuple[Assignment, ...]] | None, OPTIONAL]


ENVIRONMENT = Answer("environment", shape=EnvironmentAnswer)

# OMPI_MCA_btl_tcp_if_include: a name becomes part of commands, and a shell has no other names
_NAME = expression(r"[A-Za-z_][A-Za-z0-9_]{0,255}")


def is_variable(name: str) -> bool:
    """Return whether a shell can have a variable of this name."""
    return _NAME.fullmatch(name) is not None


def variable(name: str) -> str:
    """Return the name of a variable. Raises ValueError for what is none."""
    if not is_variable(name):
        raise ValueError(f"{quoted(name)} is not a variable")
    return name


def variable_or_empty(name: str) -> str:
    return variable(name) if name else ""


@reading(ENVIRONMENT)
def environment(answer: EnvironmentAnswer) -> EnvironmentFacts:
    """Read the variables of the login, overridden by those of the job's environment."""
    variables = {**answer.variables, **answer.job_variables}
    files = {path: _named(path, lines) for path, lines in answer.files.items()}
    missing = tuple(filter(is_variable, answer.missing))
    valid = {name: value for name, value in variables.items() if is_variable(name)}
    return EnvironmentFacts(valid, files, missing, answer.start_up or {})


def _named(path: str, lines: tuple[str, ...] | Unread | None) -> tuple[str, ...] | Unread | Absent:
    if lines is None:
        return Absent(f"{path} not found")
    return Unread(f"{path}: {lines.reason}") if isinstance(lines, Unread) else lines


FACTS = (Fact(EnvironmentFacts, (ENVIRONMENT,), environment),)
IFNAME = "NCCL_SOCKET_IFNAME"
