"""The launch plan: the environment variables and the command line of a job, each value with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ncheck.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Setting:
    """One variable of a launch plan.

    value: The value; null: leave it unset.
    reason: The reason.
    evidence: Evidence, one line each.
    decided: False if the right value could not be determined.
    pin: The value that makes sure of what happens without one; empty if there is none, or value is set.
    """

    value: str | None
    reason: str
    evidence: tuple[str, ...] = ()
    decided: bool = True
    pin: str = ""


@dataclass(frozen=True)
class LaunchCommand:
    """The command that starts all ranks, as `ncheck launch` executes it.

    argv: The command's words; they start all ranks.
    program: The launcher's executable; in argv it may follow env or a shell.
    mpi_implementation: The nodes' MPI, such as Open MPI, if mpirun starts the ranks; else empty.
    mpi_version: That MPI's version, such as 4.1.4; else empty.
    prefix: The value of Open MPI's --prefix; empty if the command has none.
    hosts: The number of ranks on each node, in the order of the list.
    """

    argv: tuple[str, ...]
    program: str
    mpi_implementation: str = ""
    mpi_version: str = ""
    prefix: str = ""
    hosts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Blocker:
    """One reason not to use the plan.

    message: The reason.
    nodes: The nodes.
    fix: A command that fixes or shows it, or a sentence; may be empty.
    code: The code of the finding; empty if the result of checks is unknown.
    where: Where to type the fix: here, or node names; empty: on the nodes.
    kind: fix, look for a command that only shows more, or do for a sentence.
    ask: True if only root may type it, which the user of the run probably cannot become there.
    """

    message: str
    nodes: tuple[str, ...]
    fix: str = ""
    code: str = ""
    where: str = ""
    kind: str = "fix"
    ask: bool = False


@dataclass(frozen=True)
class LaunchPlan:
    """How to start the job.

    env: Environment variables of the job, by name.
    lines: The command line, by launcher, such as mpirun.
    notes: What could not be decided, with the reason.
    reasons: Reasons for the values in each line, by launcher.
    per_node: Variables whose value differs by node, by node; null in env.
    command: The same line as a command; null if every node has a line of its own, or there is none.
    blockers: Why the plan must not be used as it is; empty if it can be.
    avoids: The codes of findings that harm a launch without the plan and none with it.
    """

    env: Mapping[str, Setting] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_node: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    command: LaunchCommand | None = None
    blockers: tuple[Blocker, ...] = ()
    avoids: tuple[str, ...] = ()

    @property
    def made(self) -> bool:
        """Whether there is anything to use."""
        return bool(self.lines or self.env)
