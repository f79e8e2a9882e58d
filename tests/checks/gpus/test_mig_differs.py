"""NC527: MIG on some GPUs of a cluster is an error."""

from __future__ import annotations

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.mig_differs import mig_differs

from .health import CONSUMER, HEALTHY, MIG, UNREAD, h100, node


def test_the_node_with_mig_is_named() -> None:
    nodes = {"n1": node(h100(0), h100(1)), "n2": node(h100(0), h100(1, mig=True))}
    assert judge([mig_differs], nodes).findings == [
        Finding("NC527", "mig-differs", Severity.ERROR, ("n2",),
                "MIG is enabled on GPU 1 (0000:10:00.0) of n2, and not on other GPUs of this model", (),
                "nvidia-smi -L", kind="look", summary="MIG is enabled on some GPUs"),
    ]  # fmt: skip


def test_mig_on_all_and_on_none_is_no_finding() -> None:
    assert judge([mig_differs], {"n1": node(MIG), "n2": node(MIG)}).findings == []
    assert judge([mig_differs], HEALTHY).findings == []
    assert judge([mig_differs], {"n1": node(MIG)}).findings == []


def test_a_card_for_the_display_beside_gpus_with_mig_is_no_finding() -> None:
    assert judge([mig_differs], {"n1": node(MIG, CONSUMER)}).findings == []


def test_a_gpu_that_could_not_be_read_is_unknown_and_no_gpu_without_mig() -> None:
    judgement = judge([mig_differs], {"n1": node(MIG, UNREAD)})
    assert judgement.findings == []
    assert [one.outcome for one in judgement.verdicts] == [Outcome.UNKNOWN]
