"""The contract by which one means runs the steps of the probe: what each module of WAYS brings as `WAY`.

`rounds` decides what is measured next, makes the steps, shares out the time and asks; a way says whether it can be used
here, how many ranks and which sizes a step has, and what a node must be told beyond what `asked` tells it anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.probe import Means, MeetingFacts, ProbeFacts, Stage, Step

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import JsonValue, Reply
    from ncheck.model.plan import LaunchPlan
    from ncheck.plan.networks import Network
    from ncheck.settings import Settings


# By name, as --probe and --probe-launcher have it, the module of this package whose WAY it is.
WAYS: Mapping[str, str] = {
    "nccl": "nccl",
    "nccl-tests": "nccl_tests",
    "nccl-tests-mpirun": "nccl_tests_across",
    "mpirun": "under_mpirun",
    "rdma": "rdma",
    "diagnostics": "diagnostics",
    "gloo": "gloo",
    "tcp": "tcp",
}


KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True)
class Ground:
    """What a way stands on; the same for the whole probe, but for `cluster`.

    `nodes` take part, in the order of the listing; `slots` are the ranks that the job has on each, `gpus` how many GPUs
    each shows to it (0 where there are none). `network` is where the plan's TCP goes: None for one node alone, and
    where none could be chosen. `planned` are the interfaces ("eth0") and HCA ports ("mlx5_0:1") that the plan means for
    each node, `rdma` tells whether data goes by the HCAs.
    """

    cluster: Cluster
    settings: Settings
    plan: LaunchPlan
    nodes: tuple[str, ...]
    slots: Mapping[str, int]
    gpus: Mapping[str, int]
    network: Network | None
    planned: Mapping[str, tuple[str, ...]]
    rdma: bool = False

    def variables(self, node: str) -> dict[str, str]:
        """Return what the plan sets on this node, its own values among them."""
        settings = {**self.plan.env, **self.plan.per_node.get(node, {})}
        return {name: setting.value for name, setting in settings.items() if setting.value is not None}

    def address(self, node: str) -> str:
        """Return the node's own address in the plan's network, "" where none is known."""
        held = self.network.members.get(node, ()) if self.network else ()
        return held[0].ip if held else ""

    def meeting(self, node: str) -> MeetingFacts | None:
        """Return what the node told when it was asked where ranks may meet; None where it was not or told nothing."""
        held = self.cluster.known.get(node, {}).get(MeetingFacts)
        return held if isinstance(held, MeetingFacts) else None


@dataclass(frozen=True)
class Part:
    """One node's part in a step. `seconds` is what it has for all of it, `lane` which of the way's lanes it is.

    `id` is a rendezvous of the group's first node that was used for nothing yet, "" where the way wants none.
    """

    step: Step
    node: str
    seconds: float
    lane: int = 0
    id: str = ""

    @property
    def index(self) -> int:
        """Where the node stands in the group."""
        return self.step.group.index(self.node)

    @property
    def first(self) -> int:
        """The rank of the node's first rank."""
        return sum(self.step.ranks[: self.index])

    @property
    def ranks(self) -> int:
        """How many ranks the node has."""
        return self.step.ranks[self.index]

    @property
    def leader(self) -> str:
        """The node of rank 0."""
        return self.step.group[0]


class Way:
    """One means. Those whose ranks the agents start give `part`; what a program on the head starts is a `HeadWay`.

    `least` are the seconds under which a step is not begun, `most` those after which it counts as hung: both with the
    start of the ranks. `meets` tells whether leaders are asked to meet, `to_meet` how many seconds they have for it,
    `ids` whether each step needs an id of its own.
    `across` is another of WAYS, which has those stages that lie between nodes; "" where this one has them itself.
    """

    means: ClassVar[Means]
    launcher: ClassVar[str] = "agents"
    stages: ClassVar[frozenset[Stage]] = frozenset({Stage.INSIDE, Stage.PAIR, Stage.SCALING, Stage.ALL})
    sizes: ClassVar[Mapping[Stage, tuple[int, ...]]] = {}
    least: ClassVar[float] = 3.0
    most: ClassVar[float] = 20.0
    across: ClassVar[str] = ""
    meets: ClassVar[bool] = False
    to_meet: ClassVar[float] = 10.0
    ids: ClassVar[bool] = False

    def unfit(self, ground: Ground) -> str:
        """Say why it cannot be used on this ground; "" where it can."""
        raise NotImplementedError

    def lacks(self, ground: Ground) -> str:  # noqa: ARG002  what a way needs to know
        """Say why no step of it is begun although other stages are run; "" where they are. It is told as skipped."""
        return ""

    def ranks(self, ground: Ground, stage: Stage, node: str) -> int:  # noqa: ARG002  what a way needs to know
        """Return how many ranks a node has in a step of this stage."""
        return 1

    def lanes(self, ground: Ground, stage: Stage, group: tuple[str, ...]) -> int:  # noqa: ARG002  the same
        """Return how many steps this group needs at this stage, one after the other: the rails of a pair."""
        return 1

    def again(
        self,
        ground: Ground,  # noqa: ARG002  the same
        probed: Mapping[str, ProbeFacts],  # noqa: ARG002  the same
    ) -> Mapping[int, Sequence[tuple[str, ...]]]:
        """Return, by lane, the pairs that are wanted once more: of those that did badly, each with another partner."""
        return {}

    def usual(self, ground: Ground, stage: Stage) -> tuple[int, ...]:  # noqa: ARG002  the same
        """Return the sizes of this stage where nobody named any: what this network carries in little time."""
        return self.sizes.get(stage, ())

    def fitting(self, ground: Ground, stage: Stage, sizes: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return those of the wanted sizes that the nodes have memory for."""
        return sizes

    def net(self, ground: Ground, stage: Stage) -> str:  # noqa: ARG002  the same
        """Return what NCCL_NET is pinned to in this stage, "" for nothing."""
        return ""

    def planned(self, ground: Ground, part: Part) -> tuple[str, ...]:
        """Return the devices that this part is meant to go by."""
        return ground.planned.get(part.node, ())

    def variables(self, ground: Ground, node: str, net: str) -> dict[str, str | None]:  # noqa: ARG002  the same
        """Return the variables that the ranks on a node get; None unsets one."""
        return dict(ground.variables(node))

    def meeting(self, ground: Ground, node: str) -> dict[str, JsonValue]:  # noqa: ARG002  the same
        """Return what a node is told that is asked to meet, beyond means, count and variables."""
        return {}

    def part(self, ground: Ground, part: Part) -> Mapping[str, JsonValue]:
        """Return what the node must be told beyond what `asked` says. Raises NoPartError where it cannot take part."""
        raise NotImplementedError


class HeadWay(Way):
    """One means whose ranks are started by a program that the head runs."""

    def run(self, ground: Ground, parts: Sequence[Part]) -> Mapping[str, Reply]:
        """Run the steps of these parts (disjoint groups, at once or in turn) and return each node's reply.

        The replies are those of `turn`: a value of the shape that agents send, or a status that says why there is none.
        It blocks for `seconds` at most; whatever ends it, a ^C too, it ends what it started. Nothing else is raised.
        """
        raise NotImplementedError


class NoPartError(Exception):
    """A node cannot take part in this step; the words say why."""


def way_called(name: str) -> Way:
    """Return the way of that name in WAYS."""
    way: Way = import_module(f"ncheck.probe.methods.{WAYS[name]}").WAY
    return way


def step_told(step: Step) -> dict[str, JsonValue]:
    """Return a step as turns are asked it, and as it is read back."""
    return {
        "round": step.round, "stage": step.stage.value, "means": step.means.value, "group": list(step.group),
        "ranks": list(step.ranks), "sizes": list(step.sizes), "launcher": step.launcher, "net": step.net,
        "expect": step.expect,
    }  # fmt: skip


def asked(way: Way, ground: Ground, part: Part) -> dict[str, JsonValue]:
    """Return the arguments of a turn: those that every means gets, and the way's own. Raises NoPartError."""
    common: dict[str, JsonValue] = {
        **step_told(part.step), "node": part.node, "planned": list(way.planned(ground, part)),
        "timeout": part.seconds, "variables": dict(way.variables(ground, part.node, part.step.net)),
    }  # fmt: skip
    return {**common, **({} if isinstance(way, HeadWay) else way.part(ground, part))}
