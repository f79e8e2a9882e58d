"""--docs URL: the report leads to the page of a check in the site that make site writes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from ncheck import as_html, replay
from ncheck.errors import SettingsError
from ncheck.model.report import Report
from ncheck.report import show
from ncheck.steps.registry import load_checks
from ncheck.triage.causes import NAMED

SITE = "https://docs.example.org/ncheck/1.0"
RECORDING = Path(__file__).parents[3] / "fixtures" / "port-polling"


@pytest.fixture(scope="module")
def report() -> Report:
    return replay(RECORDING, docs=f"{SITE}/")


def test_the_console_and_the_page_lead_to_the_site(report: Report) -> None:
    stream = io.StringIO()
    show(report, "console", stream, {})
    assert f"to read more: {SITE}/checks/NC402/index.html; to let it pass: --ignore NC402=" in stream.getvalue()
    assert f'<a href="{SITE}/checks/NC402/index.html">About NC402</a>' in as_html(report)


def test_without_it_nothing_leads_out_of_the_report() -> None:
    plain = replay(RECORDING)
    assert {one.page for one in plain.findings} == {f"ncheck explain {one.code}" for one in plain.findings}
    assert '<a href="http' not in as_html(plain)
    assert "<summary>About NC402</summary>" in as_html(plain)


def test_the_site_has_the_page_of_each_check_and_cause(tmp_path: Path, report: Report) -> None:
    import build_site

    build_site.write_sources(tmp_path)
    written = {str(path.relative_to(tmp_path).with_suffix(".html")) for path in tmp_path.rglob("*.md")}
    assert {one.page.removeprefix(f"{SITE}/") for one in report.findings} <= written
    assert {f"checks/{one.code}/index.html" for one in load_checks().listed} <= written
    assert {f"causes/{name}/index.html" for name in NAMED} <= written


@pytest.mark.parametrize("end", ["?x=y", "/#top", "?"])
def test_an_address_behind_which_no_path_can_be_written_is_refused(end: str) -> None:
    with pytest.raises(SettingsError, match=r"docs.*: expected the URL of a folder, without \? and #"):
        replay(RECORDING, docs=f"{SITE}{end}")
