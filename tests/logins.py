"""Variables that ~/.bashrc sets, each in a line of its own, and the commands that remove or change such a line."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.environment import Assignment, EnvironmentFacts
from ncheck.model.fact import Absent, Unread


def in_bashrc(name: str) -> tuple[Assignment, ...]:
    return (Assignment("~/.bashrc", 1, (name,)),)


_SED = "sed -i --follow-symlinks -E"


def logins(
    variables: Mapping[str, str], files: Mapping[str, tuple[str, ...] | Unread | Absent] | None = None
) -> EnvironmentFacts:
    return EnvironmentFacts(variables, files or {}, (), {name: in_bashrc(name) for name in variables})


def line_removed(*names: str) -> str:
    one_of = names[0] if len(names) == 1 else f"({'|'.join(names)})"
    return f"{_SED} '/^(export +)?{one_of}=/d' ~/.bashrc"


def line_changed(name: str, value: str) -> str:
    return rf"{_SED} 's/^(export +)?{name}=.*/\1{name}={value}/' ~/.bashrc"
