"""Errors and warnings are counted once, and every format says the same numbers."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from junitparser import JUnitXml
from ncheck.fleet.recording import load
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.report import show
from ncheck.report.text import counts_of
from ncheck.settings import Settings
from prometheus_client.parser import text_string_to_metric_families

FIXTURES = sorted(one.parent.name for one in (Path(__file__).parents[3] / "fixtures").glob("*/gpu01.json"))


def printed(report: Report, form: str) -> str:
    stream = io.StringIO()
    show(report, form, stream, {})
    return stream.getvalue()


def numbers(text: str) -> tuple[int, int]:
    """Return the errors and warnings that the totals at the end name: "3 errors, 1 warning"."""
    errors, warnings = re.findall(r"(\d+) errors?, (\d+) warnings?", text)[-1]
    return int(errors), int(warnings)


def in_every_format(report: Report) -> dict[str, tuple[int, int]]:
    """Return the errors and warnings of a report that fails on both, as each format shows them."""
    github = re.findall(r"^::(\w+) title=NC\d", printed(report, "github"), re.MULTILINE)
    nagios = dict(re.findall(r"(errors|warnings)=(\d+)", printed(report, "nagios")))
    (metric,) = (one for one in text_string_to_metric_families(printed(report, "openmetrics"))
                 if one.name == "ncheck_findings")  # fmt: skip
    severities = {sample.labels["severity"]: int(sample.value) for sample in metric.samples}
    junit = JUnitXml.fromstring(printed(report, "junit").encode())
    kinds = [result.type for suite in junit for case in suite for result in case.result]
    titles = re.findall(r"^### (\w+) ", printed(report, "markdown"), re.MULTILINE)
    html = re.findall(r'<article class="finding (\w+)', printed(report, "html"))
    return {
        "console": numbers(printed(report, "console")),
        "github": (github.count("error"), github.count("warning")),
        "nagios": (int(nagios["errors"]), int(nagios["warnings"])),
        "openmetrics": (severities["error"], severities["warning"]),
        "junit": (junit.failures - kinds.count("warning"), kinds.count("warning")),
        "markdown": (titles.count("error"), titles.count("warning")),
        "html": (html.count("error"), html.count("warning")),
    }


@pytest.mark.slow
def test_every_format_has_the_same_count_for_every_fixture() -> None:
    assert len(FIXTURES) > 8
    for name in FIXTURES:
        evidence = load(Path(__file__).parents[3] / "fixtures" / name)
        report = replace(judge_again(evidence, Settings(), Silent()), fail_on=("error", "warning"))
        counts = counts_of(report)
        shown = in_every_format(report)
        assert shown == dict.fromkeys(shown, (counts.errors, counts.warnings)), name
        lost = {node.name for node in report.nodes if not node.reached}
        own = [one for one in report.findings if not one.see and lost.issuperset(one.nodes)]
        assert len(own) <= len(lost), name  # an unreachable node is one error, whatever it leaves without an answer
