"""A probe whose acts are taken one by one: recorded nodes that answer each question as a test says, on a clock of ours.

What they answer goes the way of all evidence: it is parsed and joined, and the next act sees the facts of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ncheck.facts.learning import facts_of, learn
from ncheck.fleet.recording import load
from ncheck.model.cluster import Cluster, Facts, FactType
from ncheck.model.evidence import Answer, Command, Evidence, Note, Reply, Status
from ncheck.model.node import Node
from ncheck.model.phase import Answered, NotAsked
from ncheck.model.plan import Blocker, LaunchPlan
from ncheck.probe.facts import PROBE_NEEDS, GroupFacts, MeetingFacts, ProbeFacts
from ncheck.probe.steps import Assessment, Progress, next_step
from ncheck.settings import Settings

FIXTURES = Path(__file__).parents[3] / "fixtures"
HEALTHY = "healthy-4x8-h100"

# What a node answers to a step's arguments: a value, a reply, or None where it stays silent.
Answers = Callable[[Mapping[str, Any]], "dict[str, Any] | Reply | None"]


def well(arguments: Mapping[str, Any], rate: float = 40e9) -> dict[str, Any]:
    """Answer as a healthy node does: every size in turn, at one rate."""
    rows = [
        {"size": size, "in_place": False, "seconds": time, "fastest": time, "slowest": time, "wrong": 0}
        for size in arguments["sizes"]
        for time in [1e-5 + size / rate]
    ]
    return {"rows": rows, "version": "2.21.5", "start": 1.0}


def fails(words: str = "it broke", *, late: bool = False) -> dict[str, Any]:
    return {"rows": [], "failure": {"step": "init", "words": words, "late": late}}


def meets(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Answer where ranks meet: as many ids as are wanted."""
    return {"ids": [f"{number:0256x}" for number in range(arguments["count"])], "version": "2.21.5", "path": "/lib/x"}


@dataclass
class Driven:
    """`told` are the acts that were taken: what each was called, and which nodes it asked in which groups."""

    answers: Answers = well
    settings: Settings = field(default_factory=Settings)
    cluster: str = HEALTHY
    more: tuple[str, ...] = ()  # nodes beside the recorded ones, alike
    against: tuple[Blocker, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    dropped_later: Mapping[str, str] = field(default_factory=dict)  # with it, when all pairs have met
    seconds: float = 2.0  # of an act in which all goes well
    meeting: Answers = meets
    slurm: str = ""  # what scontrol prints, "" where there is none
    facts: Mapping[str, Mapping[FactType, object]] = field(default_factory=dict)  # in place of the recorded ones
    now: float = 100.0

    def __post_init__(self) -> None:
        evidence = load(FIXTURES / self.cluster)
        evidence = (*evidence, *(replace(evidence[0], node=name) for name in self.more))
        self.evidence = {one.node: replace(one, replies={}, notes={}, recorded=False) for one in evidence}
        self.known: dict[str, Facts] = {
            one.node: {**facts_of(one, set(PROBE_NEEDS) - {MeetingFacts, GroupFacts}), **self.facts.get(one.node, {})}
            for one in evidence
        }
        self.told: list[tuple[str, tuple[tuple[str, ...], ...]]] = []
        self.asked: list[Mapping[str, Any]] = []
        self.replies: dict[str, dict[str, Reply]] = {name: {} for name in self.evidence}
        self.notes: dict[str, dict[str, Note]] = {name: {} for name in self.evidence}

    def run(self) -> Driven:
        found = Assessment(LaunchPlan(), self.dropped, self.against)
        later = replace(found, dropped={**self.dropped, **self.dropped_later})
        progress = Progress.of(self.cluster_now(), found, self.settings, self.now)
        while step := next_step(progress, self.cluster_now(), self.now):
            began = self.now
            seconds = step.seconds or 0.0
            longest = 0.0
            groups: dict[tuple[str, ...], None] = {}
            assert step.questions
            for name, questions in step.questions(self.cluster_now(), seconds).items():
                notes = {one.source.key: one.note for one in questions if isinstance(one, NotAsked)}
                replies = {}
                for question in questions:
                    if isinstance(question, NotAsked):
                        continue
                    key, reply = self.reply(name, question, groups)
                    longest = max(longest, reply.seconds if reply else seconds)
                    if reply:
                        replies[key] = reply
                self.take(name, replies, notes)
            self.now = began + longest
            if step.nodes:
                self.told.append((step.stage, tuple(groups)))
            progress = step.after(self.cluster_now(), later if step.assess else None)
        return self

    def cluster_now(self) -> Cluster:
        return Cluster(tuple(Node(name) for name in self.evidence), dict(self.known))

    def reply(self, name: str, question: Any, groups: dict[tuple[str, ...], None]) -> tuple[str, Reply | None]:
        if isinstance(question, Answered):
            return question.source.key, question.reply
        if isinstance(question, Command):
            status = Status.OK if self.slurm else Status.MISSING
            return question.key, Reply(status, stdout=self.slurm, exit_status=0, seconds=0.1)
        assert isinstance(question, Answer)
        arguments: Any = question.arguments
        if question.name == "meeting":
            said = self.meeting({**arguments, "node": name})
        else:
            self.asked.append(arguments)
            groups[tuple(arguments["group"])] = None
            said = self.answers(arguments)
        if isinstance(said, dict):
            late = bool((said.get("failure") or {}).get("late"))
            said = Reply(Status.OK, value=said, seconds=arguments.get("timeout", 0.0) if late else self.seconds)
        asked = arguments if question.round is not None else None
        return question.key, replace(said, asked=asked) if said else None

    def take(self, name: str, replies: dict[str, Reply], notes: dict[str, Note]) -> None:
        self.replies[name].update(replies)
        self.notes[name].update(notes)
        evidence = replace(self.evidence[name], replies=replies, notes=notes)
        self.known = dict(learn(self.cluster_now(), [evidence], (ProbeFacts, MeetingFacts, GroupFacts)).known)

    def stages(self) -> list[str]:
        """Return what the acts were called, that asked somebody something."""
        return [stage for stage, groups in self.told if groups]

    def groups(self, stage: str) -> tuple[tuple[str, ...], ...]:
        return next(groups for name, groups in self.told if name == stage)

    def probed(self, node: str) -> ProbeFacts:
        held = self.known[node][ProbeFacts]
        assert isinstance(held, ProbeFacts), held
        return held


def evidence_of(driven: Driven) -> list[Evidence]:
    """Return what a recording of it would hold, of the probe alone."""
    return [
        replace(one, replies=driven.replies[name], notes=driven.notes[name], recorded=True)
        for name, one in driven.evidence.items()
    ]
