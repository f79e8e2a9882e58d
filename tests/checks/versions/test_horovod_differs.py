"""NC204: Horovod is compared by version and by what it was built with."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.versions.horovod_differs import horovod_differs


def node(*operations: str, version: str = "0.28.1") -> Facts:
    built = HorovodFacts(version, frozenset({"PyTorch"}), frozenset({"MPI", "Gloo"}), frozenset(operations))
    return {HorovodFacts: built, GpuFacts: Absent("no NVIDIA GPU")}


def test_a_build_without_nccl_beside_builds_with_it_is_named() -> None:
    nodes = {"n1": node("NCCL", "MPI"), "n2": node("MPI", "NCCL"), "n3": node("MPI")}
    assert judge([horovod_differs], nodes).findings == [
        Finding("NC204", "horovod-differs", Severity.ERROR, ("n3",),
                "Horovod differs: 0.28.1 (for PyTorch, by Gloo+MPI, with MPI+NCCL) on n[1-2], "
                "0.28.1 (for PyTorch, by Gloo+MPI, with MPI) on n3 (2 to 1)", (),
                "HOROVOD_GPU_OPERATIONS=NCCL python3 -m pip install --no-cache-dir --force-reinstall horovod==0.28.1",
                summary="Horovod differs"),
    ]  # fmt: skip


def test_a_node_without_horovod_fails_where_others_have_it() -> None:
    lacking: Facts = {HorovodFacts: Absent("horovodrun: not there"), GpuFacts: Absent("no NVIDIA GPU")}
    judgement = judge([horovod_differs], {"n1": node("NCCL"), "n2": lacking})
    assert [finding.nodes for finding in judgement.findings] == [("n2",)]


def test_it_is_silent_where_all_were_built_alike() -> None:
    judgement = judge([horovod_differs], {"n1": node("NCCL", "MPI"), "n2": node("MPI", "NCCL")})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED]
