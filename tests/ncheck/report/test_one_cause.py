"""What makes many checks unknown is one finding, and the checks are not listed beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.fleet.recording import load
from ncheck.model.evidence import Cause, Reply, Status
from ncheck.model.finding import Outcome
from ncheck.model.state import unknown_by_cause, unreached_and_unknown
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.report.summary import headline
from ncheck.report.text import fold_findings
from ncheck.settings import Settings

HEALTHY = Path(__file__).parents[3] / "fixtures" / "healthy-4x8-h100"


@pytest.mark.parametrize(
    ("cause", "summary"),
    [(Cause.NO_PYTHON, "python3 does not run"), (Cause.NOT_ENTERED, "the job's environment cannot be entered")],
)
def test_a_node_without_an_agent_is_named_once(cause: Cause, summary: str) -> None:
    *others, last = load(HEALTHY)
    mute = replace(last, login=replace(last.login, cause=cause, detail="its own words"), replies={}, notes={})
    settings = Settings(select=("ssh", "host", "gpus", "network"))
    report = judge_again([*others, mute], settings, Silent())
    not_run, unknown = unreached_and_unknown(report)
    assert (unknown, {verdict.nodes for verdict in not_run}) == ([], {(mute.node,)})
    assert {verdict.reason for verdict in not_run} == {
        f"{cause.value}: its own words", f"the login ended before this step ({cause.value})",
    }  # fmt: skip
    assert headline(report, fold_findings(report.findings)).text == f"Not ready: {mute.node}: {summary}"
    assert all(verdict.outcome is not Outcome.UNKNOWN for verdict in report.verdicts if mute.node not in verdict.nodes)


def test_a_driver_that_hangs_is_named_once() -> None:
    *others, last = load(HEALTHY)
    late = Reply(Status.TIMEOUT, seconds=10.0)
    hung = {key: late for key in last.replies if "nvidia-smi" in key or key in ("answer:gpus", "answer:gpu-health")}
    report = judge_again([*others, replace(last, replies={**last.replies, **hung})], Settings(), Silent())
    plain, explained = unknown_by_cause(report)
    assert (plain, set(explained)) == ([], {("NC505",)})
    assert [finding.code for finding in report.findings if not finding.see] == ["NC505"]
    text = headline(report, fold_findings(report.findings)).text
    assert text == "Not ready: gpu04: nvidia-smi hangs; launch plan not usable"


def test_a_shortfall_is_hung_under_the_node_that_explains_it_and_not_under_a_rail_known_to_be_dead() -> None:
    """gpu03 reaches 0.44 of the usual and all nodes 0.47 of what the remaining rails of gpu02 let expect."""
    report = judge_again(load(HEALTHY.parent / "slow-node-and-rail"), Settings(), Silent())
    assert {one.code: one.see for one in report.findings} == {
        "NC402": (), "NC710": (), "NC712": ("NC710",), "NC721": ("NC710",),
    }  # fmt: skip
