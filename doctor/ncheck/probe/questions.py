"""The questions of one act of the probe: each node's task in the steps that run at once, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ncheck.facts.probe import SWEEP, TASK
from ncheck.model.evidence import JsonValue, Reply, Status
from ncheck.model.phase import Answered, NotAsked
from ncheck.probe.methods.driver import CannotTakePartError, LocalDriver, NodeTask, step_arguments, task_arguments
from ncheck.probe.methods.nccl import foreign_address

if TYPE_CHECKING:
    from ncheck.facts.probe import Step
    from ncheck.model.evidence import Answer
    from ncheck.model.phase import Questions
    from ncheck.probe.methods.context import ProbeContext
    from ncheck.probe.methods.driver import Driver


TO_SWEEP = 3.0  # seconds that a node has to look after what ranks left


@dataclass
class Roll:
    """What is used up from act to act: `ids` by node, each good for one step; and who has heard the note."""

    ids: MutableMapping[str, list[str]]
    noted: MutableSet[str]


@dataclass(frozen=True)
class StepTasks:
    """The steps that one driver runs at once. `note` says what the means do not tell of, once a node."""

    context: ProbeContext
    roll: Roll
    driver: Driver
    steps: Sequence[Step]
    lane: int = 0
    note: str = ""

    def questions(self, seconds: float) -> Questions:
        """Return what each node is asked, or told; what is too late is not begun."""
        if seconds < self.driver.least / 2:
            why = "the time for the run was over before it could begin"
            return {node: (skipped(step, why),) for step in self.steps for node in step.group}
        made = self._by_head(self.driver, seconds) if isinstance(self.driver, LocalDriver) else self._by_agents(seconds)
        return {node: (*self._noted(node), *questions) for node, questions in made.items()}

    def _by_agents(self, seconds: float) -> dict[str, tuple[Answer | Answered, ...]]:
        made: dict[str, Answer | Answered] = {}
        for step in self.steps:
            made.update(self._step(step, self._tasks(step, seconds)))
        return {node: (question,) for node, question in made.items()}

    def _by_head(self, driver: LocalDriver, seconds: float) -> dict[str, tuple[Answer | Answered, ...]]:
        """Let a program of the head run them; each node's reply is what that told of it, and the node sweeps up."""
        tasks = [task for step in self.steps for task in self._tasks(step, seconds)]
        replies = driver.run(self.context, tasks)
        return {
            task.node: (
                Answered(
                    _turn(task.step), replace(replies[task.node], asked=task_arguments(driver, self.context, task))
                ),
                *_sweeping(task.step, replies[task.node]),
            )
            for task in tasks
            if task.node in replies
        }

    def _tasks(self, step: Step, seconds: float) -> list[NodeTask]:
        one = self._id(step)
        return [NodeTask(step, node, seconds, self.lane, one) for node in step.group]

    def _id(self, step: Step) -> str:
        """Return an identifier by which these nodes may meet, used for nothing yet; "" where there is none."""
        held = self.roll.ids.get(step.group[0], []) if self.driver.ids else []
        while held:
            one = held.pop()
            if len(step.group) == 1 or not foreign_address(self.context, step.group, one):
                return one
        return ""

    def _step(self, step: Step, tasks: Sequence[NodeTask]) -> Mapping[str, Answer | Answered]:
        """Ask the nodes of a step; where one of them cannot take task, none is asked, and it is that one's failure."""
        made: dict[str, Answer | Answered] = {}
        for task in tasks:
            try:
                self._hold_meeting(task)
                arguments = task_arguments(self.driver, self.context, task)
            except CannotTakePartError as error:
                why = f"{task.node} cannot take task"
                others = {node: skipped(step, why) for node in step.group if node != task.node}
                return {**others, task.node: _failed(step, str(error))}
            made[task.node] = replace(_turn(step), timeout=task.seconds, arguments=arguments)
        return made

    def _hold_meeting(self, task: NodeTask) -> None:
        """Raise NoPartError where the ranks have nowhere to meet and this is the node that leads them."""
        if not self.driver.meets or task.node != task.leader:
            return
        held = self.context.meeting(task.node)
        if held is None or held.why or (self.driver.ids and not task.id):
            astray = foreign_address(self.context, task.step.group, held.ids[0]) if held and held.ids else ""
            why = held.why if held else ""
            raise CannotTakePartError(why or astray or "it told of no place where ranks can meet")

    def _noted(self, node: str) -> tuple[NotAsked, ...]:
        if not self.note or node in self.roll.noted:
            return ()
        self.roll.noted.add(node)
        return (NotAsked(TASK, self.note),)


def skipped(step: Step, why: str) -> Answered:
    """Return what a node is told of a step that is not begun: it replays as what was not measured."""
    return Answered(_turn(step), Reply(Status.NOT_ASKED, why, asked=step_arguments(step)))


def _sweeping(step: Step, reply: Reply) -> tuple[Answer, ...]:
    """Return the question for what ranks may have left in shared memory: nobody else looks after a launcher's."""
    held = reply.value.get("held") if isinstance(reply.value, dict) else None
    return (replace(SWEEP, turn=step.round, timeout=TO_SWEEP, arguments={"segments": held}),) if held else ()


def _turn(step: Step) -> Answer:
    return replace(TASK, turn=step.round)


def _failed(step: Step, words: str) -> Answered:
    """Return the reply of a node that cannot take task, as if it had told so itself."""
    failure: JsonValue = {"step": "meeting", "words": words}
    return Answered(_turn(step), Reply(Status.OK, value={"rows": [], "failure": failure}, asked=step_arguments(step)))
