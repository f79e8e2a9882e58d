"""NC520: a GPU that is lost, hangs, or needs a reset is an error; one of another user is not."""

from __future__ import annotations

import pytest
from ncheck.facts.gpu_health import Failure, GpuHealth
from ncheck.facts.gpu_log import KernelLogFacts, XidEvent
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_memory_broken import gpu_memory_broken
from ncheck_checks.gpus.gpu_unusable import gpu_unusable
from ncheck_checks.gpus.gpu_xid_reported import gpu_xid_reported
from ncheck_checks.gpus.nvidia_smi_hangs import nvidia_smi_hangs

from .health import HEALTHY, MIG, h100, node

LOST = Failure(15, "GPU is lost")


def findings(*gpus: GpuHealth, **more: object) -> list[tuple[str, str, str]]:
    nodes = {"n1": node(*gpus, **more)}  # type: ignore[arg-type]
    return [(one.message, one.fix, one.kind) for one in judge([gpu_unusable], nodes).findings]


def test_a_lost_gpu_is_an_error_that_a_reboot_mends() -> None:
    assert judge([gpu_unusable], {"n1": node(h100(0), GpuHealth(1, errors={"handle": LOST}))}).findings == [
        Finding("NC520", "gpu-unusable", Severity.ERROR, ("n1",), "GPU 1 is lost: GPU is lost", (),
                "sudo systemctl reboot", summary="a GPU is lost"),
    ]  # fmt: skip


def test_a_gpu_that_is_lost_while_it_is_read_is_named_by_its_address() -> None:
    assert findings(h100(1, remapped=None, errors={"remapped": LOST})) == [
        ("GPU 1 (0000:10:00.0) is lost: GPU is lost", "sudo systemctl reboot", "fix")
    ]


def test_nvml_s_other_errors_say_what_they_are() -> None:
    reset, power = Failure(16, "GPU requires reset"), Failure(8, "External power cables are not attached")
    assert findings(h100(0, errors={"ecc": reset}), GpuHealth(1, errors={"handle": power})) == [
        ("GPU 0 (0000:0f:00.0) needs a reset: GPU requires reset",
         "sudo nvidia-smi --gpu-reset -i 0000:0f:00.0", "fix"),
        ("GPU 1 cannot be opened: External power cables are not attached", "sudo journalctl -k -g NVRM", "look"),
    ]  # fmt: skip


@pytest.mark.parametrize(("action", "asked", "fix"), [
    (1, "a reset", "sudo nvidia-smi --gpu-reset -i 0000:0f:00.0"),
    (2, "a reboot of the node", "sudo systemctl reboot"),
    (3, "an end of the work on all GPUs that reach it by P2P", "nvidia-smi"),
    (5, "a recovery of the IMEX domain", "sudo systemctl status nvidia-imex"),
    (99, "recovery action 99", "sudo nvidia-smi --gpu-reset -i 0000:0f:00.0"),
])  # fmt: skip
def test_what_the_driver_asks_for_is_said(action: int, asked: str, fix: str) -> None:
    ((message, typed, _),) = findings(h100(0, action=action))
    assert (message, typed) == (f"the driver asks for {asked}: GPU 0 (0000:0f:00.0)", fix)


def test_a_gpu_that_hangs_or_does_not_open_is_named() -> None:
    closed = {"0000:5d:00.0": "Input/output error"}
    assert findings(h100(0), hung=1, unlisted=closed) == [
        ("GPU 1 stops answering: NVML hangs while it reads it", "sudo journalctl -k -g NVRM", "look"),
        ("the driver has 1 GPU(s) that NVML does not list: the GPU at 0000:5d:00.0 does not open: Input/output error",
         "sudo journalctl -k -g NVRM", "look"),
    ]  # fmt: skip


def test_a_lost_gpu_that_nvml_cannot_name_is_one_finding_with_its_address() -> None:
    nodes = {
        "n1": node(h100(0), GpuHealth(1, errors={"handle": LOST}), unlisted={"0000:10:00.0": "Input/output error"})
    }
    assert [(one.message, one.evidence) for one in judge([gpu_unusable], nodes).findings] == [
        ("GPU 1 is lost: GPU is lost", ("the GPU at 0000:10:00.0 does not open: Input/output error",))
    ]


def test_it_is_silent_on_healthy_nodes_of_every_kind() -> None:
    judgement = judge([gpu_unusable], {**HEALTHY, "mig": node(MIG)})
    assert judgement.findings == []
    assert {one.nodes[0]: one.outcome for one in judgement.verdicts} == {
        "h100": Outcome.PASSED, "consumer": Outcome.PASSED, "vgpu": Outcome.PASSED, "mig": Outcome.PASSED,
        "none": Outcome.SKIPPED,
    }  # fmt: skip


def test_what_an_xid_explains_follows_from_it_on_the_same_gpu_only() -> None:
    def seen(pci: str, *gpus: GpuHealth) -> list[tuple[str, tuple[str, ...]]]:
        log = KernelLogFacts((XidEvent(pci, 95, "NVRM: Xid"),), "dmesg")
        checks = [gpu_xid_reported, gpu_unusable, gpu_memory_broken]
        judgement = judge(checks, {"n1": {**node(*gpus), KernelLogFacts: log}})
        return [(one.code, one.see) for one in judgement.findings]

    broken = h100(1, action=1, ecc=3)
    xid = ("NC506", ())
    assert seen("0000:10:00.0", h100(0), broken) == [xid, ("NC520", ("NC506",)), ("NC521", ("NC506",))]
    assert seen("0000:5d:00.0", h100(0), broken) == [xid, ("NC520", ()), ("NC521", ())]
    lost = GpuHealth(1, errors={"handle": LOST})
    assert seen("0000:10:00.0", h100(0), lost) == [xid, ("NC520", ("NC506",))]


def test_an_nvidia_smi_that_hangs_follows_from_the_gpu_that_hangs() -> None:
    hangs = Unread("nvidia-smi did not end within 10 s and was killed", hung="nvidia-smi")
    nodes = {"n1": {**node(h100(0), hung=1), GpuFacts: hangs, TopologyFacts: hangs}}
    findings = judge([gpu_unusable, nvidia_smi_hangs], nodes).findings
    assert [(one.code, one.see) for one in findings] == [("NC520", ()), ("NC505", ("NC520",))]
