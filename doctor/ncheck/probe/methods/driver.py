"""The contract of a driver: what each method of measuring must say about itself. DRIVERS lists them all.

The pipeline chooses the steps, shares out the time and asks the nodes. A driver says whether it works on these nodes,
how many ranks and which sizes a step has, and which arguments a node needs beyond the common ones (`task_arguments`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, Stage, Step

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue, Reply
    from ncheck.probe.methods.context import ProbeContext


# By name, as --probe and --probe-launcher have it: the module of this package and the driver in it.
DRIVERS: Mapping[str, tuple[str, str]] = {
    "nccl": ("nccl", "NCCL"),
    "nccl-tests": ("nccl_tests", "INSIDE_NODES"),
    "nccl-tests-mpirun": ("nccl_tests", "BETWEEN_NODES"),
    "mpirun": ("mpirun", "MPIRUN"),
    "rdma": ("rdma", "RDMA"),
    "diagnostics": ("nccl", "DIAGNOSTICS"),
    "nics": ("nccl", "OVER_NICS"),
    "loopback": ("rdma", "LOOPBACK"),
    "gloo": ("cpus", "GLOO"),
    "tcp": ("cpus", "TCP"),
}

KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True)
class NodeTask:
    """What one node is asked to do in a step.

    `seconds` is its time for all of it. `lane` is the rail, where a step has several. `id` is an unused NCCL identifier
    of the group's first node; "" where the driver needs none.
    """

    step: Step
    node: str
    seconds: float
    lane: int = 0
    id: str = ""

    @property
    def index(self) -> int:
        """Position of the node in the group."""
        return self.step.group.index(self.node)

    @property
    def first(self) -> int:
        """The node's lowest rank."""
        return sum(self.step.ranks[: self.index])

    @property
    def ranks(self) -> int:
        """Number of ranks on the node."""
        return self.step.ranks[self.index]

    @property
    def leader(self) -> str:
        """The node of rank 0."""
        return self.step.group[0]


class Driver:
    """How one method runs its steps. If the agents start the ranks, implement `own_arguments`.

    least    seconds; a step with less time is not started
    most     seconds after which a step counts as hung; both include the start of the ranks
    meets    nodes must prepare a meeting point (NCCL identifiers, a store) before the first step
    to_meet  seconds for that, as far as all nodes together keep theirs
    ids      every step uses up one identifier
    across   name of the driver that measures between nodes, "" if this one does
    ops      operations that it measures; none where it measures none, but the network itself
    """

    method: ClassVar[Method]
    launcher: ClassVar[str] = "agents"
    stages: ClassVar[frozenset[Stage]] = frozenset({Stage.INSIDE, Stage.PAIR, Stage.SCALING, Stage.ALL})
    sizes: ClassVar[Mapping[Stage, tuple[int, ...]]] = {}
    least: ClassVar[float] = 3.0
    most: ClassVar[float] = 20.0
    across: ClassVar[str] = ""
    meets: ClassVar[bool] = False
    to_meet: ClassVar[float] = 10.0
    ids: ClassVar[bool] = False
    ops: ClassVar[frozenset[Op]] = frozenset({Op.ALL_REDUCE})

    def unfit(self, context: ProbeContext) -> str:
        """Return why this driver cannot be used on these nodes, "" if it can."""
        raise NotImplementedError

    def lacks(self, context: ProbeContext, op: Op) -> str:  # noqa: ARG002  the contract's arguments
        """Return why its steps of this operation are skipped although other steps run, "" if they are not."""
        return f"{self.method.value} has no {op.value}" if self.ops and op not in self.ops else ""

    def ranks(self, context: ProbeContext, stage: Stage, node: str) -> int:  # noqa: ARG002  the contract's arguments
        """Return the number of ranks of a node in a step of this stage."""
        return 1

    def lanes(self, context: ProbeContext, stage: Stage, group: tuple[str, ...]) -> int:  # noqa: ARG002  the same
        """Return how many steps this group needs one after the other: one per rail of a pair."""
        return 1

    def again(
        self,
        context: ProbeContext,  # noqa: ARG002  the same
        probed: Mapping[str, ProbeFacts],  # noqa: ARG002  the same
    ) -> Mapping[int, Sequence[tuple[str, ...]]]:
        """Return, by lane, further pairs to measure: nodes of a bad pair, each with another partner."""
        return {}

    def usual(self, context: ProbeContext, stage: Stage) -> tuple[int, ...]:  # noqa: ARG002  the same
        """Return the default sizes of a stage: those that this network carries in little time."""
        return self.sizes.get(stage, ())

    def fitting(self, context: ProbeContext, stage: Stage, sizes: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return the sizes for which the nodes have enough memory."""
        return sizes

    def net(self, context: ProbeContext, stage: Stage) -> str:  # noqa: ARG002  the same
        """Return the value to which NCCL_NET is pinned in this stage, "" for none."""
        return ""

    def planned(self, context: ProbeContext, task: NodeTask) -> tuple[str, ...]:
        """Return the interfaces and HCA ports that the data of this task should use."""
        return context.planned.get(task.node, ())

    def variables(self, context: ProbeContext, node: str, net: str) -> dict[str, str | None]:  # noqa: ARG002  the same
        """Return the environment variables of the ranks on a node; None unsets one."""
        return dict(context.variables(node))

    def meeting(self, context: ProbeContext, node: str) -> dict[str, JsonValue]:  # noqa: ARG002  the same
        """Return extra arguments for a node that prepares a meeting point."""
        return {}

    def own_arguments(self, context: ProbeContext, task: NodeTask) -> Mapping[str, JsonValue]:
        """Return the driver's own arguments of a task. Raises CannotTakePartError."""
        raise NotImplementedError


class LocalDriver(Driver):
    """A driver whose ranks are started by a program on the local host, such as mpirun."""

    def run(self, context: ProbeContext, tasks: Sequence[NodeTask]) -> Mapping[str, Reply]:
        """Run the steps of these tasks (disjoint groups) and return each node's reply, as an agent would send it.

        Blocks for at most `seconds` of the tasks. However it ends, ^C included, it ends what it started.
        """
        raise NotImplementedError


class CannotTakePartError(Exception):
    """A node cannot take part in this step; the message says why."""


def driver_named(name: str) -> Driver:
    """Return the driver of that name in DRIVERS."""
    module, attribute = DRIVERS[name]
    driver: Driver = getattr(import_module(f"ncheck.probe.methods.{module}"), attribute)
    return driver


def step_arguments(step: Step) -> dict[str, JsonValue]:
    """Return a step as nodes are asked for it, and as it is read back from a recording."""
    return {
        "round": step.round, "stage": step.stage.value, "method": step.method.value, "group": list(step.group),
        "ranks": list(step.ranks), "sizes": list(step.sizes), "launcher": step.launcher, "net": step.net,
        "expect": step.expect, "repeats": step.repeats, "op": step.op.value,
        **({"off": step.off} if step.off else {}),
    }  # fmt: skip


def task_arguments(driver: Driver, context: ProbeContext, task: NodeTask) -> dict[str, JsonValue]:
    """Return all arguments of a task: the common ones and the driver's own. Raises CannotTakePartError."""
    off = {task.step.off: "0"} if task.step.off else {}
    common: dict[str, JsonValue] = {
        **step_arguments(task.step), "node": task.node, "planned": list(driver.planned(context, task)),
        "timeout": task.seconds, "variables": {**driver.variables(context, task.node, task.step.net), **off},
    }  # fmt: skip
    return {**common, **({} if isinstance(driver, LocalDriver) else driver.own_arguments(context, task))}
