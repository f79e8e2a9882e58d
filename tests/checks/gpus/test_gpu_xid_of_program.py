"""NC507: Xids that programs cause are a warning."""

from __future__ import annotations

from ncheck.facts.kernel_log import KernelLogFacts, XidEvent
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
                "the driver reported Xid 31 (2 times), Xid 999 for the GPU at 0000:91:00", (FAULT, FAULT),
                "sudo journalctl -k -g NVRM", kind="look", summary="Xid 31 (2 times), Xid 999 of a GPU"),
    ]  # fmt: skip


def test_it_is_silent_about_broken_gpus_and_about_what_needs_nothing() -> None:
    assert judge([gpu_xid_of_program], log(79, 63, 92)).findings == []


def test_it_is_silent_on_a_clean_log() -> None:
    assert judge([gpu_xid_of_program], log()).findings == []
