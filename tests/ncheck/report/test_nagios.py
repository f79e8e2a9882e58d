"""The line and the exit codes of a monitoring plugin, by the Monitoring Plugins' guidelines."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.cli.main import main
from ncheck.model.report import Report
from ncheck.report import show

from . import measurements
from .test_html import evil

FIXTURES = Path(__file__).parents[3] / "fixtures"

# 'busbw GB/s'=381.4;;;0      time=3.240s;;;0
PERFORMANCE = re.compile(r"('[^'=|]+'|[^\s'=|]+)=(-?[\d.]+)(s|%|[KMGT]?B|c)?((?:;[\d.:@~]*){0,4})(?:\s|$)")


def read(report: Report) -> tuple[int, str, str, dict[str, float]]:
    """Return the exit code, the state, the text and the performance data, as a monitor parts them."""
    stream = io.StringIO()
    code = show(report, "nagios", stream, {})
    text, bar, data = stream.getvalue().removesuffix("\n").partition("|")
    assert (bar, "\n" in text, "|" in data) == ("|", False, False)
    assert PERFORMANCE.sub("", data.strip()) == ""
    name, state, answer = text.split(maxsplit=2)
    assert name == "NCHECK"
    return code, state.rstrip(":"), answer.strip(), {m[1].strip("'"): float(m[2]) for m in PERFORMANCE.finditer(data)}


@pytest.mark.parametrize(("name", "code", "state"), [
    ("healthy", 0, "OK"), ("hostile", 1, "WARNING"), ("mixed_nccl", 2, "CRITICAL"), ("one_down", 2, "CRITICAL"),
    ("all_unknown", 3, "UNKNOWN"),
])  # fmt: skip
def test_the_exit_code_is_that_of_the_state(name: str, code: int, state: str, reports: dict[str, Report]) -> None:
    assert read(reports[name])[:2] == (code, state)


def test_unknown_is_never_ok_whatever_fail_on_says(reports: dict[str, Report]) -> None:
    assert read(replace(reports["all_unknown"], fail_on=("never",), exit_code=0))[0] == 3
    assert read(replace(reports["healthy"], interrupted=True, exit_code=130))[0] == 3
    assert read(replace(reports["healthy"], dropped={"node09": "NC402"}))[0] == 1


def test_some_checks_that_found_nothing_do_not_say_that_the_cluster_is_well(reports: dict[str, Report]) -> None:
    """Their findings count: a monitor of some checks is alarmed by them, and has no all-clear."""
    code, state, text, _ = read(replace(reports["healthy"], select=("NC4", "NC5")))
    assert (code, state, text.partition(" [")[0]) == (
        3, "UNKNOWN", "Only NC4, NC5 checked: 9 checks passed, 1 skipped; launch plan usable",
    )  # fmt: skip
    assert [read(replace(reports[name], select=("NC2",)))[:2] for name in ("hostile", "mixed_nccl")] == [
        (1, "WARNING"), (2, "CRITICAL"),
    ]  # fmt: skip


def test_the_performance_data_has_counts_time_and_bandwidth(reports: dict[str, Report]) -> None:
    assert read(measurements.healthy(reports["one_down"]))[3] == {
        "nodes": 4, "reached": 3, "errors": 1, "warnings": 0, "failed": 2, "crashed": 0, "not_run": 6, "unknown": 0,
        "time": 3.24, "busbw GB/s": 381.4,
    }  # fmt: skip


def test_what_a_node_wrote_adds_no_line_and_no_bar(reports: dict[str, Report]) -> None:
    for report in (evil(reports["healthy"]), replace(reports["healthy"], dropped={"n": "a | b=1\nc"})):
        read(report)


@pytest.mark.parametrize("words", [
    ("replay", "nowhere", "-o", "nagios"), ("--no-such-option", "-onagios"), ("no-such-file", "-o", "nagios"),
])  # fmt: skip
def test_a_run_without_a_report_is_unknown_and_says_why_on_standard_output(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 3
    out, err = capsys.readouterr()
    assert (out.count("\n"), out.startswith("NCHECK UNKNOWN: ")) == (1, True)
    assert err == f"ncheck: {out.removeprefix('NCHECK UNKNOWN: ')}"


def test_in_a_file_it_changes_no_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["replay", str(FIXTURES / "mixed-nccl"), "-o", "nagios=state", "-o", "json"]) == 1
    assert Path("state").read_text().startswith("NCHECK CRITICAL: ")
    assert main(["replay", str(FIXTURES / "mixed-nccl"), "-o", "nagios"]) == 2
    capsys.readouterr()
