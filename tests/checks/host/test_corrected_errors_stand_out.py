"""NC661: corrected errors of PCIe links and memory are normal; what has far more of them than all others is named."""

from __future__ import annotations

from ncheck.facts.error_counters import ErrorCountersFacts
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpu_log import KernelLogFacts
from ncheck.facts.hardware_errors import HardwareErrorFacts, MemoryErrorCounts, PcieErrorCounts, PcieErrors
from ncheck.facts.hardware_log import HardwareLogFacts
from ncheck.facts.pci import PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.gpus.pcie_errors_uncorrected import pcie_errors_uncorrected
from ncheck_checks.host.corrected_errors_stand_out import corrected_errors_stand_out as check
from ncheck_checks.host.memory_errors_uncorrected import memory_errors_uncorrected

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


def test_they_follow_from_errors_of_the_same_device_or_memory_that_could_not_be_corrected() -> None:
    for damaged, cause in ((GPU, ("NC550",)), ("0000:17:00.0", ())):
        counted = {GPU: PcieErrors(0x0302, 0x10DE, {"BadTLP": 5000})}
        counted[damaged] = PcieErrors(0x0302, 0x10DE, {"BadTLP": 5000} if damaged == GPU else {}, {}, {"DLP": 1})
        errors = HardwareErrorFacts(PcieErrorCounts(40, counted), MemoryErrorCounts(2, 1, 9000, ()))
        nodes: dict[str, Facts] = {f"n{number}": node() for number in range(5)}
        nodes["n0"] = {
            **nodes["n0"], HardwareErrorFacts: errors, PciFacts: Absent(""), KernelLogFacts: Absent(""),
            GpuHealthFacts: Absent(""), HardwareLogFacts: Absent(""),
        }  # fmt: skip
        checks = [pcie_errors_uncorrected, memory_errors_uncorrected, check]
        assert [(one.code, one.see) for one in judge(checks, nodes).findings] == [
            ("NC550", ()), ("NC655", ()), ("NC661", cause), ("NC661", ("NC655",)),
        ]  # fmt: skip


def test_small_numbers_requests_that_no_device_knows_and_what_all_have_are_no_finding() -> None:
    for nodes in (
        {f"n{number}": node(number, RxErr=number * 5) for number in range(8)},
        {f"n{number}": node(NonFatalErr=90_000 if number == 3 else 0) for number in range(8)},
        {f"n{number}": node(5000 + number, BadTLP=4000 + number) for number in range(8)},
    ):
        assert judge([check], nodes).findings == []


def test_a_node_whose_devices_were_not_all_read_is_unknown() -> None:
    nodes: dict[str, Facts] = {f"n{number}": node() for number in range(3)}
    cut = HardwareErrorFacts(PcieErrorCounts(512, {}, 40), MemoryErrorCounts(2, 0, 0, ()))
    nodes["n1"] = {**nodes["n1"], HardwareErrorFacts: cut}
    assert {one.nodes: (one.outcome, one.reason) for one in judge([check], nodes).joined} == {
        ("n0", "n2"): (Outcome.PASSED, ""),
        ("n1",): (Outcome.UNKNOWN, "40 PCIe devices were too many for one answer"),
    }


def test_nodes_that_count_nothing_are_skipped() -> None:
    silent: Facts = {
        HardwareErrorFacts: HardwareErrorFacts(None, None),
        ErrorCountersFacts: ErrorCountersFacts(1.0, {}),
    }
    (verdict,) = judge([check], {"n1": silent}).verdicts
    assert verdict.outcome is Outcome.SKIPPED
