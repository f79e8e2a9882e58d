"""Nodes that took part in steps of the probe, by hand."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.model.cluster import Facts
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Carried, Method, NodeResult, Row, Stage, Step, StepFailure

MIB = 2**20
SIZES = (MIB, 64 * MIB)


def step(
    number: int, *group: str, stage: Stage = Stage.PAIR, method: Method = Method.NCCL, net: str = "",
    op: Op = Op.ALL_REDUCE,
) -> Step:  # fmt: skip
    """Return a step of these nodes, one rank each; a node alone runs it inside itself, with two ranks."""
    stage = Stage.INSIDE if len(group) == 1 else stage
    ranks = (2,) if len(group) == 1 else (1,) * len(group)
    return Step(number, stage, method, group, ranks, SIZES, net=net, op=op)


def well(one: Step, **more: object) -> NodeResult:
    """Return the part of a node that came to its end."""
    return NodeResult(one, rows(), seconds=20.0, start=1.0, **more)  # type: ignore[arg-type]


def rows(wrong: int = 0) -> tuple[Row, ...]:
    return tuple(
        Row(size, in_place=False, seconds=size / 1e9, fastest=size / 2e9, slowest=size / 5e8, wrong=wrong)
        for size in SIZES
    )


def broken(one: Step, words: str, *log: str, at: str = "init", code: int | None = None) -> NodeResult:
    """Return the part of a node whose rank ended with an error."""
    return NodeResult(one, (), log=log, failure=StepFailure(at, words, 0, code), seconds=20.0)


def late(one: Step, *log: str, at: str = "init", seconds: float = 20.0, **more: object) -> NodeResult:
    """Return the part of a node whose time was over."""
    failure = StepFailure(at, f"it ran out of time in: {at}", 0, None, late=True)
    return NodeResult(one, log=log, failure=failure, seconds=seconds, **{"rows": (), **more})  # type: ignore[arg-type]


def probed(**results: NodeResult | tuple[NodeResult, ...]) -> dict[str, Facts]:
    """Return nodes with their results."""
    told = {node: part if isinstance(part, tuple) else (part,) for node, part in results.items()}
    return {node: {ProbeFacts: ProbeFacts(parts)} for node, parts in told.items()}


def sent(**devices: int) -> Mapping[str, Carried]:
    """Return what devices sent and received; the name of an HCA port is written mlx5_0__1."""
    return {name.replace("__", ":"): Carried(count, count) for name, count in devices.items()}


def both(one: Mapping[str, Facts], other: Mapping[str, Facts]) -> dict[str, Facts]:
    """Return nodes with the results of both, as a probe of two operations leaves them."""
    return {node: {**facts, ProbeFacts: ProbeFacts((*of(facts), *of(other[node])))} for node, facts in one.items()}


def of(facts: Facts) -> tuple[NodeResult, ...]:
    """Return the results of a node."""
    probed = facts[ProbeFacts]
    assert isinstance(probed, ProbeFacts)
    return probed.results
