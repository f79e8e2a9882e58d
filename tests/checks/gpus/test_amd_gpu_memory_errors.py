"""NC560: uncorrectable errors and bad pages of AMD's GPUs."""

from __future__ import annotations

from ncheck.facts.amd import AmdErrorFacts, AmdErrors
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.amd_gpu_memory_errors import amd_gpu_memory_errors


def test_the_gpus_that_counted_errors_are_named() -> None:
    gpus = {
        "0000:05:00.0": AmdErrors({"umc": 3, "gfx": 1}, pending=2, kept=1),
        "0000:26:00.0": AmdErrors(),
        "0000:46:00.0": AmdErrors(pending=1),
    }
    assert judge([amd_gpu_memory_errors], {"n1": {AmdErrorFacts: AmdErrorFacts(gpus)}}).findings == [
        Finding("NC560", "amd-gpu-memory-errors", Severity.WARNING, ("n1",),
                "GPU 0000:05:00.0: uncorrectable errors since the driver was loaded: 1 in gfx, 3 in the memory; bad "
                "pages of memory: 1 cannot be retired, 2 to be retired by a reset, and 1 more",
                ("GPU 0000:46:00.0: bad pages of memory: 1 to be retired by a reset",),
                "amd-smi metric --ecc-blocks", kind="look", summary="uncorrectable errors on 2 AMD GPUs"),
    ]  # fmt: skip


def test_it_is_silent_on_healthy_gpus_and_on_nodes_without_any() -> None:
    nodes: dict[str, Facts] = {
        "n1": {AmdErrorFacts: AmdErrorFacts({"0000:05:00.0": AmdErrors()})},
        "n2": {AmdErrorFacts: Absent("none")},
    }
    judgement = judge([amd_gpu_memory_errors], nodes)
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.SKIPPED]
