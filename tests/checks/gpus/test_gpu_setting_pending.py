"""NC545: a mode that the next reset changes is a warning; modes that stay are none, whatever they are."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_setting_pending import gpu_setting_pending

from .health import CONSUMER, HEALTHY, MIG, h100, node

LOOK = "nvidia-smi --query-gpu=index,ecc.mode.current,ecc.mode.pending,mig.mode.current,mig.mode.pending --format=csv"


def test_each_mode_that_changes_is_named_with_its_gpus() -> None:
    nodes = {"n1": node(h100(0, ecc_pending=0), h100(1, ecc_pending=0), h100(2, mig_pending=True))}
    first = "ECC will be off after the next reset or reboot: GPU 0 (0000:0f:00.0), GPU 1 (0000:10:00.0)"
    second = "MIG will be on after the next reset or reboot: GPU 2 (0000:11:00.0)"
    assert judge([gpu_setting_pending], nodes).findings == [
        Finding("NC545", "gpu-setting-pending", Severity.WARNING, ("n1",), message, (), LOOK, kind="look",
                summary=f"{message[:3]} of GPUs changes at the next reset")
        for message in (first, second)
    ]  # fmt: skip


def test_modes_that_stay_are_none() -> None:
    for gpu in (h100(0), h100(0, ecc_mode=0, ecc_pending=0), MIG, h100(0, ecc_pending=None, mig_pending=None)):
        assert judge([gpu_setting_pending], {"n1": node(gpu)}).findings == []
    assert judge([gpu_setting_pending], HEALTHY).findings == []


def test_a_gpu_without_such_modes_is_skipped_and_one_that_could_not_be_read_is_unknown() -> None:
    unread = h100(0, ecc_mode=None, ecc_pending=None, errors={"ecc_mode": Failure(999, "Unknown Error")})
    outcomes = [
        one.outcome for gpu in (CONSUMER, unread) for one in judge([gpu_setting_pending], {"n": node(gpu)}).verdicts
    ]
    assert outcomes == [Outcome.SKIPPED, Outcome.UNKNOWN]
