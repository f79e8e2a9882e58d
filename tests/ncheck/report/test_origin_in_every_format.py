"""When, where, by whom and how a report was made is in each format."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from ncheck.model.report import Report
from ncheck.report import show
from ncheck.settings import FORMATS

TIMES = {"junit": "2026-11-22T13:04:05", "openmetrics": "1795352645", "json": "2026-11-22T14:04:05+01:00"}


@pytest.mark.parametrize("form", FORMATS)
def test_a_report_says_its_time_host_user_command_and_version(form: str, reports: dict[str, Report]) -> None:
    report = replace(
        reports["mixed_nccl"], time="2026-11-22T14:04:05+01:00", host="head7", user="ada", command="ncheck nodes.txt"
    )
    stream = io.StringIO()
    show(report, form, stream, {})
    text = stream.getvalue().replace("%3A", ":")
    wanted = ("0.1.0", TIMES.get(form, "2026-11-22 14:04:05+01:00"), "head7", "ada", "ncheck nodes.txt")
    assert [word for word in wanted if word not in text] == []


@pytest.mark.parametrize("form", [one for one in FORMATS if one not in ("json", "openmetrics")])
def test_a_report_says_to_which_checks_it_was_limited(form: str, reports: dict[str, Report]) -> None:
    def written(report: Report) -> str:
        stream = io.StringIO()
        show(report, form, stream, {})
        return stream.getvalue().replace("%2C", ",")

    words = 'name="ncheck.select" value="NC4,versions"' if form == "junit" else "only NC4, versions checked"
    assert words in written(replace(reports["healthy"], select=("NC4", "versions")))
    whole = written(reports["healthy"])
    assert "only NC4" not in whole
    assert "ncheck.select" not in whole


@pytest.mark.parametrize("form", ["console", "concise", "table", "html", "markdown", "github", "nagios"])
def test_a_run_of_some_checks_is_not_called_ready(form: str, reports: dict[str, Report]) -> None:
    """The rest of the cluster may be broken. An error of some checks is one of the cluster."""

    def written(report: Report) -> str:
        stream = io.StringIO()
        show(report, form, stream, {})
        return stream.getvalue().replace("%2C", ",")

    some = {name: written(replace(reports[name], select=("NC4", "NC5"))) for name in ("healthy", "hostile")}
    assert "Only NC4, NC5 checked: 9 checks passed, 1 skipped" in some["healthy"]
    assert "Only NC4, NC5 checked, with warnings: " in some["hostile"]
    assert [text for text in some.values() if "Ready: " in text or "Ready, " in text] == []
    assert "Not ready: " in written(replace(reports["mixed_nccl"], select=("NC2",)))
    many = tuple(f"NC{number}" for number in range(401, 409))
    assert "Only some checks ran: 9 checks passed" in written(replace(reports["healthy"], select=many))
    whole = written(reports["healthy"])
    assert "Ready: 9 checks passed, 1 skipped" in whole
    assert "Only " not in whole
