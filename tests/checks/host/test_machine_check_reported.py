"""NC656: errors of processors and memory in the kernel log."""

from __future__ import annotations

from ncheck.facts.hardware_errors import HardwareErrorFacts, MemoryErrorCounts
from ncheck.facts.hardware_log import HardwareLogFacts
from ncheck.facts.kernel_log import Trouble
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.machine_check_reported import machine_check_reported
from ncheck_checks.host.memory_errors_uncorrected import memory_errors_uncorrected

LINE = "Mar 02 08:00:01 gpu07 kernel: EDAC MC0: 1 UE memory read error on DIMM_B2 (channel:1 slot:0)"
LOOK = "sudo journalctl -k -b --no-pager | grep -Ei 'machine check|hardware error|edac|memory failure|storm'"


def node(log: HardwareLogFacts) -> dict[str, Facts]:
    return {"n1": {HardwareLogFacts: log}}


def test_lost_memory_is_an_error_with_its_time() -> None:
    assert judge([machine_check_reported], node(HardwareLogFacts((Trouble("memory", 3, "first", LINE),)))).findings == [
        Finding("NC656", "machine-check-reported", Severity.ERROR, ("n1",),
                "the kernel reported errors of memory that could not be corrected (3 lines); last at Mar 02 08:00:01",
                ("first", LINE), LOOK, kind="look", summary="errors of memory"),
    ]  # fmt: skip


def test_the_rest_are_warnings() -> None:
    log = HardwareLogFacts(
        (Trouble("a processor", 1, "a", "a"),), (Trouble("the hardware", 1, "b", "b"),),
        (Trouble("corrected errors", 2, "c", "c"),),
    )  # fmt: skip
    found = judge([machine_check_reported], node(log)).findings
    assert [(one.severity, one.message) for one in found] == [
        (Severity.WARNING, "the kernel reported errors of a processor that could not be corrected (1 line)"),
        (Severity.WARNING, "the firmware has kept an error of the hardware from before this boot (1 line)"),
        (Severity.WARNING, "the kernel reported a storm of corrected errors (2 lines)"),
    ]


def test_what_the_memory_controller_has_counted_explains_the_lines_of_memory() -> None:
    errors = HardwareErrorFacts(None, MemoryErrorCounts(2, 1, 0, ()))
    log = HardwareLogFacts((Trouble("memory", 1, LINE, LINE), Trouble("a processor", 1, "a", "a")))
    nodes: dict[str, Facts] = {"n1": {HardwareLogFacts: log, HardwareErrorFacts: errors}}
    found = judge([memory_errors_uncorrected, machine_check_reported], nodes).findings
    assert [(one.code, one.see) for one in found] == [("NC655", ()), ("NC656", ("NC655",)), ("NC656", ())]


def test_it_is_silent_about_other_lines() -> None:
    log = HardwareLogFacts(lockups=(Trouble("RCU stall", 1, "a", "a"),), pcie=(Trouble("0000:3a:01.0", 1, "a", "a"),))
    assert [verdict.outcome for verdict in judge([machine_check_reported], node(log)).verdicts] == [Outcome.PASSED]
