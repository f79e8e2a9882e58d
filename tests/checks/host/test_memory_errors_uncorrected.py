"""NC655: memory that has lost data; corrected errors are healthy."""

from __future__ import annotations

from ncheck.facts.hardware_errors import HardwareErrorFacts, MemoryErrorCounts, MemoryModule
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.memory_errors_uncorrected import memory_errors_uncorrected


def node(memory: MemoryErrorCounts | Unread | None) -> Facts:
    return {HardwareErrorFacts: HardwareErrorFacts(None, memory)}


def test_the_module_is_named() -> None:
    modules = (MemoryModule("CPU0_DIMM_C1", "channel 2 slot 1", 2, 9), MemoryModule("CPU1_DIMM_A1", "", 0, 4))
    assert judge([memory_errors_uncorrected], {"n1": node(MemoryErrorCounts(8, 2, 13, modules))}).findings == [
        Finding("NC655", "memory-errors-uncorrected", Severity.ERROR, ("n1",),
                "memory has 2 errors that could not be corrected (CPU0_DIMM_C1)",
                ("CPU0_DIMM_C1 (channel 2 slot 1): uncorrected 2, corrected 9",), "sudo dmidecode -t memory",
                kind="look", summary="uncorrected memory errors"),
    ]  # fmt: skip


def test_an_error_of_which_the_module_is_not_known_counts() -> None:
    found = judge([memory_errors_uncorrected], {"n1": node(MemoryErrorCounts(8, 1, 0, ()))}).findings
    assert [one.message for one in found] == ["memory has an error that could not be corrected"]


def test_corrected_errors_pass_and_what_does_not_count_is_skipped_or_unknown() -> None:
    corrected = MemoryErrorCounts(8, 0, 7, (MemoryModule("A1", "", 0, 7), MemoryModule("B1", "", None, None)))
    nodes = {"n1": node(corrected), "n2": node(None), "n3": node(Unread("ue_count cannot be read"))}
    outcomes = [verdict.outcome for verdict in judge([memory_errors_uncorrected], nodes).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED, Outcome.UNKNOWN]
