"""The flake rule, under `pytest --flake-rule`: a failed test that depends on the machine runs once more, alone.

That is a lab, ssh or slow test, or one that started a process or opened a connection while it ran. If it passes at the
end, it is flaky: listed with both outputs, and counted as passed. More than three flaky tests are failures, because the
cause is then more than a busy machine. No other test is run again.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from textwrap import indent

import pytest
from _pytest.terminal import TerminalReporter

MARKERS = ("lab", "ssh", "slow")  # tests with real processes on real networks, on a machine that may be busy
EVENTS = frozenset(("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "socket.connect", "socket.bind"))
MOST_FLAKY = 3  # in one run
MOST_AGAIN = 10  # where more fail, something is broken: none runs again
LONGEST = 600  # seconds that a test may take when it runs again


@dataclass
class Failed:
    """A test that failed: its reports, and what its second run printed."""

    reports: list[pytest.TestReport] = field(default_factory=list)
    passed_alone: bool = False
    second: str = ""


def pytest_addoption(parser: pytest.Parser) -> None:
    text = f"run a failed test of processes or networks once more at the end, alone; more than {MOST_FLAKY} flakes fail"
    parser.addoption("--flake-rule", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("flake_rule"):
        config.pluginmanager.register(FlakeRule(config))


class FlakeRule:
    """In a worker of xdist it only says which failures count; the process that started the workers runs them again."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.failed: dict[str, Failed] = {}
        self.verdict = ""
        self.uses_machine = False  # whether the test that runs has caused one of EVENTS
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _: object) -> None:
        self.uses_machine = self.uses_machine or event in EVENTS

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.uses_machine = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        marked = any(item.get_closest_marker(name) for name in MARKERS)
        vars(report)["may_be_flaky"] = marked or self.uses_machine
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and getattr(report, "may_be_flaky", False):
            self.failed.setdefault(report.nodeid, Failed()).reports.append(report)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run the failed tests again once the loop has ended, with all workers. ^C and -x end it by an exception."""
        result = yield
        if self.failed and not self.is_worker:
            self._run_again(session)
        return result

    def _run_again(self, session: pytest.Session) -> None:
        if len(self.failed) > MOST_AGAIN:
            self.verdict = f"{len(self.failed)} tests of processes and networks failed: too many to run again"
            return
        for test, failed in self.failed.items():
            failed.passed_alone, failed.second = self._alone(test)
        flaky = [test for test, failed in self.failed.items() if failed.passed_alone]
        self.verdict = f"{len(flaky)} flaky: failed in this run, passed when run again alone"
        if len(flaky) > MOST_FLAKY:
            self.verdict += f"; more than {MOST_FLAKY} are failures"
            return
        for test in flaky:
            self._count_as_passed(session, test)

    def _alone(self, test: str) -> tuple[bool, str]:
        """Run one test in a pytest of its own. A test that is skipped this time has not passed."""
        argv = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-rP", test]
        try:
            run = subprocess.run(
                argv, cwd=self.config.rootpath, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=LONGEST,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            return False, f"it did not end within {LONGEST} s\n{(error.stdout or b'').decode(errors='replace')}"
        # ============= 1 passed in 0.01s =============
        return run.returncode == 0 and bool(re.search(r"^=+ 1 passed\b", run.stdout, re.MULTILINE)), run.stdout

    def _count_as_passed(self, session: pytest.Session, test: str) -> None:
        reports = self.failed[test].reports
        session.testsfailed -= len(reports)
        stats = self._terminal().stats
        for category in ("failed", "error"):
            stats[category] = [report for report in stats.get(category, []) if report not in reports]
        if test not in {report.nodeid for report in stats.get("passed", [])}:
            stats.setdefault("passed", []).extend(reports[:1])

    def _terminal(self) -> TerminalReporter:
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(terminal, TerminalReporter)
        return terminal

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print both outputs of each test that ran again; pytest's own closing line follows."""
        if not self.verdict:
            return
        terminalreporter.section("tests of processes and networks that failed")
        for test, failed in self.failed.items():
            if failed.second:
                terminalreporter.section(f"{'flaky' if failed.passed_alone else 'failed twice'}: {test}", "-")
                for report in failed.reports:
                    terminalreporter.line(report.longreprtext)
                    for title, text in report.sections:
                        terminalreporter.line(f"{title}:\n{text}")
                terminalreporter.section("when run again alone", ".")
                terminalreporter.line(indent(failed.second, "  | "))  # its closing line is not this run's
        for test, failed in self.failed.items():
            if failed.passed_alone:
                terminalreporter.line(f"FLAKY {test}")
        terminalreporter.line(self.verdict)
