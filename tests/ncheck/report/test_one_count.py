"""The state is one of six, and all is counted once: every format says the same words and the same numbers."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from junitparser import JUnitXml
from ncheck.fleet.recording import load
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.report import Report
from ncheck.model.state import state_of
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.report import show
from ncheck.report.summary import counts_of_outcomes
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


@pytest.mark.parametrize("name", ["healthy", "mixed_nccl", "one_down", "all_unknown", "hostile"])
def test_every_format_says_the_state_in_the_same_words(name: str, reports: dict[str, Report]) -> None:
    report = replace(reports[name], recorded=False)
    state = state_of(report).value
    shown = {
        "console": printed(report, "console")[2:],
        "quiet": printed(report, "quiet")[2:],
        "github": printed(report, "github").partition("::notice title=ncheck::")[2],
        "nagios": re.sub(r"^NCHECK \w+: ", "", printed(report, "nagios")),
        "markdown": printed(report, "markdown").removeprefix("# "),
        "html": printed(report, "html").partition("<title>ncheck: ")[2],
        "slurm": printed(report, "slurm").removeprefix("# "),
        "kubernetes": printed(report, "kubernetes").removeprefix("# "),
    }
    assert {form: text[: len(state)] for form, text in shown.items()} == dict.fromkeys(shown, state)


def test_failed_unknown_and_not_run_are_the_same_numbers_in_every_format(reports: dict[str, Report]) -> None:
    first, *others = reports["one_down"].verdicts
    verdicts = (replace(first, outcome=Outcome.UNKNOWN), *others)
    note = Finding("NC305", "no-common-subnet", Severity.INFO, ("node01",), "shares no subnet", (), "true")
    report = replace(reports["one_down"], findings=(*reports["one_down"].findings, note), verdicts=tuple(
        replace(one, outcome=Outcome.FAILED) if (one.code, *one.nodes) == ("NC305", "node01") else one
        for one in verdicts
    ))  # fmt: skip
    counts = {"failed": 2, "info": 1, "not run": 6, "unknown": 1, "skipped": 3, "passed": 27}
    assert counts_of_outcomes(report) == counts
    (totals,) = re.findall(r"40 verdicts: (.*) \| ", printed(report, "verbose"))
    html = printed(report, "html")
    tiles = re.findall(r"<strong>(\d+)</strong> <span>verdicts? ([a-z ]+)</span>", html)
    assert [(word, int(number)) for number, word in tiles] == [("not run", 6), ("unknown", 1)]
    sections = re.findall(r"<summary>(\d+) (failed|info|crashed|not run|unknown|skipped|passed)</summary>", html)
    nagios = dict(re.findall(r"(failed|crashed|not_run|unknown)=(\d+)", printed(report, "nagios")))
    assert nagios == {"failed": "2", "crashed": "0", "not_run": "6", "unknown": "1"}
    metrics: dict[str, int] = {}
    for family in text_string_to_metric_families(printed(report, "openmetrics")):
        for sample in family.samples if family.name == "ncheck_node_verdicts" else ():
            word = sample.labels["outcome"].replace("_", " ")
            metrics[word] = metrics.get(word, 0) + int(sample.value)
    shown = {
        "verbose": {word: int(number) for number, word in re.findall(r"(\d+) ([a-z ]+?)(?: \(|,|$)", totals)},
        "html": {word: int(number) for number, word in sections},
        "openmetrics": {word: number for word, number in metrics.items() if number},
    }
    assert shown == dict.fromkeys(shown, counts)


@pytest.mark.slow
def test_every_format_has_the_same_count_for_every_fixture() -> None:
    assert len(FIXTURES) > 8
    for name in FIXTURES:
        evidence = load(Path(__file__).parents[3] / "fixtures" / name)
        report = replace(judge_again(evidence, Settings(), Silent()), fail_on=("error", "warning"))
        assert report.state is state_of(replace(report, fail_on=Settings().fail_on)), name
        counts = counts_of(report)
        shown = in_every_format(report)
        assert shown == dict.fromkeys(shown, (counts.errors, counts.warnings)), name
        lost = {node.name for node in report.nodes if not node.reached}
        own = [one for one in report.findings if not one.see and lost.issuperset(one.nodes)]
        assert len(own) <= len(lost), name  # an unreachable node is one error, whatever it leaves without an answer
