"""Facts about the run itself: its options, facts that were not read, broken plug-ins, crashed checks."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.lazy_dataclass import dataclass
from ncheck.model.fact import Unread


@dataclass(frozen=True)
class UnreadFacts:
    """The facts that should have been readable on a reached node and were not, by name ("GpuFacts")."""

    unread: Mapping[str, Unread]

    def after(self, earlier: UnreadFacts) -> UnreadFacts:
        """Return both: facts are read in several phases."""
        return UnreadFacts({**earlier.unread, **self.unread})


@dataclass(frozen=True)
class JobFacts:
    """What is known of the job, the same on every node. `ifname`: the interface that it is to use (--ifname).

    `launcher` is that of the plan, None before there is one. `tree`: its daemons start others, as those of Open MPI do.
    `running`: ncheck runs inside the job, which its launcher has started. `local_shell` is the user's login shell on
    the machine where the launch line is typed, "" if that is not this machine.
    """

    ifname: str | None = None
    launcher: str | None = None
    tree: bool = True
    running: bool = False
    local_shell: str = ""


@dataclass(frozen=True)
class BrokenPlugIn:
    """A distribution or module whose checks could not be loaded, and why."""

    name: str
    why: str
    fix: str


@dataclass(frozen=True)
class PlugInFacts:
    """The plug-ins that are broken in this run: the same on every node, since none of their checks saw any."""

    broken: tuple[BrokenPlugIn, ...]


@dataclass(frozen=True)
class Crash:
    """A check that raised instead of judging."""

    check: str
    code: str
    module: str
    why: str


@dataclass(frozen=True)
class CrashFacts:
    """The checks that crashed on this node. Checks that read this fact are run last."""

    crashes: tuple[Crash, ...]
