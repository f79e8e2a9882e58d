"""What the probe measured on a node: its result of each step in which it took part.

What was asked (`Reply.asked`) and what is noted come from this machine. What came back is the node's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Annotated

from ncheck.decode import (
    OPTIONAL,
    Bounded,
    Count,
    Flag,
    Maybe,
    MisfitError,
    NodeName,
    Null,
    OrEmpty,
    Port,
    Text,
    Within,
    decoded,
)
from ncheck.expression import expression
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import MEASURING, Fact, exempt_unprobed, trouble
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.links import Address, ListenFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.plan_facts import PLAN_FACTS
from ncheck.facts.tools import ToolFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.hostlist import MOST, unfold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Command, Evidence, Reply, Status
from ncheck.model.fact import Absent, Read, Unread
from ncheck.model.op import Op
from ncheck.probe.node_result import (
    MOST_RANKS,
    Limit,
    Lines,
    Method,
    NodeResult,
    PathText,
    Repeats,
    Skipped,
    Stage,
    Step,
    StepAnswer,
    StepFailure,
    Version,
    Words,
)
from ncheck.probe.program_output import with_output
from ncheck.text import LONGEST_MESSAGE, printable

LEFT_OUT = (
    "it ran with a node that is left out: list the others alone (--good-nodes FILE), and ncheck probe measures them"
)


@dataclass(frozen=True)
class ProbeFacts:
    """All steps in which this node took part, in their order. Absent with the reason if no probe ran.

    `note` says what the method cannot measure, such as GPUs without an NCCL.
    """

    results: tuple[NodeResult, ...]
    skipped: tuple[Skipped, ...] = ()
    note: str = ""

    def after(self, earlier: ProbeFacts) -> ProbeFacts:
        """Return the steps of both: a node's come in several parts."""
        return ProbeFacts(
            (*earlier.results, *self.results), (*earlier.skipped, *self.skipped), self.note or earlier.note
        )

    def among(self, names: frozenset[str]) -> ProbeFacts:
        """Return the steps that these nodes ran by themselves; what all give without the others nobody measured."""
        gone = [result.step for result in self.results if not names.issuperset(result.step.group)]
        lost = (Skipped(step, LEFT_OUT) for step in gone if step.stage is Stage.ALL)
        return ProbeFacts(
            tuple(result for result in self.results if result.step not in gone),
            (*(one for one in self.skipped if names.issuperset(one.step.group)), *lost),
            self.note,
        )


@dataclass(frozen=True)
class MeetingFacts:
    """Where ranks can meet at this node. `ids`: NCCL identifiers, each for one step; `address` and `port`: those of
    a store. `why`: why there is none, "" if there is. `late`: because its time was over, which is no fault.
    """

    ids: tuple[str, ...] = ()
    address: str = ""
    port: int = 0
    version: str = ""
    library: str = ""
    why: str = ""
    late: bool = False


_LONGEST_NAME = 100  # characters of a group's
OPTION, SLURM = "--groups", "Slurm's topology"

Groups = Mapping[str, tuple[str, ...]]  # of nodes, by name


@dataclass(frozen=True)
class GroupFacts:
    """The groups that somebody names, and `source`: who. One node has it, where the search between groups began."""

    groups: Groups
    source: str


@dataclass(frozen=True)
class GroupsGiven:
    """Those of --groups. This machine answers it, so that a recording has them."""

    groups: Annotated[Mapping[Annotated[str, Text(_LONGEST_NAME)], tuple[NodeName, ...]], Bounded(MOST)]


# The commands that help where nothing was measured, by the names that are recorded.
COMMANDS = {
    "probe": "ncheck probe nodes.txt", "force": "ncheck probe nodes.txt --force",
    "without": "ncheck nodes.txt --probe none",
}  # fmt: skip

_ID = 256  # hexadecimal digits of an ncclUniqueId

TASK, MEETING, SWEEP = Answer("step"), Answer("meeting"), Answer("sweep")


def probed(evidence: Evidence) -> Read[ProbeFacts]:
    """Return what a node reported in this part of its evidence. Only what this machine asked for counts."""
    replies = {number: reply for number, reply in evidence.rounds(TASK).items() if isinstance(reply.asked, dict)}
    note, notes = evidence.notes.get(TASK.key), evidence.noted_rounds(TASK)
    if not replies and not notes:
        return _why_none(evidence)
    swept = evidence.rounds(SWEEP)
    results = {number: _result(number, reply, swept.get(number)) for number, reply in replies.items()}
    steps = {number: _step(decoded(note.asked, _Asked), number) for number, note in notes.items()}
    for number, step in steps.items():
        if notes[number].failed:
            results[number] = NodeResult(step, (), failure=StepFailure("meeting", notes[number].reason))
    return ProbeFacts(
        tuple(results[number] for number in sorted(results)),
        tuple(Skipped(step, notes[number].reason) for number, step in steps.items() if not notes[number].failed),
        note.reason if note and not note.failed else "",
    )


def _why_none(evidence: Evidence) -> Unread | Absent:
    """Return why the node took part in no step. Of a failure this machine says itself what helps."""
    reply, note = evidence.reply(TASK), evidence.notes.get(TASK.key)
    if reply.status is Status.UNANSWERED and evidence.recorded:
        return Absent("the recording holds no probe")
    if note and note.failed:
        return Unread(note.reason, fix=_command(note.remedy))
    return trouble(TASK, reply) or Unread("no step of the probe was asked of this node")


def _command(remedy: str) -> str:
    """Return the command that helps, "" for a remedy that no ncheck names: a recording may hold anything."""
    if remedy in COMMANDS:
        return COMMANDS[remedy]
    return f"ncheck explain {remedy}" if remedy.isascii() and remedy.isalnum() else ""


# What was asked


@dataclass(frozen=True)
class _Asked:
    """What this machine kept of its question: the step, and of a program its name and whether it is the server."""

    stage: Stage
    method: Method
    group: tuple[NodeName, ...]
    ranks: tuple[Annotated[int, Within(1, MOST_RANKS)], ...]
    sizes: tuple[Count, ...]
    launcher: Words = ""
    net: Words = ""
    expect: Maybe[Annotated[float, Within(0, 1e9)]] = None
    repeats: Maybe[Repeats] = None
    op: Annotated[Op, OPTIONAL] = Op.ALL_REDUCE
    off: OrEmpty = ""
    planned: Annotated[tuple[Annotated[str, Text(64)], ...], OPTIONAL] = ()
    timeout: Maybe[Limit] = None
    tool: OrEmpty = ""
    serves: Flag = False


def _step(asked: _Asked, number: int) -> Step:
    if not asked.group or len(set(asked.group)) < len(asked.group) or len(asked.ranks) != len(asked.group):
        raise ValueError("its nodes and their ranks do not fit together")
    return Step(
        number, asked.stage, asked.method, asked.group, asked.ranks, asked.sizes, asked.launcher, asked.net,
        asked.expect, asked.repeats, asked.op, asked.off,
    )  # fmt: skip


# What came back


def _result(number: int, reply: Reply, swept: Reply | None) -> NodeResult:
    asked = decoded(reply.asked, _Asked)
    step = _step(asked, number)
    try:
        answer = _answer(step, asked, reply)
    except (ValueError, ArithmeticError) as error:
        answer = _failed(f"its result cannot be read: {printable(str(error), LONGEST_MESSAGE)}")
    left = answer.left + (_left(answer.held, swept) if answer.held else ())
    return NodeResult(
        step, answer.rows, asked.planned, answer.carried, answer.version, answer.library, answer.used, answer.log,
        answer.failure, answer.start, left, asked.timeout,
    )  # fmt: skip


def _answer(step: Step, asked: _Asked, reply: Reply) -> StepAnswer:
    """Return what a node answered. Raises ValueError for what cannot be the answer to this step."""
    if reply.truncated:
        return _failed("its answer was cut off")
    if reply.status is not Status.OK:
        words = printable(reply.reason, LONGEST_MESSAGE) or f"the agent's task ended: {reply.status.value}"
        return _failed(words, late=reply.status is Status.TIMEOUT)
    answer: StepAnswer = decoded(reply.value, StepAnswer)
    if step.method in {Method.NCCL_TESTS, Method.RDMA, Method.LOOPBACK} and not answer.failure:
        if not answer.output:
            raise ValueError("what the program printed is missing")
        answer = with_output(answer, answer.output, step, asked.tool, serves=asked.serves)
    sizes = [(row.size, row.in_place) for row in answer.rows]
    if len(set(sizes)) < len(sizes) or (step.sizes and not {size for size, _ in sizes}.issubset(step.sizes)):
        raise ValueError("it contains a size that was not asked for, or one twice")
    if not answer.rows and answer.failure is None and step.method not in (Method.DIAGNOSTICS, Method.RDMA):
        return replace(answer, failure=StepFailure("", "it ended without a result"))
    return answer


def _failed(words: str, *, late: bool = False) -> StepAnswer:
    return StepAnswer((), StepFailure("", words, late=late))


@dataclass(frozen=True)
class _Swept:
    left: Lines


def _left(held: Mapping[str, object], swept: Reply | None) -> tuple[str, ...]:
    """Return what was removed of a launcher's ranks' shared memory and what had to stay, or that it may still exist."""
    if swept and swept.status is Status.OK:
        with suppress(MisfitError):
            return decoded(swept.value, _Swept).left  # type: ignore[no-any-return]
    doubtful = [f"{path} may still exist: the node could not be checked" for path in held]
    return decoded(doubtful, Lines)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _MeetingPoint:
    ids: Annotated[tuple[Annotated[str, _identifier], ...], OPTIONAL, Null(())] = ()
    address: Maybe[Address] = None
    port: Maybe[Port] = None
    version: Version = ""
    path: PathText = ""
    importing: Maybe[Limit] = None


def _identifier(value: str) -> str:
    if len(value) != _ID or not set(value) <= set("0123456789abcdef"):
        raise ValueError("not an NCCL identifier")
    return value


def meeting(evidence: Evidence) -> Read[MeetingFacts]:
    """Return the node's meeting point. Where it has none, the step in which it leads the ranks fails."""
    reply = evidence.reply(MEETING)
    why = trouble(MEETING, reply)
    if isinstance(why, Absent) and reply.status is Status.NOT_ASKED:
        return why
    if why:
        late = reply.status is Status.TIMEOUT
        return MeetingFacts(why=printable(reply.reason, LONGEST_MESSAGE) or why.reason, late=late)
    try:
        point: _MeetingPoint = decoded(reply.value, _MeetingPoint)
    except MisfitError as error:
        return MeetingFacts(why=f"its answer cannot be read: {error}")
    if point.importing is not None:
        return MeetingFacts(why=f"torch takes more than {point.importing:.0f} s to import", late=True)
    if point.address and not point.port:
        return MeetingFacts(why="its answer cannot be read: it has an address without a port")
    return MeetingFacts(point.ids, point.address or "", point.port or 0, point.version, point.path)


# Which nodes share a switch


GIVEN = Answer("groups", shape=GroupsGiven)
TOPOLOGY = Command(("scontrol", "show", "topology"))

# SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=node[01-16]
# BlockName=block1 BlockIndex=0 Nodes=node[01-18] BlockSize=18
_FIELD = expression(r"(?P<key>[A-Za-z]{1,30})=(?P<value>\S*)")


def named_groups(evidence: Evidence) -> Read[GroupFacts]:
    """Return the groups of --groups, or else of Slurm. Without either nobody names any, which is no trouble."""
    if evidence.reply(GIVEN).status is Status.OK:
        return GroupFacts(answer_of(GIVEN, evidence).groups, OPTION)
    reply = evidence.reply(TOPOLOGY)
    if reply.status is Status.UNANSWERED:
        return Absent("it was not needed")
    if why := trouble(TOPOLOGY, reply):
        return Absent(why.reason)
    try:
        groups = slurm_groups(reply.stdout)
    except ValueError as error:
        return Absent(f"scontrol show topology cannot be read: {printable(str(error))}")
    return GroupFacts(groups, SLURM) if groups else Absent("Slurm knows no switches")


def slurm_groups(text: str, most: int = MOST) -> Groups:
    """Return the leaf switches or blocks of `scontrol show topology`. Raises ValueError for more nodes, or no list."""
    groups: dict[str, tuple[str, ...]] = {}
    count = 0
    for line in text.splitlines():
        fields = {one["key"]: one["value"] for one in _FIELD.finditer(line)}
        name = fields.get("BlockName") or (fields.get("SwitchName") if fields.get("Level") == "0" else "")
        if name and (nodes := fields.get("Nodes", "")) not in ("", "(null)"):
            groups[printable(name, _LONGEST_NAME)] = unfold(nodes)
            count += len(groups[printable(name, _LONGEST_NAME)])
        if count > most:
            raise ValueError(f"more than {most} nodes")
    return groups


# What the choice of a method, its steps and its expectations are made of.
PROBE_NEEDS = (
    *PLAN_FACTS, GpuFacts, TopologyFacts, LoadedNcclFacts, IdentityFacts, ListenFacts, ToolFacts, MeetingFacts,
    GroupFacts,
)  # fmt: skip
FACTS = (
    Fact(ProbeFacts, (TASK,), probed, MEASURING, needs=PROBE_NEEDS, exempt=exempt_unprobed),
    Fact(MeetingFacts, (MEETING,), meeting, MEASURING, exempt=exempt_unprobed),
    Fact(GroupFacts, (GIVEN, TOPOLOGY), named_groups, MEASURING, exempt=exempt_unprobed),
)
