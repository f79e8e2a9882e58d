"""What makes a fact: the sources to read on a node, the pure parse, its phase, and what its questions need."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Command, Evidence, File, Reply, Source, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.text import LONGEST_MESSAGE

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster, FactType
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings

T = TypeVar("T")
_FEW_LINES = 3  # of a program's message, shown whole

# The phases of a collection, in their order. Each is named as people see it while it runs.
COLLECTING, LISTENING, ASKING_PEERS, TRYING_PLAN = "collecting", "listening", "asking its peers", "trying the plan"
READING_FILES = "reading files"  # only with --storage-probe
ON_THIS_MACHINE = "trying ssh from here"  # beside the first phase, in no phase of the nodes: this machine answers
FINDING, LOOKING, WATCHING = "finding the job", "looking at the job", "watching the job"  # what only triage asks
MEASURING = "measuring"  # in steps, each chosen from what the ones before it measured
LOOKING_AGAIN = "reading counters again"  # last of all: what was counted since the first phase


@dataclass(frozen=True)
class Fact(Generic[T]):
    """How one fact is read. A module lists its facts in FACTS; nothing else has to know of a new one.

    `parse` may raise ValueError, KeyError, TypeError and the like on nonsense: the fact is then Unread. Without
    `parse`, the agent's answer to the only source is the record (facts/answers.py). Without `questions` every node is
    asked for `sources` in the first phase. With them, `questions(cluster, settings, seconds)` makes each node's own in
    `phase`, from the facts in `needs`, which are read before. `exempt` returns the nodes that need not be asked, with
    the reason, before anything is known.

    Nodes with equal replies share one fact, so `parse` may read the replies to its own sources and `recorded`, and
    nothing else of the evidence: `of_its_node` says that it reads more (the login, the clock, where it is listed). Of
    an answer with a declared type it reads what was declared.
    `unrecorded`: what a recording lacks that was made without the option that asks for it.
    """

    record: type[T]
    sources: tuple[Source, ...]
    parse: Callable[[Evidence], Read[T]] | None = None
    phase: str = COLLECTING
    needs: tuple[FactType, ...] = ()
    questions: Callable[[Cluster, Settings, float], Questions] | None = None
    exempt: Callable[[Cluster, Settings], Mapping[str, str]] | None = None
    of_its_node: bool = False
    unrecorded: str = ""

    def was_not_asked(self, evidence: Evidence) -> bool:
        """Whether this is a recording that was made without the question."""
        asked = any(source.key in evidence.keys for source in self.sources)
        return bool(self.unrecorded) and evidence.recorded and not asked

    @property
    def for_all_alike(self) -> bool:
        """Whether every node is asked the same, in the first phase."""
        return self.questions is None and self.phase is COLLECTING


def no_peers(cluster: Cluster, mesh: str) -> str:
    """Return why no node is asked about the others; "" where they are."""
    if mesh == "none":
        return "--mesh none"
    return "one node alone has no peers" if len(cluster) == 1 else ""


def exempt_without_peers(cluster: Cluster, settings: Settings) -> dict[str, str]:
    """Exempt all nodes where none is asked about the others."""
    why = no_peers(cluster, settings.mesh)
    return dict.fromkeys(cluster.names, why) if why else {}


def exempt_in_job(cluster: Cluster, settings: Settings) -> dict[str, str]:
    """Exempt all nodes where ncheck runs inside a job: its launcher has done what this fact is about."""
    return dict.fromkeys(cluster.names, "the job has been started already") if settings.run.ranks else {}


def exempt_in_job_unless(launcher: str) -> Callable[[Cluster, Settings], Mapping[str, str]]:
    """Return a function that exempts all nodes where ncheck runs inside a job that something else has started."""

    def exempt(cluster: Cluster, settings: Settings) -> Mapping[str, str]:
        other = settings.run.ranks and settings.launcher != launcher
        return dict.fromkeys(cluster.names, f"the job was not started by {launcher}") if other else {}

    return exempt


def exempt_unprobed(cluster: Cluster, settings: Settings) -> dict[str, str]:
    """Exempt all nodes where nothing is measured."""
    return dict.fromkeys(cluster.names, "--probe none") if settings.probe == "none" else {}


def called(source: Source) -> str:
    """Return the name of a source for people."""
    if isinstance(source, Command):
        return " ".join(source.argv)
    if isinstance(source, File):
        return source.path
    if isinstance(source, Answer):
        return f"the agent's {source.name}"
    first, *others = source.patterns
    return f"{first} and {len(others)} more" if others else first


def line_for(source: Source) -> str:
    """Return the command that reads a source as the agent did; "" if there is none."""
    if isinstance(source, Command):
        return shlex.join(("sudo", *source.argv) if source.root else source.argv)
    return f"cat {shlex.quote(source.path)}" if isinstance(source, File) else ""


def trouble(source: Source, reply: Reply) -> Unread | Absent | None:
    """Return why a reply cannot be parsed; None if it can.

    A program that was not found is Absent, any other failure is Unread: an exit status other than 0 and truncated
    output too.
    """
    if reply.status is Status.OK:
        return _bad_exit(source, reply)
    if reply.status is Status.NOT_ASKED:
        return Absent(reply.reason)
    name = called(source)
    if reply.status is Status.MISSING:
        return Absent(f"{name} not found")
    if reply.status is Status.DENIED:
        denied = Unread(f"{name}: permission denied", needs_root=isinstance(source, Command) and source.root)
        return sudo_refused(reply) or denied
    if reply.status is Status.TIMEOUT:
        reason = f"{name} did not end within {reply.seconds:.0f} s and was killed"
        line = line_for(source)
        return Unread(reason, fix=f"timeout 10 {line}" if line else "", hung=name)
    why = reply.reason[:LONGEST_MESSAGE] or reply.status.value
    return Unread(f"{name}: {why}", unanswered=reply.status is Status.UNANSWERED)


def sudo_refused(reply: Reply) -> Unread | None:
    """Return why sudo did not run a command on this node, where --sudo was given and it refused."""
    if not reply.reason.startswith("sudo: "):
        return None
    why = reply.reason.removeprefix("sudo: ")[:LONGEST_MESSAGE]
    return Unread(f"sudo refused, although --sudo was given: {why}", fix="sudo -n true")


def no_answer(source: Source, reply: Reply) -> Unread | Absent | None:
    """Return why a reply that every node must give cannot be parsed: Absent only if the node was not asked."""
    why = trouble(source, reply)
    return Unread(why.reason) if isinstance(why, Absent) and reply.status is not Status.NOT_ASKED else why


def _bad_exit(source: Source, reply: Reply) -> Unread | None:
    if reply.truncated:
        return Unread(f"{called(source)}: output truncated, it was too long")
    if reply.exit_status in (None, 0):
        return None
    lines = [line.strip() for line in (reply.stderr.strip() or reply.stdout.strip()).splitlines() if line.strip()]
    words = "; ".join(lines if len(lines) <= _FEW_LINES else lines[-1:])  # a short message begins with what happened
    message = f": {words[:LONGEST_MESSAGE]}" if lines else ""
    return Unread(f"{called(source)} ended with exit status {reply.exit_status}{message}", fix=line_for(source))
