"""What a report means for the ranks of a job: what stops it, in few words, and what every rank sets."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from ncheck.facts.ranks import RanksFacts
from ncheck.hook.meeting.messages import Told
from ncheck.hook.preflight import APPLIED, MOST_LINES, PreflightError, _decided, _Options, apply_plan
from ncheck.hook.verdict import WIDTH, verdict_of
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import Report
from ncheck.rank_variables import Rank
from ncheck.steps.registry import load_checks

from tests.recorded.replayed import CLUSTERS, replayed

CHECKS = load_checks().checks


def healthy() -> Report:
    return replayed("healthy-4x8-h100")


def verdict(report: Report, **request: Any) -> dict[str, Any]:
    ranks = {node.name: RanksFacts(4, (number,)) for number, node in enumerate(report.nodes)}
    asked = {"strict": False, "ignore": [], "apply": False, "variables": [], "columns": 80, "probe": "none", **request}
    return verdict_of(report, CHECKS, ranks, asked)


def with_findings(*findings: tuple[str, Severity, str], report: Report | None = None) -> Report:
    made = tuple(
        Finding(code, load_checks().one(code).name, severity, ("gpu01",), message, (), "true")
        for code, severity, message in findings
    )
    return replace(report or healthy(), findings=made)


def decision(**words: Any) -> tuple[Any, ...]:
    return tuple(words[name] for name in ("stop", "unsure", "short", "warning", "page"))


def test_a_healthy_job_goes_on_without_a_word() -> None:
    assert decision(**verdict(healthy())) == (False, False, "", "", "")
    assert decision(**verdict(healthy(), strict=True)) == (False, False, "", "", "")


def test_an_error_stops_the_job_with_the_worst_first_its_fix_and_where_to_read_more() -> None:
    report = with_findings(
        ("NC301", Severity.ERROR, "no interface has an address " + "that a job could use " * 20),
        ("NC360", Severity.WARNING, "its hostname resolves to 127.0.1.1 there"),
    )
    found = verdict(report)
    assert found["stop"]
    assert found["short"].splitlines() == [
        "ncheck stopped this job before it started: 1 error",
        "NC301 no-usable-interface on gpu01: no interface has an address that a job could use that a job",
        "  could use that a job could use that a job could use that a job could use that a job could use ...",
        "  fix on gpu01: true",
        "  more: ncheck explain NC301",
    ]
    assert found["warning"] == (
        "NC360 host-name-is-loopback on gpu01: its hostname resolves to 127.0.1.1 there; ncheck explain NC360"
    )
    assert found["page"].startswith("x Not ready: gpu01: no usable interface")


def test_however_many_errors_there_are_the_text_is_short() -> None:
    codes = [check.code for check in CHECKS if check.severity is Severity.ERROR]
    found = verdict(with_findings(*((code, Severity.ERROR, "it is broken " * 30) for code in codes)))
    lines = found["short"].splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH


def test_trouble_of_ncheck_itself_and_what_was_measured_in_a_hurry_is_a_warning() -> None:
    for code in ("NC001", "NC003", "NC004", "NC113", "NC701"):
        found = verdict(with_findings((code, Severity.ERROR, "it went wrong")))
        assert (found["stop"], found["short"], found["page"]) == (False, "", "")
        assert found["warning"].startswith(f"{code} ")


def test_a_finding_that_is_ignored_is_none() -> None:
    report = with_findings(("NC301", Severity.ERROR, "it is broken"))
    ignored = replace(report, findings=tuple(replace(one, ignored=True) for one in report.findings))
    assert decision(**verdict(ignored)) == (False, False, "", "", "")


def test_what_only_networks_between_nodes_suffer_from_stops_no_job_on_one_node() -> None:
    report = with_findings(("NC304", Severity.ERROR, "NCCL would pick docker0"))
    assert verdict(report)["stop"]
    assert not verdict(replace(report, nodes=report.nodes[:1]))["stop"]


def test_strict_stops_for_what_is_unknown() -> None:
    report = replace(replayed("one-node-down"), findings=(), exit_code=1)
    loose = verdict(report)
    assert (loose["stop"], loose["unsure"], loose["short"]) == (False, False, "")
    assert "could not run on" in loose["warning"]
    strict = verdict(report, strict=True)
    assert (strict["stop"], strict["unsure"]) == (False, True)
    assert strict["short"].startswith(
        "ncheck stopped this job before it started: not verified, and strict is set\nunknown on "
    )


PLANNED = LaunchPlan(
    {
        "NCCL_SOCKET_IFNAME": Setting("=eth0", "the network of the job"),
        "NCCL_IB_HCA": Setting(None, "it differs"),
        "GLOO_SOCKET_IFNAME": Setting("eth0", "not sure", decided=False),
    },
    per_node={
        "gpu01": {"NCCL_IB_HCA": Setting("mlx5_0", "rail 0")},
        "gpu02": {"NCCL_IB_HCA": Setting("mlx5_1", "rail 1")},
    },
)


def test_what_the_plan_sets_is_no_reason_to_stop_where_the_ranks_set_it() -> None:
    report = replace(with_findings(("NC304", Severity.ERROR, "NCCL would pick docker0")), plan=PLANNED)
    assert verdict(report)["stop"]

    applied = verdict(report, apply=True)
    assert not applied["stop"]
    assert applied["warning"] == (
        "NC304 nccl-would-pick-virtual on gpu01: NCCL would pick docker0; NCCL_SOCKET_IFNAME is set for this job; "
        "ncheck explain NC304"
    )
    assert verdict(report, apply=True, variables=["NCCL_SOCKET_IFNAME"])["stop"]


def test_apply_sets_what_was_decided_for_all_or_for_this_node_and_nothing_that_somebody_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in PLANNED.env:
        monkeypatch.delenv(name, raising=False)
    report = replace(
        healthy(),
        plan=PLANNED,
        nodes=tuple(
            replace(node, name=name) for node, name in zip(healthy().nodes, ("gpu01", "gpu02", "c", "d"), strict=True)
        ),
    )
    monkeypatch.setattr(os, "environ", {"PATH": "/bin"})
    apply_plan(Rank(1, 4), verdict(report))
    assert os.environ == {"PATH": "/bin", "NCCL_SOCKET_IFNAME": "=eth0", "NCCL_IB_HCA": "mlx5_1"}

    monkeypatch.setattr(os, "environ", {"NCCL_SOCKET_IFNAME": "eth7"})
    apply_plan(Rank(3, 4), verdict(report))
    assert os.environ == {"NCCL_SOCKET_IFNAME": "eth7"}


def test_ranks_that_came_late_stop_a_job_whose_ranks_are_checked() -> None:
    options = _Options("raise", (), (), None, apply=False, strict=False, probe="none", watch=False, environ={})
    of_ranks = Verdict("rank-twice", "NC805", ("gpu01",), Outcome.PASSED)
    late, checked = {"late": "another job (pid 7) meets at n0:29500: ..."}, replace(healthy(), verdicts=(of_ranks,))

    with pytest.raises(PreflightError) as stopped:
        _decided(Rank(0, 2), options, Told(verdict(checked) | late), speaks=False)
    assert str(stopped.value).splitlines() == [
        "ncheck stopped this job before it started: another job (pid 7) meets at n0:29500: ...",
        "  more: ncheck explain NC805",
    ]
    for harmless in (verdict(healthy()) | late, verdict(checked, ignore=["NC805"]) | late, verdict(checked)):
        assert _decided(Rank(0, 2), options, Told(harmless), speaks=False).exit_code == 0


def test_apply_sets_nothing_but_what_a_plan_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    hostile = {"LD_PRELOAD": "/x/a.so", "PYTHONPATH": "/x", "NCCL_NET_PLUGIN": "/x/a.so", "NCCL_IB_HCA": "mlx5_0"}
    apply_plan(Rank(0, 2), {"nodes": {"a": [0]}, "env": hostile, "per_node": {"a": {"PATH": "/x"}}})
    assert os.environ == {"NCCL_IB_HCA": "mlx5_0"}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_all_that_a_plan_holds_can_be_applied(cluster: str) -> None:
    plan = replayed(cluster).plan
    assert {*plan.env, *(name for settings in plan.per_node.values() for name in settings)} <= APPLIED
