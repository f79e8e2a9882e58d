"""Clusters that were measured in several operations, judged whole as a recording is."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.model.finding import Outcome
from ncheck.model.op import SETS, Op
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.settings import Settings

from tests.recorded.clusters import HEALTHY
from tests.recorded.make import evidence
from tests.recorded.probe import measured_in


def judged(ops: tuple[Op, ...], crossing: Mapping[tuple[Op, str, str], float] | None = None) -> Report:
    hosts = measured_in(HEALTHY, ops, crossing)
    known = [evidence(host, place) for place, host in enumerate(hosts, 1)]
    return judge_again(known, Settings(select=("NC0", "NC7")), Silent())


def test_a_healthy_cluster_is_clean_and_each_operation_compared() -> None:
    report = judged(SETS["moe"])
    assert (report.findings, report.exit_code) == ((), 0)
    assert [verdict for verdict in report.verdicts if verdict.outcome is Outcome.UNKNOWN] == []
    assert [(one.op, one.stage) for one in report.measurements if one.ratio is None or one.ratio < 0.85] == []
    assert {one.op for one in report.measurements} == {op.value for op in SETS["moe"]}


def test_a_way_that_is_slow_in_an_all_to_all_alone_is_the_cause_of_what_all_nodes_show() -> None:
    report = judged((Op.ALL_REDUCE, Op.ALL_TO_ALL), {(Op.ALL_TO_ALL, "gpu01", "gpu02"): 0.5})
    (cause,) = (one for one in report.findings if not one.see)
    assert (cause.code, cause.nodes) == ("NC711", ("gpu01", "gpu02"))
    assert cause.message == (
        "all-to-all: the link between gpu01 and gpu02 is slow: 23.9 GB/s of 47.7 usual (0.50); both are fast with "
        "other nodes; only all-to-all shows it: all-reduce between the same nodes is fine"
    )
    assert {one.code: one.see for one in report.findings if one is not cause} == {
        "NC712": ("NC711",), "NC721": ("NC711",),
    }  # fmt: skip


def test_a_way_that_is_slow_in_each_operation_is_told_once() -> None:
    ops = (Op.ALL_REDUCE, Op.ALL_TO_ALL)
    report = judged(ops, {(op, "gpu01", "gpu02"): 0.5 for op in ops})
    causes = [(one.code, one.nodes) for one in report.findings if not one.see]
    assert causes == [("NC711", ("gpu01", "gpu02"))]
