"""NC659: a shutdown that systemd has scheduled."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.maintenance import Shutdown, ShutdownFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.shutdown_scheduled import shutdown_scheduled

AT = 1764166800.0  # 2025-11-26 14:20 UTC
LOOK = "cat /run/systemd/shutdown/scheduled"


def nodes(*shutdowns: Shutdown | None) -> dict[str, Facts]:
    return {f"n{number}": {ShutdownFacts: ShutdownFacts(one)} for number, one in enumerate(shutdowns)}


def test_it_names_the_time_and_what_is_left_and_hours_ahead_it_warns() -> None:
    reboot = Shutdown(AT, 2400.0, "reboot", "kernel update")
    found = judge(
        [shutdown_scheduled],
        nodes(reboot, None, Shutdown(AT, 18000.0, "poweroff"), replace(reboot, at=AT + 9, left=2409.0)),
    ).findings
    summary = "a shutdown is scheduled"
    assert found == [
        Finding("NC659", "shutdown-scheduled", Severity.ERROR, ("n0", "n3"),
                "a reboot is scheduled for 2025-11-26 14:20 UTC, in 40 min",
                ("message to the users: kernel update",), LOOK, summary=summary, kind="look"),
        Finding("NC659", "shutdown-scheduled", Severity.WARNING, ("n2",),
                "a power-off is scheduled for 2025-11-26 14:20 UTC, in 5 h",
                (), LOOK, summary=summary, kind="look"),
    ]  # fmt: skip


def test_a_time_that_has_passed_is_left_over() -> None:
    judgement = judge([shutdown_scheduled], nodes(Shutdown(AT, -1.0, "reboot"), None))
    assert {verdict.outcome for verdict in judgement.verdicts} == {Outcome.PASSED}
