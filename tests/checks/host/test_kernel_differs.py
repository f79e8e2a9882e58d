"""NC629: kernels are compared among nodes with the same GPUs."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.machine import MachineFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.host.kernel_differs import kernel_differs


def node(kernel: str, model: str = "") -> Facts:
    gpus = GpuFacts((Gpu(0, model),), "550.54.15", "12.4", "nvml") if model else Absent("no NVIDIA GPU")
    return {MachineFacts: MachineFacts(kernel, "x86_64"), GpuFacts: gpus}


def test_the_node_with_another_kernel_is_named() -> None:
    nodes = {"n1": node("5.15.0-105-generic"), "n2": node("5.15.0-105-generic"), "n3": node("5.15.0-107-generic")}
    assert judge([kernel_differs], nodes).findings == [
        Finding("NC629", "kernel-differs", Severity.WARNING, ("n3",),
                "the kernel differs: 5.15.0-105-generic x86_64 on n[1-2], 5.15.0-107-generic x86_64 on n3 (2 to 1)",
                (), "uname -r", kind="look", summary="the kernel differs"),
    ]  # fmt: skip


def test_it_is_silent_where_other_gpus_have_another_image() -> None:
    h100, a100 = node("6.8.0", "NVIDIA H100"), node("5.15.0", "NVIDIA A100")
    assert judge([kernel_differs], {"n1": h100, "n2": h100, "n3": a100, "n4": a100}).findings == []
