"""NC506: Xids that call for a reset, a restart or a technician are errors."""

from __future__ import annotations

from ncheck.facts.kernel_log import KernelLogFacts, XidEvent
from ncheck.facts.login import ListingFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.gpus.gpu_xid_reported import gpu_xid_reported

LISTED = ListingFacts(("nodes.txt:1",))
OFF_THE_BUS = "NVRM: Xid (PCI:0000:91:00): 79, pid=1234, name=python, GPU has fallen off the bus."
DOUBLE_BIT = "NVRM: Xid (PCI:0000:3b:00): 48, pid=77, An uncorrectable double bit error (DBE) has been detected"


def log(*events: tuple[str, int, str]) -> dict[str, Facts]:
    facts = {KernelLogFacts: KernelLogFacts(tuple(XidEvent(*event) for event in events), "dmesg"), ListingFacts: LISTED}
    return {"n1": facts}


def test_each_gpu_is_named_with_what_was_reported_and_what_to_do() -> None:
    nodes = log(("0000:91:00", 79, OFF_THE_BUS), ("0000:3b:00", 48, DOUBLE_BIT), ("0000:3b:00", 48, DOUBLE_BIT))
    assert judge([gpu_xid_reported], nodes).findings == [
        Finding("NC506", "gpu-xid-reported", Severity.ERROR, ("n1",),
                "the driver reported Xid 79 for the GPU at 0000:91:00", (OFF_THE_BUS,),
                "sudo systemctl reboot", summary="Xid 79 of a GPU"),
        Finding("NC506", "gpu-xid-reported", Severity.ERROR, ("n1",),
                "the driver reported Xid 48 (2 times) for the GPU at 0000:3b:00", (DOUBLE_BIT,),
                "sudo nvidia-smi --gpu-reset -i 0000:3b:00", summary="Xid 48 (2 times) of a GPU"),
    ]  # fmt: skip


def test_it_is_silent_about_programs_and_about_what_needs_nothing() -> None:
    assert judge([gpu_xid_reported], log(("0000:91:00", 13, "..."), ("0000:91:00", 63, "..."))).findings == []


def test_it_is_silent_and_skipped_where_only_root_may_read_the_log() -> None:
    unread = Unread("dmesg: permission denied", needs_root=True)
    nodes: dict[str, Facts] = {"n1": {KernelLogFacts: unread, ListingFacts: LISTED}}
    assert [(v.outcome, v.needs_root) for v in judge([gpu_xid_reported], nodes).verdicts] == [(Outcome.SKIPPED, True)]


def test_on_this_machine_the_fix_needs_no_ssh() -> None:
    nodes = {"n1": {**log(("0000:91:00", 79, OFF_THE_BUS))["n1"], ListingFacts: ListingFacts(("local",))}}
    assert [found.fix for found in judge([gpu_xid_reported], nodes).findings] == ["sudo systemctl reboot"]
