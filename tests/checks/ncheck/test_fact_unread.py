"""NC002: an unreadable fact is reported once for all nodes with the same reason."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure, GpuHealth, GpuHealthFacts, NvidiaDriverFacts
from ncheck.facts.gpu_log import KernelLogFacts
from ncheck.facts.run import UnreadFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_unusable import gpu_unusable
from ncheck_checks.gpus.nvidia_driver_mismatched import nvidia_driver_mismatched
from ncheck_checks.ncheck.fact_unread import fact_unread

HUNG = Unread("nvidia-smi did not end within 10 s and was killed", fix="timeout 10 nvidia-smi")


def test_the_same_trouble_on_two_nodes_is_one_finding_with_something_to_type() -> None:
    nodes: dict[str, Facts] = {name: {UnreadFacts: UnreadFacts({"GpuFacts": HUNG})} for name in ("a", "b")}
    nodes["c"] = {UnreadFacts: UnreadFacts({})}
    judgement = judge([fact_unread], nodes)
    assert judgement.findings == [
        Finding("NC002", "fact-unread", Severity.WARNING, ("a", "b"),
                "Gpu could not be read: nvidia-smi did not end within 10 s and was killed", (),
                "timeout 10 nvidia-smi", kind="look", summary="Gpu could not be read"),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.FAILED, Outcome.FAILED, Outcome.PASSED]


def test_a_probe_that_did_not_run_is_reported_with_its_own_reason() -> None:
    why = Unread("gloo cannot be used: the job's interpreter has no torch on a", fix="ncheck probe nodes.txt")
    (finding,) = judge([fact_unread], {"a": {UnreadFacts: UnreadFacts({"ProbeFacts": why})}}).findings
    assert (finding.message, finding.fix) == (
        "no bandwidth was measured: gloo cannot be used: the job's interpreter has no torch on a",
        "ncheck probe nodes.txt",
    )
    why = Unread("fix NC208 on a first", fix="ncheck explain NC208")
    (finding,) = judge([fact_unread], {"a": {UnreadFacts: UnreadFacts({"ProbeFacts": why})}}).findings
    assert (finding.message, finding.fix) == ("no bandwidth was measured: fix NC208 on a first", "ncheck explain NC208")


def test_facts_that_are_unread_for_one_reason_are_one_finding() -> None:
    why = Unread("sudo refused, although --sudo was given: a password is required", fix="sudo tee")
    facts: Facts = {UnreadFacts: UnreadFacts({"FirewallFacts": why, "KernelLogFacts": why})}
    (finding,) = judge([fact_unread], {"a": facts, "b": facts}).findings
    assert (finding.message, finding.nodes) == (f"Firewall, KernelLog could not be read: {why.reason}", ("a", "b"))


def test_what_a_driver_that_fails_does_not_say_follows_from_what_is_wrong_with_it() -> None:
    lost = GpuHealthFacts((GpuHealth(3, errors={"handle": Failure(15, "GPU is lost")}),))
    unread = {"GpuFacts": Unread("NVML cannot read every GPU"), "NamesFacts": Unread("/etc/hosts: Input/output error")}
    mismatched: Facts = {NvidiaDriverFacts: NvidiaDriverFacts("550.54.15", "550.90.07")}
    broken: Facts = {GpuHealthFacts: lost, KernelLogFacts: Absent("no log")}
    for check, own in ((nvidia_driver_mismatched, mismatched), (gpu_unusable, broken)):
        cause, *found = judge([check, fact_unread], {"a": {**own, UnreadFacts: UnreadFacts(unread)}}).findings
        assert [(one.summary, one.see) for one in found] == [
            ("Gpu could not be read", (cause.code,)), ("Names could not be read", ()),
        ]  # fmt: skip


def test_it_is_silent_where_all_was_read() -> None:
    nodes: dict[str, Facts] = {name: {UnreadFacts: UnreadFacts({})} for name in ("a", "b")}
    assert judge([fact_unread], nodes).findings == []
