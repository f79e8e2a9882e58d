"""The questions of one act of the probe: each node's part in the steps that run at once, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ncheck.facts.probe import SWEEP, TURN
from ncheck.model.evidence import JsonValue, Reply, Status
from ncheck.model.phase import Answered, NotAsked
from ncheck.probe.methods.method import HeadWay, NoPartError, Part, asked, step_told
from ncheck.probe.methods.rendezvous import leads_astray

if TYPE_CHECKING:
    from ncheck.facts.probe import Step
    from ncheck.model.evidence import Answer
    from ncheck.model.phase import Questions
    from ncheck.probe.methods.method import Ground, Way


TO_SWEEP = 3.0  # seconds that a node has to look after what ranks left


@dataclass
class Roll:
    """What is used up from act to act: `ids` by node, each good for one step; and who has heard the note."""

    ids: MutableMapping[str, list[str]]
    noted: MutableSet[str]


@dataclass(frozen=True)
class Parts:
    """The steps that one way runs at once. `note` says what the means do not tell of, once a node."""

    ground: Ground
    roll: Roll
    way: Way
    steps: Sequence[Step]
    lane: int = 0
    note: str = ""

    def questions(self, seconds: float) -> Questions:
        """Return what each node is asked, or told; what is too late is not begun."""
        if seconds < self.way.least / 2:
            why = "the time for the run was over before it could begin"
            return {node: (skipped(step, why),) for step in self.steps for node in step.group}
        made = self._by_head(self.way, seconds) if isinstance(self.way, HeadWay) else self._by_agents(seconds)
        return {node: (*self._noted(node), *questions) for node, questions in made.items()}

    def _by_agents(self, seconds: float) -> dict[str, tuple[Answer | Answered, ...]]:
        made: dict[str, Answer | Answered] = {}
        for step in self.steps:
            made.update(self._step(step, self._parts(step, seconds)))
        return {node: (question,) for node, question in made.items()}

    def _by_head(self, way: HeadWay, seconds: float) -> dict[str, tuple[Answer | Answered, ...]]:
        """Let a program of the head run them; each node's reply is what that told of it, and the node sweeps up."""
        parts = [part for step in self.steps for part in self._parts(step, seconds)]
        replies = way.run(self.ground, parts)
        return {
            part.node: (
                Answered(_turn(part.step), replace(replies[part.node], asked=asked(way, self.ground, part))),
                *_sweeping(part.step, replies[part.node]),
            )
            for part in parts
            if part.node in replies
        }

    def _parts(self, step: Step, seconds: float) -> list[Part]:
        one = self._id(step)
        return [Part(step, node, seconds, self.lane, one) for node in step.group]

    def _id(self, step: Step) -> str:
        """Return an identifier by which these nodes may meet, used for nothing yet; "" where there is none."""
        held = self.roll.ids.get(step.group[0], []) if self.way.ids else []
        while held:
            one = held.pop()
            if len(step.group) == 1 or not leads_astray(self.ground, step.group, one):
                return one
        return ""

    def _step(self, step: Step, parts: Sequence[Part]) -> Mapping[str, Answer | Answered]:
        """Ask the nodes of a step; where one of them cannot take part, none is asked, and it is that one's failure."""
        made: dict[str, Answer | Answered] = {}
        for part in parts:
            try:
                self._hold_meeting(part)
                arguments = asked(self.way, self.ground, part)
            except NoPartError as error:
                why = f"{part.node} cannot take part"
                others = {node: skipped(step, why) for node in step.group if node != part.node}
                return {**others, part.node: _failed(step, str(error))}
            made[part.node] = replace(_turn(step), timeout=part.seconds, arguments=arguments)
        return made

    def _hold_meeting(self, part: Part) -> None:
        """Raise NoPartError where the ranks have nowhere to meet and this is the node that leads them."""
        if not self.way.meets or part.node != part.leader:
            return
        held = self.ground.meeting(part.node)
        if held is None or held.why or (self.way.ids and not part.id):
            astray = leads_astray(self.ground, part.step.group, held.ids[0]) if held and held.ids else ""
            why = held.why if held else ""
            raise NoPartError(why or astray or "it told of no place where ranks can meet")

    def _noted(self, node: str) -> tuple[NotAsked, ...]:
        if not self.note or node in self.roll.noted:
            return ()
        self.roll.noted.add(node)
        return (NotAsked(TURN, self.note),)


def skipped(step: Step, why: str) -> Answered:
    """Return what a node is told of a step that is not begun: it replays as what was not measured."""
    return Answered(_turn(step), Reply(Status.NOT_ASKED, why, asked=step_told(step)))


def _sweeping(step: Step, reply: Reply) -> tuple[Answer, ...]:
    """Return the question for what ranks may have left in shared memory: nobody else looks after a launcher's."""
    held = reply.value.get("held") if isinstance(reply.value, dict) else None
    return (replace(SWEEP, turn=step.round, timeout=TO_SWEEP, arguments={"segments": held}),) if held else ()


def _turn(step: Step) -> Answer:
    return replace(TURN, turn=step.round)


def _failed(step: Step, words: str) -> Answered:
    """Return the reply of a node that cannot take part, as if it had told so itself."""
    failure: JsonValue = {"step": "meeting", "words": words}
    return Answered(_turn(step), Reply(Status.OK, value={"rows": [], "failure": failure}, asked=step_told(step)))
