"""NC539: what broke earlier and works now is a warning."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure, GpuHealthFacts
from ncheck.facts.gpu_log import KernelLogFacts, XidEvent
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.xids import OFF_THE_BUS
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_xid_repaired import gpu_xid_repaired
from ncheck_checks.gpus.gpu_xid_reported import gpu_xid_reported

from .health import h100

LINE = "Mar 02 09:14:55 n1 kernel: NVRM: Xid (PCI:0000:0f:00): 119, Timeout after 6s of waiting for RPC response"


def node(*events: XidEvent, action: int | None = None) -> dict[str, Facts]:
    health = GpuHealthFacts((h100(0, action=action),))
    return {"n1": {KernelLogFacts: KernelLogFacts(events, "dmesg"), GpuHealthFacts: health}}


def test_a_gpu_that_needs_nothing_any_more_is_worth_a_look() -> None:
    assert judge([gpu_xid_repaired], node(XidEvent("0000:0f:00.0", 119, LINE), action=0)).findings == [
        Finding("NC539", "gpu-xid-repaired", Severity.WARNING, ("n1",),
                "the driver reported Xid 119 for the GPU at 0000:0f:00.0 (119: the GPU's system processor (GSP) does "
                "not answer); NVIDIA's advice: reset the GPU; last at Mar 02 09:14:55", (LINE,),
                "sudo journalctl -k -g NVRM", kind="look", summary="Xid 119 of a GPU"),
    ]  # fmt: skip


def test_so_is_one_from_before_the_driver_was_loaded_again() -> None:
    nodes = node(XidEvent("0000:0f:00.0", 119, LINE, earlier=True))
    assert [one.code for one in judge([gpu_xid_repaired], nodes).findings] == ["NC539"]


def test_a_gpu_that_fell_off_the_bus_and_answers_now_was_reset() -> None:
    nodes = node(XidEvent("0000:0f:00.0", OFF_THE_BUS, LINE))
    assert [one.code for one in judge([gpu_xid_repaired, gpu_xid_reported], nodes).findings] == ["NC539"]
    lost = GpuHealthFacts((h100(0, action=None, errors={"ecc": Failure(15, "GPU is lost")}),))
    nodes["n1"] = {**nodes["n1"], GpuHealthFacts: lost}
    assert [one.code for one in judge([gpu_xid_repaired, gpu_xid_reported], nodes).findings] == ["NC506"]


def test_it_is_silent_about_what_is_broken_now_about_programs_and_on_a_clean_log() -> None:
    broken, program = XidEvent("0000:0f:00.0", 119, LINE), XidEvent("0000:0f:00.0", 13, LINE, earlier=True)
    nodes = {**node(broken, program), "n2": node()["n1"]}
    nodes["n3"] = {KernelLogFacts: KernelLogFacts((), "dmesg"), GpuHealthFacts: Absent("no NVIDIA GPU")}
    assert judge([gpu_xid_repaired], nodes).findings == []
