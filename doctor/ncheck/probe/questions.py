"""The questions of one step of the probe: each node's task in what runs at the same time, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Reply
from ncheck.model.phase import Answered, NotAsked
from ncheck.probe.facts import SWEEP, TASK, ProbeFacts
from ncheck.probe.methods.driver import CannotTakePartError, LocalDriver, NodeTask, step_arguments, task_arguments
from ncheck.probe.methods.nccl import foreign_address

if TYPE_CHECKING:
    from ncheck.model.evidence import Answer, JsonValue
    from ncheck.model.phase import Questions
    from ncheck.probe.methods.context import ProbeContext
    from ncheck.probe.methods.driver import Driver
    from ncheck.probe.node_result import Step


TO_SWEEP = 3.0  # seconds that a node has to look after what ranks left
_MOST_FILES, _LONGEST_PATH = 4096, 255  # of shared memory, that a node may name: a question fits into a frame


@dataclass(frozen=True)
class StepTasks:
    """The steps that one driver runs at once. `ids` are NCCL identifiers, where the driver needs them.

    `note` says what the method cannot measure; each node has it once.
    """

    context: ProbeContext
    driver: Driver
    steps: Sequence[Step]
    ids: Mapping[Step, str]
    lane: int = 0
    note: str = ""

    def questions(self, seconds: float) -> Questions:
        """Return each node's question, or a note; what is too late is not begun."""
        if seconds < self.driver.least / 2:
            why = "the time for the run was over before it could begin"
            return {node: (skipped(step, why),) for step in self.steps for node in step.group}
        made = (
            self._from_here(self.driver, seconds) if isinstance(self.driver, LocalDriver) else self._by_agents(seconds)
        )
        return {node: (*self._noted(node), *questions) for node, questions in made.items()}

    def _by_agents(self, seconds: float) -> Questions:
        made: Questions = {}
        for step in self.steps:
            made.update(self._step(step, self._tasks(step, seconds)))
        return made

    def _from_here(self, driver: LocalDriver, seconds: float) -> Questions:
        """Let a program of this machine run them, and ask the nodes for what its ranks left behind."""
        tasks = [task for step in self.steps for task in self._tasks(step, seconds)]
        replies = driver.run(self.context, tasks)
        return {
            task.node: (
                Answered(
                    _question(task.step), replace(replies[task.node], asked=task_arguments(driver, self.context, task))
                ),
                *_sweeping(task.step, replies[task.node]),
            )
            for task in tasks
            if task.node in replies
        }

    def _tasks(self, step: Step, seconds: float) -> list[NodeTask]:
        return [NodeTask(step, node, seconds, self.lane, self.ids.get(step, "")) for node in step.group]

    def _step(self, step: Step, tasks: Sequence[NodeTask]) -> Questions:
        """Ask the nodes of a step. Where one of them cannot take part, none is asked, and that one has failed."""
        made: Questions = {}
        for task in tasks:
            try:
                self._require_meeting(task)
                arguments = task_arguments(self.driver, self.context, task)
            except CannotTakePartError as error:
                why = f"{task.node} cannot take part in this step"
                others = {node: (skipped(step, why),) for node in step.group if node != task.node}
                return {**others, task.node: (replace(skipped(step, str(error)), failed=True),)}
            made[task.node] = (replace(_question(step), timeout=task.seconds, arguments=arguments),)
        return made

    def _require_meeting(self, task: NodeTask) -> None:
        """Raise CannotTakePartError if this node leads the ranks and has no meeting point for them."""
        if not self.driver.meets or task.node != task.leader:
            return
        meeting = self.context.meeting(task.node)
        if meeting is None or meeting.why or (self.driver.ids and not task.id):
            foreign = foreign_address(self.context, task.step.group, meeting.ids[0]) if meeting and meeting.ids else ""
            why = meeting.why if meeting else ""
            raise CannotTakePartError(why or foreign or "it has no meeting point for the ranks")

    def _noted(self, node: str) -> tuple[NotAsked, ...]:
        facts = self.context.cluster.known.get(node, {}).get(ProbeFacts)
        noted = isinstance(facts, ProbeFacts) and facts.note
        return (NotAsked(TASK, self.note),) if self.note and not noted else ()


def identifier(context: ProbeContext, group: Sequence[str], unused: Sequence[str]) -> tuple[str, int]:
    """Return the last of these identifiers by which the group may meet, "" if there is none, and how many are used up.

    One that contains the address of another machine is used up, too.
    """
    for count, one in enumerate(reversed(unused), 1):
        if len(group) == 1 or not foreign_address(context, group, one):
            return one, count
    return "", len(unused)


def skipped(step: Step, why: str) -> NotAsked:
    """Return the note for a node about a step that is not begun."""
    return NotAsked(_question(step), why, asked=step_arguments(step))


def _sweeping(step: Step, reply: Reply) -> tuple[Answer, ...]:
    """Return the question for what a launcher's ranks left in shared memory: nobody else looks for it."""
    held = reply.value.get("held") if isinstance(reply.value, dict) else None
    files = held.items() if isinstance(held, dict) else ()
    segments: dict[str, JsonValue] = dict([one for one in files if len(one[0]) <= _LONGEST_PATH][:_MOST_FILES])
    sweep = replace(SWEEP, round=step.round, timeout=TO_SWEEP, arguments={"segments": segments})
    return (sweep,) if segments else ()


def _question(step: Step) -> Answer:
    return replace(TASK, round=step.round)
