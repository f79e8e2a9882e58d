"""NC661: corrected errors of PCIe links and memory are normal; what has far more of them than all others is named."""

from __future__ import annotations

from ncheck.facts.error_counters import ErrorCountersFacts
from ncheck.facts.hardware_errors import HardwareErrorFacts, MemoryErrorCounts, PcieErrorCounts, PcieErrors
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.finding import Outcome
from ncheck_checks.host.corrected_errors_stand_out import corrected_errors_stand_out as check

DAY = 86_400.0
GPU = "0000:5d:00.0"


def node(memory: int = 0, **corrected: int) -> Facts:
    devices = {GPU: PcieErrors(0x0302, 0x10DE, corrected=corrected)} if corrected else {}
    errors = HardwareErrorFacts(PcieErrorCounts(40, devices), MemoryErrorCounts(2, 0, memory, ()))
    return {HardwareErrorFacts: errors, ErrorCountersFacts: ErrorCountersFacts(12 * DAY, {})}


def test_a_link_and_a_memory_that_correct_far_more_than_all_others_are_named() -> None:
    nodes = {
        "n1": node(),
        "n2": node(3, RxErr=2),
        "n3": node(9000),
        "n4": node(1, BadTLP=5000, RxErr=40),
        "n5": node(2),
    }
    link, memory = judge([check], nodes).findings
    assert (link.nodes, link.message, link.fix) == (
        ("n4",),
        f"{GPU} counted 5040 corrected PCIe errors in 12 days (420 per day); the median of 199 others is 0",
        f"grep . /sys/bus/pci/devices/{GPU}/aer_dev_correctable",
    )
    assert (memory.nodes, memory.message) == (
        ("n3",),
        "memory counted 9000 corrected memory errors in 12 days (750 per day); the median of 4 others is 0.12",
    )


def test_small_numbers_requests_that_no_device_knows_and_what_all_have_are_no_finding() -> None:
    for nodes in (
        {f"n{number}": node(number, RxErr=number * 5) for number in range(8)},
        {f"n{number}": node(NonFatalErr=90_000 if number == 3 else 0) for number in range(8)},
        {f"n{number}": node(5000 + number, BadTLP=4000 + number) for number in range(8)},
    ):
        assert judge([check], nodes).findings == []


def test_nodes_that_count_nothing_are_skipped() -> None:
    silent: Facts = {
        HardwareErrorFacts: HardwareErrorFacts(None, None),
        ErrorCountersFacts: ErrorCountersFacts(1.0, {}),
    }
    (verdict,) = judge([check], {"n1": silent}).verdicts
    assert verdict.outcome is Outcome.SKIPPED
