"""NC526: a GPU that lets no program compute is an error."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_compute_prohibited import gpu_compute_prohibited

from .health import HEALTHY, MIG, h100, node


def test_the_gpus_are_named() -> None:
    nodes = {"n1": node(h100(0), h100(1, compute_mode=2))}
    assert judge([gpu_compute_prohibited], nodes).findings == [
        Finding("NC526", "gpu-compute-prohibited", Severity.ERROR, ("n1",),
                "the compute mode is Prohibited: no program can use GPU 1 (0000:10:00.0)", (),
                "sudo nvidia-smi -c DEFAULT", summary="GPUs let no program compute"),
    ]  # fmt: skip


def test_other_modes_are_fine_and_what_could_not_be_read_is_unknown() -> None:
    exclusive = node(h100(0, compute_mode=3))
    assert judge([gpu_compute_prohibited], {**HEALTHY, "mig": node(MIG), "x": exclusive}).findings == []
    unread = node(h100(0, compute_mode=None, errors={"compute_mode": Failure(999, "Unknown Error")}))
    assert [one.outcome for one in judge([gpu_compute_prohibited], {"n": unread}).verdicts] == [Outcome.UNKNOWN]
