"""NC657: CPUs that hung, by the kernel log."""

from __future__ import annotations

from ncheck.facts.hardware_log import HardwareLogFacts
from ncheck.facts.kernel_log import Trouble
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.cpu_lockup_reported import cpu_lockup_reported

FIRST = "[5022.100000] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4021]"
LAST = "[5050.100000] watchdog: BUG: soft lockup - CPU#3 stuck for 48s! [python3:4021]"


def test_each_kind_is_named_with_its_last_time() -> None:
    log = HardwareLogFacts(lockups=(Trouble("soft lockup", 2, FIRST, LAST),))
    nodes: dict[str, Facts] = {"n1": {HardwareLogFacts: log}}
    assert judge([cpu_lockup_reported], nodes).findings == [
        Finding("NC657", "cpu-lockup-reported", Severity.WARNING, ("n1",),
                "the kernel reported a soft lockup 2 times: a CPU hung; last at [5050.100000]", (FIRST, LAST),
                "sudo journalctl -k -b --no-pager | grep -Ei -A20 'lockup|stall'", kind="look", summary="a CPU hung"),
    ]  # fmt: skip


def test_it_is_silent_about_other_lines() -> None:
    nodes: dict[str, Facts] = {"n1": {HardwareLogFacts: HardwareLogFacts(storms=(Trouble("a", 1, "a", "a"),))}}
    assert [verdict.outcome for verdict in judge([cpu_lockup_reported], nodes).verdicts] == [Outcome.PASSED]
