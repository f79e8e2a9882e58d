"""NC507: Xids that programs cause are a warning."""

from __future__ import annotations

from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpu_log import KernelLogFacts, XidEvent
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_xid_of_program import gpu_xid_of_program

FAULT = "NVRM: Xid (PCI:0000:91:00): 31, pid=1234, name=python, MMU Fault"


def log(*xids: int) -> dict[str, Facts]:
    return read(*(XidEvent("0000:91:00", xid, FAULT) for xid in xids))


def read(*events: XidEvent) -> dict[str, Facts]:
    return {"n1": {KernelLogFacts: KernelLogFacts(events, "dmesg"), GpuHealthFacts: Unread("no NVML")}}


def test_a_programs_fault_is_named_and_so_is_a_number_that_no_list_has() -> None:
    assert judge([gpu_xid_of_program], log(31, 31, 999)).findings == [
        Finding("NC507", "gpu-xid-of-program", Severity.WARNING, ("n1",),
                "the driver reported Xid 31 (2 times), Xid 999 for the GPU at 0000:91:00 (31: a program used a memory "
                "address that it does not have; 999: not explained by NVIDIA's catalogue); NVIDIA's advice: restart "
                "the program, report it to the vendor if it returns", (FAULT, FAULT),
                "sudo journalctl -k -g NVRM", kind="look", summary="Xid 31 (2 times), Xid 999 of a GPU"),
    ]  # fmt: skip


def test_an_nvlink_error_of_blackwell_that_is_not_fatal_is_no_broken_gpu() -> None:
    line = "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)"
    found = judge([gpu_xid_of_program], read(XidEvent("0018:01:00.0", 145, line)))
    assert [one.summary for one in found.findings] == ["Xid 145 of a GPU"]


def test_it_is_silent_about_broken_gpus_and_about_what_needs_nothing() -> None:
    assert judge([gpu_xid_of_program], log(79, 63, 92)).findings == []


def test_it_is_silent_on_a_clean_log() -> None:
    assert judge([gpu_xid_of_program], log()).findings == []


def stopped(*lines: str) -> list[str]:
    events = read(*(XidEvent("0000:38:00.0", 13, line) for line in lines))
    return [one.message for one in judge([gpu_xid_of_program], events).findings]


STOPPED = ("Jan 21 04:41:44 n1 kernel: NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>', name=<unknown>, Graphics SM "
           "Warp Exception on (GPC 8, TPC 5, SM 1): Multiple Warp Errors")  # fmt: skip


TEST, LAST = "test the GPU (dcgmi diag -r 3)", "; last at Jan 21 17:02:44"


def test_a_unit_that_stops_a_second_program_within_a_day_is_to_be_tested() -> None:
    head = ("for the GPU at 0000:38:00.0 (13: a program did what the GPU cannot do, such as a wrong address "
            "(GPC 8, TPC 5: ")  # fmt: skip
    assert stopped(STOPPED) == [
        f"the driver reported Xid 13 {head}a program)); NVIDIA's advice: restart the program; last at Jan 21 04:41:44"
    ]
    assert stopped(STOPPED, STOPPED.replace("04:41", "17:02")) == [
        f"the driver reported Xid 13 (2 times) {head}hardware or software)); NVIDIA's advice: {TEST}{LAST}"
    ]


def test_an_nvlink_error_that_needs_nothing_is_not_reported() -> None:
    line = "NVRM: Xid (PCI:0018:01:00): 144, SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000004)"
    assert judge([gpu_xid_of_program], read(XidEvent("0018:01:00.0", 144, line))).findings == []
