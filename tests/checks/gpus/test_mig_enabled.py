"""NC528: MIG on all GPUs is explained."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.mig_enabled import mig_enabled

from .health import HEALTHY, MIG, h100, node


def test_it_is_worth_knowing() -> None:
    assert judge([mig_enabled], {"n1": node(MIG), "n2": node(MIG)}).findings == [
        Finding("NC528", "mig-enabled", Severity.INFO, ("n1", "n2"),
                "MIG is enabled on all GPUs: a rank gets a part of a GPU, without NVLink and P2P", (), "nvidia-smi -L",
                kind="look", summary="MIG is enabled"),
    ]  # fmt: skip


def test_it_is_silent_elsewhere() -> None:
    assert judge([mig_enabled], HEALTHY).findings == []
    assert judge([mig_enabled], {"n1": node(MIG), "n2": node(h100(0))}).findings == []
