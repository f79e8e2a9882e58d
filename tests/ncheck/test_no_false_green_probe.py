"""Whatever a healthy cluster's probe loses: the run is no longer clean, or the report says what is missing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.fleet.recording import load
from ncheck.model.evidence import Evidence, Note, Reply, Status
from ncheck.model.finding import Outcome
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.settings import Settings

HEALTHY = load(Path(__file__).parents[2] / "fixtures" / "healthy-4x8-h100")
EVERYBODY = range(len(HEALTHY))
STEPS = [key for key in HEALTHY[0].replies if key.startswith("answer:step#")]
STAGES = {HEALTHY[0].replies[key].asked["stage"]: key for key in STEPS}  # type: ignore[call-overload, index]
LAST = [STAGES["all"]]

Damage = Callable[[Reply], Reply | Note | None]


def value(**new: Any) -> Damage:
    return lambda reply: replace(reply, value={**as_mapping(reply.value), **new})


def row(**new: Any) -> Damage:
    return lambda reply: value(rows=[{**one, **new} for one in as_mapping(reply.value)["rows"]])(reply)


def rows(change: Callable[[list[Any]], list[Any]]) -> Damage:
    return lambda reply: value(rows=change(as_mapping(reply.value)["rows"]))(reply)


def asked(**new: Any) -> Damage:
    return lambda reply: replace(reply, asked={**as_mapping(reply.asked), **new})


def status(told: Status, reason: str = "") -> Damage:
    return lambda reply: replace(reply, status=told, reason=reason, value=None)


def as_mapping(held: Any) -> dict[str, Any]:
    copied: dict[str, Any] = deepcopy(held)
    return copied


def gone(_: Reply) -> None:
    """Lose it, with what was asked."""


def still(reply: Reply) -> Reply | Note | None:
    moved = {device: {"sent": 0, "received": 0} for device in as_mapping(reply.value)["carried"]}
    return value(carried=moved)(reply)


def damaged(nodes: Collection[int], keys: Collection[str], damage: Damage) -> tuple[Evidence, ...]:
    def of(node: Evidence) -> Evidence:
        held = {key: damage(reply) if key in keys else reply for key, reply in node.replies.items()}
        replies = {key: reply for key, reply in held.items() if isinstance(reply, Reply)}
        notes = {key: note for key, note in held.items() if isinstance(note, Note)}
        return replace(node, replies=replies, notes={**node.notes, **notes})

    return tuple(of(node) if place in nodes else node for place, node in enumerate(HEALTHY))


def judged(nodes: tuple[Evidence, ...]) -> Report:
    """Judge by the checks that read what was measured, and by those of what could not be read."""
    return judge_again(nodes, Settings(select=("NC0", "NC7")), Silent())


UNREADABLE: dict[str, Damage] = {
    "no rows": value(rows=[]), "rows of another shape": value(rows={}), "a row twice": rows(lambda told: told[:1] * 2),
    "a size that nobody asked for": row(size=4711), "no time": row(seconds=0.0), "a negative time": row(seconds=-1.0),
    "no number": row(seconds=float("nan")), "for ever": row(slowest=float("inf")), "a text": row(wrong="0"),
    "times that contradict": row(fastest=1e5, slowest=1e-8), "a negative count": row(wrong=-1),
    "nothing": lambda reply: replace(reply, value=None), "cut off": lambda reply: replace(reply, truncated=True),
    "a failure": value(failure={"step": "init", "words": "the moon is full"}), "a wrong sum": row(wrong=1),
    "time-out": status(Status.TIMEOUT), "no answer": status(Status.UNANSWERED), "failed": status(Status.FAILED, "no"),
    "not begun": lambda reply: Note("the time for the probe was over (--probe-time)", asked=reply.asked),
    "nodes that do not fit": asked(group=["gpu01"]), "no ranks": asked(ranks=[]), "no stage": asked(stage="x"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_part_in_all_nodes_together_that_cannot_count_is_no_clean_run(name: str) -> None:
    assert judged(damaged([0], LAST, UNREADABLE[name])).exit_code == 1


@pytest.mark.parametrize("stage", STAGES)
def test_a_node_that_tells_nothing_of_a_stage_is_missed(stage: str) -> None:
    assert judged(damaged([0], [STAGES[stage]], gone)).exit_code == 1


def test_where_nobody_tells_of_all_nodes_together_that_is_missed() -> None:
    assert judged(damaged(EVERYBODY, LAST, gone)).exit_code == 1


@pytest.mark.parametrize(
    ("nodes", "damage"), [([0], rows(lambda told: told[:-2])), ([1, 2], rows(lambda told: told[:2]))]
)
def test_a_size_that_some_nodes_do_not_tell_of_is_missed(nodes: list[int], damage: Damage) -> None:
    assert judged(damaged(nodes, LAST, damage)).exit_code == 1


SAID: dict[str, tuple[Damage, str]] = {
    "not verified": (row(wrong=None), "NC702"),
    "no counters": (value(carried={}), "NC703"),
    "counters that stand still": (still, "NC703"),
    "no device of the plan": (asked(planned=[]), "NC703"),
    "not a word of the network": (value(used=[]), "NC704"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_cannot_be_judged_does_not_pass(name: str) -> None:
    damage, code = SAID[name]
    report = judged(damaged([0], STEPS, damage))
    mine = [one.outcome for one in report.verdicts if one.code == code and "gpu01" in one.nodes]
    assert mine in ([Outcome.SKIPPED], [Outcome.UNKNOWN])


def test_sizes_that_everybody_left_out_are_told_in_the_report() -> None:
    report = judged(damaged(EVERYBODY, LAST, rows(lambda told: told[:-2])))
    assert report.probe is not None
    assert report.probe.notes == ("sizes not measured on all 4 nodes together: 1 GiB",)


def test_a_node_that_claims_to_be_faster_than_the_others_makes_nobody_faster() -> None:
    whole = judged(HEALTHY)
    lied = judged(damaged([0], LAST, row(seconds=1e-8, fastest=1e-8, slowest=1e-8)))
    measured = [[one.measured for one in report.measurements if one.stage == "all"] for report in (whole, lied)]
    assert measured[1] == pytest.approx(measured[0], rel=0.01)
