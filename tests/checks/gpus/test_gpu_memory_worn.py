"""NC522: what is worth a reset between two jobs is a warning."""

from __future__ import annotations

from ncheck.facts.gpu_health import RemappedRows
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_memory_worn import gpu_memory_worn

from .health import HEALTHY, MIG, h100, node


def test_a_gpu_is_named_with_all_that_shows_wear() -> None:
    pending = RemappedRows(0, 1, pending=True, failed=False)
    nodes = {"n1": node(h100(0), h100(1, remapped=pending, ecc=1, retired=64))}
    assert judge([gpu_memory_worn], nodes).findings == [
        Finding("NC522", "gpu-memory-worn", Severity.WARNING, ("n1",),
                "the memory of GPU 1 (0000:10:00.0) shows wear: a bad row is replaced at the next reset (row remap "
                "pending), 1 uncorrectable errors since the driver was loaded, 64 retired pages", (),
                "sudo nvidia-smi --gpu-reset -i 0000:10:00.0", summary="a GPU shows wear"),
    ]  # fmt: skip


def test_errors_of_the_caches_beyond_the_limit_are_shown_and_not_reset() -> None:
    worn = "the memory of GPU 0 (0000:0f:00.0) shows wear: "
    sram = "more uncorrectable errors in its caches than NVIDIA's limit (SRAM threshold exceeded)"
    found = judge([gpu_memory_worn], {"n1": node(h100(0, sram_exceeded=True))}).findings
    assert [(one.message, one.fix, one.kind) for one in found] == [
        (worn + sram, "sudo nvidia-smi -q -d ECC -i 0000:0f:00.0", "look")
    ]


def test_it_leaves_what_is_broken_to_the_other_check() -> None:
    failed = RemappedRows(0, 9, pending=True, failed=True)
    assert judge([gpu_memory_worn], {"n1": node(h100(0, remapped=failed, ecc=3, action=None))}).findings == []


def test_it_is_silent_on_healthy_nodes_and_on_rows_that_were_replaced() -> None:
    replaced = node(h100(0, remapped=RemappedRows(8, 2, pending=False, failed=False), ecc_ever=5, retired=10))
    assert judge([gpu_memory_worn], {**HEALTHY, "mig": node(MIG), "replaced": replaced}).findings == []
