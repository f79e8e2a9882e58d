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


def case(xml: JUnitXml, node: str, name: str) -> TestCase:
    (found,) = [one for one in suites(xml)[node] if one.name == name]
    return found


def results(one: TestCase) -> list[tuple[type, str, str]]:
    return [(type(result), result.type, result.message) for result in one.result]


def test_a_node_is_a_suite_and_a_check_a_case(reports: dict[str, Report]) -> None:
    xml = read(replace(reports["healthy"], time="2026-11-22T14:04:05+01:00"))
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (40, 0, 0, 4)
    suite = suites(xml)["node01"]
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (10, 0, 0, 1)
    assert (suite.hostname, suite.timestamp) == ("node01", "2026-11-22T13:04:05")
    origin = {one.name: one.value for one in suite.properties()}
    assert origin == {"ncheck.version": "0.1.0", "ncheck.host": "", "ncheck.user": "", "ncheck.command": ""}
    one = case(xml, "node01", "NC201 nccl-version-differs")
    assert (one.classname, one.is_passed) == ("node01.Versions", True)
    rooted = case(xml, "node01", "NC506 gpu-xid-reported")
    assert results(rooted) == [(Skipped, "skipped", "journalctl -k and dmesg: permission denied")]


def test_an_error_is_a_failure_with_its_evidence_and_its_fix(reports: dict[str, Report]) -> None:
    one = case(read(reports["mixed_nccl"]), "node04", "NC201 nccl-version-differs")
    message = "NCCL differs: 2.21.5 on node[01-03], 2.18.3 on node04 (3 to 1)"
    assert results(one) == [(Failure, "error", message)]
    path = "/opt/conda/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
    assert one.result[0].text.splitlines() == [
        f"error NC201 nccl-version-differs: {message}", f"  2.21.5 from {path} on node[01-03]",
        f"  2.18.3 from {path} on node04", "fix on node04: python3 -m pip install nvidia-nccl-cu12==2.21.5",
    ]  # fmt: skip


def test_a_warning_is_a_failure_where_it_counts_and_else_skipped_with_its_message(reports: dict[str, Report]) -> None:
    name, report = "NC402 ib-port-polling", reports["mixed_nccl"]
    assert [kind for kind, *_ in results(case(read(report), "node02", name))] == [Skipped]
    never = replace(report, fail_on=("never",))
    assert [kind for kind, *_ in results(case(read(never), "node04", "NC201 nccl-version-differs"))] == [Failure]
    strict = replace(report, fail_on=("error", "warning"))
    assert [kind for kind, *_ in results(case(read(strict), "node02", name))] == [Failure]


def test_what_is_ignored_is_skipped_and_what_is_only_worth_knowing_passes(reports: dict[str, Report]) -> None:
    report = reports["mixed_nccl"]
    nccl, ib = report.findings
    ignored = replace(nccl, severity=Severity.INFO, ignored=True)
    xml = read(replace(report, findings=(ignored, replace(ib, severity=Severity.INFO))))
    assert [kind for kind, *_ in results(case(xml, "node04", "NC201 nccl-version-differs"))] == [Skipped]
    noted = case(xml, "node02", "NC402 ib-port-polling")
    assert (noted.is_passed, noted.system_out.splitlines()[0][:28]) == (True, "info NC402 ib-port-polling: ")


def test_unknown_is_an_error_whatever_fail_on_says(reports: dict[str, Report]) -> None:
    dark = Verdict("gpu-count-differs", "NC501", ("node02",), Outcome.UNKNOWN, "nvidia-smi hangs")
    report = reports["healthy"]
    others = tuple(one for one in report.verdicts if (one.code, one.nodes) != ("NC501", ("node02",)))
    xml = read(replace(report, verdicts=(*others, dark), fail_on=("never",), exit_code=0))
    assert results(case(xml, "node02", "NC501 gpu-count-differs")) == [(Error, "error", "nvidia-smi hangs")]
    assert xml.errors == 1


def test_a_node_that_was_not_reached_is_one_error_beside_its_findings(reports: dict[str, Report]) -> None:
    xml = read(reports["one_down"])
    lost = suites(xml)["node04"]
    assert (lost.tests, lost.failures, lost.errors) == (5, 2, 1)
    why = "not reached: filtered: no answer from 10.1.0.4 port 22 within 15 s; 6 checks not run"
    assert results(case(xml, "node04", "login")) == [(Error, "error", why)]


@pytest.mark.parametrize(("change", "node", "name", "why"), [
    ({"interrupted": True}, "ncheck", "complete run", "interrupted"),
    ({"dropped": {"node09": "NC402 ib-port-polling: mlx5_3"}}, "node09", "left out by --drop-bad",
     "NC402 ib-port-polling: mlx5_3"),
])  # fmt: skip
def test_what_an_interrupted_run_or_drop_bad_left_out_is_an_error(
    change: dict[str, object], node: str, name: str, why: str, reports: dict[str, Report]
) -> None:
    xml = read(replace(reports["healthy"], **change))  # type: ignore[arg-type]
    assert results(case(xml, node, name)) == [(Error, "error", why)]


def test_what_a_node_wrote_is_text(reports: dict[str, Report]) -> None:
    xml = read(evil(reports["healthy"]))
    text = case(xml, "node01", "NC201 nccl-version-differs").result[0].text
    assert "<script>alert(1)</script>" in text
    assert "\u202e" not in text
    read(reports["hostile"])
