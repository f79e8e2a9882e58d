"""NC507: Xids that programs cause are a warning."""

from __future__ import annotations

from ncheck.facts.gpu_log import KernelLogFacts, XidEvent
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck_checks.gpus.gpu_xid_of_program import gpu_xid_of_program

FAULT = "NVRM: Xid (PCI:0000:91:00): 31, pid=1234, name=python, MMU Fault"


def log(*xids: int) -> dict[str, Facts]:
    return {"n1": {KernelLogFacts: KernelLogFacts(tuple(XidEvent("0000:91:00", xid, FAULT) for xid in xids), "dmesg")}}


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
    nodes: dict[str, Facts] = {"n1": {KernelLogFacts: KernelLogFacts((XidEvent("0018:01:00.0", 145, line),), "dmesg")}}
    assert [one.summary for one in judge([gpu_xid_of_program], nodes).findings] == ["Xid 145 of a GPU"]


def test_it_is_silent_about_broken_gpus_and_about_what_needs_nothing() -> None:
    assert judge([gpu_xid_of_program], log(79, 63, 92)).findings == []


def test_it_is_silent_on_a_clean_log() -> None:
    assert judge([gpu_xid_of_program], log()).findings == []
