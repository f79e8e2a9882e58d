"""NC550: PCIe errors that mean damage; those that every search for devices makes are none."""

from __future__ import annotations

from typing import Any

from ncheck.facts.gpu_health import Failure, GpuHealth, GpuHealthFacts
from ncheck.facts.gpu_log import KernelLogFacts, XidEvent
from ncheck.facts.hardware_errors import HardwareErrorFacts, PcieErrorCounts, PcieErrors
from ncheck.facts.hardware_log import HardwareLogFacts
from ncheck.facts.kernel_log import Trouble
from ncheck.facts.pci import NVIDIA, PciDevice, PciFacts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_unusable import gpu_unusable
from ncheck_checks.gpus.gpu_xid_reported import gpu_xid_reported
from ncheck_checks.gpus.pcie_errors_uncorrected import pcie_errors_uncorrected
from ncheck_checks.infiniband.hca_trouble_reported import hca_trouble_reported

GPU, PORT, HCA = "0000:3b:00.0", "0000:3a:01.0", "0000:3c:00.0"
LINE = f"[913.250000] pcieport {PORT}: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data Link Layer"


def node(errors: dict[str, PcieErrors] | None, **log: Any) -> dict[type, Any]:
    above = ("pci0000:3a", PORT)
    return {
        HardwareErrorFacts: HardwareErrorFacts(None if errors is None else PcieErrorCounts(54, errors), None),
        HardwareLogFacts: HardwareLogFacts(**log),
        KernelLogFacts: Unread("this user cannot read the kernel log", needs_root=True),
        GpuHealthFacts: Absent("no NVIDIA GPU"),
        PciFacts: PciFacts((PciDevice(GPU, 0x0302, NVIDIA, 0x2330, above=above),)),
    }


def bridge(**counts: int) -> PcieErrors:
    return PcieErrors(0x0604, 0x8086, {}, {}, counts)


def test_damage_is_named_with_its_device_and_the_time_where_the_log_can_be_read() -> None:
    errors = {PORT: bridge(SDES=1, DLP=2), GPU: PcieErrors(0x0302, NVIDIA, {"RxErr": 9}, {"CmpltTO": 1}, {})}
    found = judge([pcie_errors_uncorrected], {"n1": node(errors, pcie=(Trouble(PORT, 1, LINE, LINE),))}).findings
    assert found == [
        Finding("NC550", "pcie-errors-uncorrected", Severity.WARNING, ("n1",),
                "the PCIe bridge at 0000:3a:01.0 has counted PCIe errors that could not be corrected: 2 x data link "
                "protocol error, 1 x link lost by surprise; last at [913.250000]", (LINE,),
                "grep -v ' 0$' /sys/bus/pci/devices/0000:3a:01.0/aer_dev_*", kind="look",
                summary="PCIe errors of a PCIe bridge"),
        Finding("NC550", "pcie-errors-uncorrected", Severity.WARNING, ("n1",),
                "the GPU at 0000:3b:00.0 has counted PCIe errors that could not be corrected: 1 x request without an "
                "answer (completion timeout)", (),
                "grep -v ' 0$' /sys/bus/pci/devices/0000:3b:00.0/aer_dev_*", kind="look",
                summary="PCIe errors of a GPU"),
    ]  # fmt: skip


def test_errors_of_a_device_that_is_broken_and_of_its_bridge_follow_from_that() -> None:
    lost = node({PORT: bridge(SDES=1), HCA: bridge(SDES=1), "0000:17:00.0": bridge(SDES=1)},
                adapters=(Trouble(HCA, 1, "a", "a"),))  # fmt: skip
    lost[KernelLogFacts] = KernelLogFacts((XidEvent(GPU, 79, "GPU has fallen off the bus"),), "dmesg")
    found = judge([gpu_xid_reported, hca_trouble_reported, pcie_errors_uncorrected], {"n1": lost}).findings
    assert [one.see for one in found if one.code == "NC550"] == [("NC506",), ("NC431",), ()]


def test_without_the_log_they_follow_from_a_gpu_that_does_not_answer() -> None:
    for health in (
        GpuHealthFacts((), unlisted={GPU: "Input/output error"}),
        GpuHealthFacts((GpuHealth(3, GPU, errors={"temperature": Failure(15, "GPU is lost")}),)),
    ):
        facts = {**node({PORT: bridge(SDES=1), HCA: bridge(SDES=1)}), GpuHealthFacts: health}
        found = judge([gpu_unusable, pcie_errors_uncorrected], {"n1": facts}).findings
        assert [(one.code, one.see) for one in found] == [("NC520", ()), ("NC550", ("NC520",)), ("NC550", ())]


def test_a_node_whose_devices_were_not_all_read_is_unknown_unless_one_of_those_that_were_is_damaged() -> None:
    def verdict(errors: dict[str, PcieErrors]) -> tuple[Outcome, str]:
        cut = {**node(errors), HardwareErrorFacts: HardwareErrorFacts(PcieErrorCounts(512, errors, 40), None)}
        (one,) = judge([pcie_errors_uncorrected], {"n1": cut}).verdicts
        return one.outcome, one.reason

    assert verdict({}) == (Outcome.UNKNOWN, "40 PCIe devices were too many for one answer")
    assert verdict({PORT: bridge(SDES=1)})[0] is Outcome.FAILED


def test_refused_requests_corrected_errors_and_devices_that_no_job_uses_are_healthy() -> None:
    healthy = {
        GPU: PcieErrors(0x0302, NVIDIA, {"RxErr": 900, "NonFatalErr": 2}, {"UnsupReq": 40, "ACSViol": 1}, {}),
        HCA: PcieErrors(0x0207, 0x15B3, {}, {"CmpltAbrt": 1, "UnxCmplt": 1}, {"UnsupReq": 1}),
        "0000:03:00.0": PcieErrors(0x0300, 0x1A03, {}, {}, {"DLP": 1}),
    }
    nodes = {"healthy": node(healthy), "none": node({}), "virtual": node(None)}
    outcomes = [verdict.outcome for verdict in judge([pcie_errors_uncorrected], nodes).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.PASSED, Outcome.SKIPPED]
