"""NC205: a Horovod without NCCL is wrong only where there are GPUs."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.versions.horovod_lacks_nccl import horovod_lacks_nccl

GPUS = GpuFacts((Gpu(0, "NVIDIA A100-SXM4-80GB"), Gpu(1, "NVIDIA A100-SXM4-80GB")), "550.54", "12.4", "nvml")


def node(*operations: str, gpus: GpuFacts | Absent = GPUS, version: str = "0.28.1") -> dict[str, Facts]:
    built = HorovodFacts(version, frozenset({"PyTorch"}), frozenset({"Gloo"}), frozenset(operations))
    return {"n1": {HorovodFacts: built, GpuFacts: gpus}}


def test_a_build_without_nccl_on_a_node_with_gpus_is_named() -> None:
    assert judge([horovod_lacks_nccl], node("Gloo", "MPI")).findings == [
        Finding("NC205", "horovod-lacks-nccl", Severity.ERROR, ("n1",),
                "Horovod 0.28.1 was built without NCCL, on a node with 2 GPUs", ("tensor operations: Gloo, MPI",),
                "HOROVOD_GPU_OPERATIONS=NCCL python3 -m pip install --no-cache-dir --force-reinstall horovod==0.28.1",
                summary="Horovod lacks NCCL"),
    ]  # fmt: skip


def test_the_fix_names_the_version_that_most_nodes_have() -> None:
    other = node("MPI", version="0.27.0")["n1"]
    judgement = judge([horovod_lacks_nccl], {"n1": other, "n2": node("NCCL")["n1"], "n3": node("NCCL")["n1"]})
    assert [(found.nodes, found.fix.rpartition(" ")[2]) for found in judgement.findings] == [
        (("n1",), "horovod==0.28.1")
    ]


def test_it_is_silent_where_nccl_is_built_in() -> None:
    assert judge([horovod_lacks_nccl], node("NCCL", "Gloo")).findings == []


def test_it_is_silent_and_skipped_on_a_node_without_gpus() -> None:
    judgement = judge([horovod_lacks_nccl], node("Gloo", gpus=Absent("no NVIDIA GPU")))
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED]
