"""The launch plan: the environment variables and the command line of a job, each value with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ncheck.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Setting:
    """One variable. If `value` is None, leave it unset: `reason` says why.

    `decided` False: ncheck could not determine the right value, and `reason` says why.
    """

    value: str | None
    reason: str
    evidence: tuple[str, ...] = ()
    decided: bool = True


@dataclass(frozen=True)
class LaunchCommand:
    """The command that starts all ranks, as `ncheck launch` executes it.

    `program` is the launcher's executable; in `argv` it may follow `env` or a shell. `mpi_implementation` and
    `mpi_version` are the nodes' MPI if mpirun starts the ranks. `prefix` is the value of Open MPI's --prefix, "" if the
    command has none.
    """

    argv: tuple[str, ...]
    program: str
    mpi_implementation: str = ""
    mpi_version: str = ""
    prefix: str = ""


@dataclass(frozen=True)
class Blocker:
    """One reason not to use the plan: on which nodes, and something to type. `code` is "" for unknown verdicts.

    `where` and `kind` are those of the finding: where the fix is typed (empty: on the nodes), and "fix", "look", "do".
    `ask` is that of the finding, too: an administrator has to type it.
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

    `env` maps a variable to its setting. `lines` maps a launcher to the text to type, and `reasons` to the reasons for
    it; `command` is the same text as a command, None if every node has a command of its own. `notes` say what could not
    be decided and why. `per_node` maps nodes to the variables whose values differ between nodes: these have no value in
    `env`, and no single value is right on all nodes. `blockers` are reasons not to use the plan as it is. `avoids` are
    the codes of findings that harm a launch without the plan and none with it.
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
