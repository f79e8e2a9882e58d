"""NC511: the matrix shows fewer GPUs than the driver lists."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_missing_from_topology import gpu_missing_from_topology

from .matrices import node


def test_the_gpu_that_the_matrix_lacks_is_named() -> None:
    assert judge([gpu_missing_from_topology], {"n1": node(3, "NV18", listed=4)}).findings == [
        Finding("NC511", "gpu-missing-from-topology", Severity.WARNING, ("n1",),
                "the topology matrix lacks GPU3 (3 of 4 GPUs)", ("read from nvidia-smi",), "nvidia-smi -L",
                kind="look", summary="a GPU is missing from the matrix"),
    ]  # fmt: skip


def test_it_is_silent_where_all_are_there() -> None:
    assert judge([gpu_missing_from_topology], {"n1": node(4, "NV18"), "n2": node(1, "X")}).findings == []
