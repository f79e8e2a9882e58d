"""NC538: a fatal error of an NVSwitch is an error; one that is not fatal needs no action."""

from __future__ import annotations

from ncheck.facts.gpu_log import KernelLogFacts, SxidEvent
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nvswitch_error_reported import nvswitch_error_reported

FATAL = "[131453.740743] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"


def log(*events: SxidEvent) -> dict[str, Facts]:
    return {"n1": {KernelLogFacts: KernelLogFacts((), "dmesg", sxids=events)}}


def test_a_fatal_error_is_named_with_its_switch_and_time() -> None:
    event = SxidEvent("0000:c1:00.0", 20034, fatal=True, line=FATAL)
    assert judge([nvswitch_error_reported], log(event, event)).findings == [
        Finding("NC538", "nvswitch-error-reported", Severity.ERROR, ("n1",),
                "the driver reported fatal SXid 20034 for the NVSwitch at 0000:c1:00.0; last at "
                "[131453.740743]", (FATAL,),
                "sudo systemctl reboot", summary="a fatal error of an NVSwitch"),
    ]  # fmt: skip


def test_it_is_silent_about_errors_that_are_not_fatal_or_over() -> None:
    harmless = SxidEvent("0000:c1:00.0", 12028, fatal=False, line=FATAL)
    over = SxidEvent("0000:c1:00.0", 20034, fatal=True, line=FATAL, earlier=True)
    assert judge([nvswitch_error_reported], log(harmless, over)).findings == []
    assert judge([nvswitch_error_reported], log()).findings == []
