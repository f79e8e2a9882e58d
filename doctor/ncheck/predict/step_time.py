"""Seconds that the exchanges of a training step take on a cluster, by what NCCL will do for each group of ranks.

Ranks are numbered as Megatron-LM does, so tensor parallel groups lie inside a node and data parallel ones across. All
groups of a node exchange at the same time: each has its share of the node's NICs. The slowest group counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncheck.errors import NcheckError
from ncheck.hostlist import fold
from ncheck.model.cluster import Cluster
from ncheck.parity import nodes_by_value
from ncheck.plan.inputs import unreachable
from ncheck.predict.carriers import at_speed
from ncheck.predict.case import LARGE, Case, parts_of
from ncheck.predict.prediction import predicted
from ncheck.predict.training import Exchange, StepPrediction, Timed, TrainingRun, exchanges


def predict_step(
    cluster: Cluster, run: TrainingRun, slots: int | None, compute: float | None, link_speed: float | None = None
) -> StepPrediction:
    """Return what a step exchanges and how long that takes on these nodes.

    Raises NcheckError where their GPUs are not as many as the run needs, or not the same number on each node.
    """
    if lost := unreachable(cluster):
        raise NcheckError(f"--model: {fold(lost)} could not be reached: how many GPUs there are is not known")
    cluster, named = at_speed(cluster, link_speed)
    case, _ = parts_of(cluster, slots)
    ranks = {name: part.ranks for name, part in case.items()}
    counts = nodes_by_value(ranks)
    if len(counts) > 1:
        listed = ", ".join(f"{count} on {fold(nodes)}" for count, nodes in counts.items())
        raise NcheckError(f"--model: the nodes have different numbers of GPUs: {listed}")
    if sum(ranks.values()) != run.gpus:
        raise NcheckError(f"--model: dp x tp x pp x cp needs {run.gpus} GPUs, and the nodes have {sum(ranks.values())}")
    found = exchanges(run)
    timed = tuple(_slowest(case, each, run.gpus) for each in found)
    return StepPrediction(run, found, timed, compute, (*named, *_notes(found, timed)))


def _notes(found: Sequence[Exchange], timed: Sequence[Timed]) -> list[str]:
    inside = "The groups inside a node are taken to be its first GPUs, and each group has an equal share of the NICs."
    without = [each.what for each, one in zip(found, timed, strict=True) if one.seconds and one.start_up is None]
    return [inside, *([f"Start-up is not counted of {', '.join(dict.fromkeys(without))}."] if without else [])]


def _slowest(case: Case, exchange: Exchange, world: int) -> Timed:
    """Return the time of the slowest group; unknown where that of one is."""
    gpus = next(iter(case.values())).ranks
    groups = [_timed(case, exchange, place, gpus) for place in exchange.group.placed(world, gpus)]
    return max(groups, key=lambda one: (one.seconds is None, one.seconds or 0.0))


def _timed(case: Case, exchange: Exchange, place: Sequence[tuple[int, int]], gpus: int) -> Timed:
    names, most = tuple(case), max(ranks for _, ranks in place)
    together = max(1, gpus // most)  # groups that share the NICs of a node
    group, crowd = {}, 1.0
    for node, ranks in place:
        part = case[names[node]]
        if part.nics:
            crowd = max(crowd, together / len(part.nics))
        group[names[node]] = replace(part, ranks=ranks, ports=part.ports[: max(1, len(part.ports) // together)])
    found = predicted(group, exchange.op, (exchange.size, LARGE))
    row, large = found.rows
    if large.busbw is None:
        return Timed(len(group), most, unknown="; ".join(found.unknown))
    carried = exchange.size * exchange.op.bus_factor(exchange.group.size) / large.busbw / 1e9
    start_up = max(0.0, row.seconds - carried) if row.algorithm and row.seconds is not None else None
    if len(group) > 1:
        carried *= crowd
    shared = f", shared by {together} groups" if len(group) > 1 and crowd > 1 else ""
    return Timed(
        len(group), most, exchange.calls * (carried + (start_up or 0.0)),
        None if start_up is None else exchange.calls * start_up,
        f"{found.limited_by}{shared}",
    )  # fmt: skip
