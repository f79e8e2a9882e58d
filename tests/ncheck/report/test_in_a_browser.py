"""The HTML report in Chromium: search, filter, fold, copy, a phone's first screen; no script from what nodes wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.fleet.recording import load
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.report.html import as_html
from ncheck.settings import Settings

from tests.chromium import Browser, browsing

from .test_html import evil

FIXTURES = Path(__file__).parents[3] / "fixtures"
pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from browsing(tmp_path_factory.mktemp("profile"))


def page_of(folder: Path, name: str) -> Path:
    """Write the page of a recorded cluster."""
    return written(folder, judge_again(load(FIXTURES / name), Settings(), Silent()))


def written(folder: Path, report: Report) -> Path:
    path = folder / "report.html"
    path.write_text(as_html(report), encoding="ascii")
    return path


SHOWN = "[...document.querySelectorAll('article.finding')].filter(one => !one.hidden).map(one => one.id).join()"


def test_a_word_and_a_kind_leave_the_findings_that_have_them(browser: Browser, tmp_path: Path) -> None:
    browser.open(page_of(tmp_path, "demo"))
    assert browser.value(SHOWN) == "NC111,NC201,NC304,NC402,NC130,NC356"
    typed = "const box = document.querySelector('.tools input'); box.value = %r; box.dispatchEvent(new Event('input'))"
    browser.value("{" + typed % "polling gpu04" + "}")
    assert browser.value(SHOWN) == "NC402"
    browser.value("{" + typed % "" + "}")
    browser.value("document.querySelector('.tools button[value=error]').click()")
    assert browser.value(SHOWN) == "NC130,NC356"


def test_a_page_of_a_check_unfolds_and_a_command_is_copied(browser: Browser, tmp_path: Path) -> None:
    browser.open(page_of(tmp_path, "mixed-nccl"))
    height = "document.querySelector('#NC201 details.page').getBoundingClientRect().height"
    folded = browser.value(height)
    browser.value("document.querySelector('#NC201 details.page summary').click()")
    assert browser.value(height) > 4 * folded
    assert "Why it matters" in browser.value("document.querySelector('#NC201 details.page').innerText")
    browser.ask("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.value("""new Promise(done => {
        const button = document.querySelector('#NC201 .copy');
        new MutationObserver(() => done()).observe(button, {childList: true});
        button.click();
    })""")
    assert browser.value("document.querySelector('#NC201 .copy').textContent") == "copied"
    unusable = "[...document.querySelectorAll('[data-unusable] .copy')].every(one => one.disabled && one.textContent)"
    assert browser.value(unusable) is True
    assert browser.value("document.querySelector('[data-unusable] .copy').textContent") == "not usable: fix NC201 first"


def test_a_node_that_was_not_reached_is_no_wall_of_rows(browser: Browser, tmp_path: Path) -> None:
    browser.open(page_of(tmp_path, "one-node-down"))
    assert browser.value("document.querySelectorAll('table.matrix tbody tr').length") < 12
    assert browser.value("document.documentElement.scrollHeight") < 4000


def test_the_first_screen_of_a_phone_is_the_answer(browser: Browser, tmp_path: Path) -> None:
    browser.open(page_of(tmp_path, "demo"), width=390, height=844)
    top = "document.querySelector(%r).getBoundingClientRect().top"
    assert browser.value(top % "h1") < 60
    assert browser.value(top % ".figures") < browser.value(top % ".run")
    assert browser.value(top % "article.finding h3") < 844
    plan = "Math.min(...[...document.querySelectorAll('.unusable pre')].map(one => one.getBoundingClientRect().top %s))"
    below = "- one.previousElementSibling.getBoundingClientRect().bottom"
    assert browser.value(plan % below) >= 0  # "not usable: ..." leaves the line its whole width
    assert browser.value("document.documentElement.scrollWidth") <= 390


def test_what_a_node_wrote_runs_nothing_and_the_page_asks_for_nothing(
    browser: Browser, tmp_path: Path, reports: dict[str, Report]
) -> None:
    report = evil(reports["healthy"])
    mean = "<img src=x onerror=window.hit=1></script><script>window.hit=2</script>"
    finding = replace(report.findings[0], message=mean, fix=mean, evidence=(mean,))
    browser.open(written(tmp_path, replace(report, findings=(finding,))))
    assert browser.value("window.hit") is None
    assert mean in browser.value("document.querySelector('article.finding').innerText")
    asked = [event["params"]["request"]["url"] for event in browser.events
             if event.get("method") == "Network.requestWillBeSent"]  # fmt: skip
    assert [url for url in asked if not url.startswith("file:///")] == []
    wrong = ("Runtime.exceptionThrown", "Log.entryAdded")
    assert [event for event in browser.events if event.get("method") in wrong] == []
