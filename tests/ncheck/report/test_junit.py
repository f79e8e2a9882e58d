"""JUnit XML, as junitparser reads it: what could not be checked is an error, and nothing that is bad is a pass."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from ncheck.model.finding import Outcome, Severity, Verdict
from ncheck.model.report import Report
from ncheck.report import show

from .test_html import evil


def read(report: Report) -> JUnitXml:
    stream = io.StringIO()
    assert show(report, "junit", stream, {}) == report.exit_code
    return JUnitXml.fromstring(stream.getvalue().encode())


def suites(xml: JUnitXml) -> dict[str, TestSuite]:
    return {suite.name: suite for suite in xml}


def case(xml: JUnitXml, topic: str, name: str) -> TestCase:
    (found,) = [one for one in suites(xml)[topic] if one.name == name]
    return found


def results(one: TestCase) -> list[tuple[type, str, str]]:
    return [(type(result), result.type, result.message) for result in one.result]


MIXED = "NC201 nccl-version-differs node04"
PORT = "NC402 ib-port-polling node02"


def test_a_topic_is_a_suite_and_a_check_a_case(reports: dict[str, Report]) -> None:
    xml = read(replace(reports["healthy"], time="2026-11-22T14:04:05+01:00", host="head"))
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (10, 0, 0, 1)
    suite = suites(xml)["GPUs"]
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (2, 0, 0, 1)
    assert (suite.hostname, suite.timestamp) == ("head", "2026-11-22T13:04:05")
    origin = {one.name: one.value for one in suite.properties()}
    assert origin == {
        "ncheck.version": reports["healthy"].version, "ncheck.host": "head", "ncheck.user": "", "ncheck.command": "",
    }  # fmt: skip
    one = case(xml, "Versions", "NC201 nccl-version-differs")
    assert (one.classname, one.is_passed) == ("Versions", True)
    rooted = case(xml, "GPUs", "NC506 gpu-xid-reported")
    assert results(rooted) == [(Skipped, "skipped", "journalctl -k and dmesg: permission denied")]


def test_an_error_is_a_failure_with_its_evidence_and_its_fix(reports: dict[str, Report]) -> None:
    one = case(read(reports["mixed_nccl"]), "Versions", MIXED)
    message = "NCCL differs: 2.21.5 on node[01-03], 2.18.3 on node04 (3 to 1)"
    assert results(one) == [(Failure, "error", message)]
    path = "/opt/conda/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
    assert one.result[0].text.splitlines() == [
        f"error NC201 nccl-version-differs: {message}", f"  2.21.5 from {path} on node[01-03]",
        f"  2.18.3 from {path} on node04", "fix on node04: python3 -m pip install nvidia-nccl-cu12==2.21.5",
    ]  # fmt: skip


def test_a_warning_is_a_failure_where_it_counts_and_else_skipped_with_its_message(reports: dict[str, Report]) -> None:
    report = reports["mixed_nccl"]
    assert [kind for kind, *_ in results(case(read(report), "InfiniBand and RoCE", PORT))] == [Skipped]
    never = replace(report, fail_on=("never",))
    assert [kind for kind, *_ in results(case(read(never), "Versions", MIXED))] == [Failure]
    strict = replace(report, fail_on=("error", "warning"))
    assert [kind for kind, *_ in results(case(read(strict), "InfiniBand and RoCE", PORT))] == [Failure]


def test_what_is_ignored_is_skipped_and_what_is_only_worth_knowing_passes(reports: dict[str, Report]) -> None:
    report = reports["mixed_nccl"]
    nccl, ib = report.findings
    ignored = replace(nccl, severity=Severity.INFO, ignored=True)
    xml = read(replace(report, findings=(ignored, replace(ib, severity=Severity.INFO))))
    assert [kind for kind, *_ in results(case(xml, "Versions", MIXED))] == [Skipped]
    noted = case(xml, "InfiniBand and RoCE", PORT)
    assert (noted.is_passed, noted.system_out.splitlines()[0][:28]) == (True, "info NC402 ib-port-polling: ")


def test_unknown_is_an_error_whatever_fail_on_says(reports: dict[str, Report]) -> None:
    dark = Verdict("gpu-count-differs", "NC501", ("node02",), Outcome.UNKNOWN, "nvidia-smi hangs")
    report = reports["healthy"]
    others = tuple(one for one in report.verdicts if (one.code, one.nodes) != ("NC501", ("node02",)))
    xml = read(replace(report, verdicts=(*others, dark), fail_on=("never",), exit_code=0))
    assert results(case(xml, "GPUs", "NC501 gpu-count-differs node02")) == [(Error, "error", "nvidia-smi hangs")]
    assert xml.errors == 1


def test_a_node_that_was_not_reached_is_one_failure_or_one_error(reports: dict[str, Report]) -> None:
    xml = read(reports["one_down"])
    assert (xml.failures, xml.errors) == (1, 0)
    follows = case(xml, "Not examined", "NC001 node-not-reached node04")
    (result,) = results(follows)
    assert result[:2] == (Skipped, "consequence")
    assert result[2].startswith("consequence of NC112: ")
    unselected = read(replace(reports["one_down"], findings=(), verdicts=()))
    assert results(case(unselected, "Not examined", "login")) == [(Error, "error", "node04: unreachable (filtered)")]


@pytest.mark.parametrize(("change", "name", "why"), [
    ({"interrupted": True}, "complete run", "interrupted"),
    ({"dropped": {"node09": "NC402 ib-port-polling: mlx5_3"}}, "left out by --drop-bad node09",
     "NC402 ib-port-polling: mlx5_3"),
])  # fmt: skip
def test_what_an_interrupted_run_or_drop_bad_left_out_is_an_error(
    change: dict[str, object], name: str, why: str, reports: dict[str, Report]
) -> None:
    xml = read(replace(reports["healthy"], **change))  # type: ignore[arg-type]
    assert results(case(xml, "Not examined", name)) == [(Error, "error", why)]


def test_what_a_node_wrote_is_text(reports: dict[str, Report]) -> None:
    xml = read(evil(reports["healthy"]))
    (one,) = [one for one in suites(xml)["Versions"] if one.name.startswith("NC201 ") and one.result]
    text = one.result[0].text
    assert "<script>alert(1)</script>" in text
    assert "\u202e" not in text
    read(reports["hostile"])
