"""NC204: Horovod is compared by version and by what it was built with."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.versions.horovod_differs import horovod_differs
from ncheck_checks.versions.horovod_lacks_nccl import horovod_lacks_nccl


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


def test_where_most_builds_lack_nccl_these_are_named_and_not_the_one_that_has_it() -> None:
    nodes = {"n1": node("MPI"), "n2": node("MPI"), "n3": node("MPI", "NCCL")}
    (found,) = judge([horovod_differs], nodes).findings
    assert (found.nodes, found.fix.startswith("HOROVOD_GPU_OPERATIONS=NCCL")) == (("n1", "n2"), True)


def test_it_follows_from_a_build_without_nccl_if_nothing_else_differs() -> None:
    def see(version: str) -> tuple[str, ...]:
        nodes: dict[str, Facts] = {
            "n1": with_gpu(node("NCCL", "MPI")),
            "n2": with_gpu(node("NCCL", "MPI")),
            "n3": with_gpu(node("MPI", version=version)),
        }
        return judge([horovod_differs, horovod_lacks_nccl], nodes).findings[0].see

    assert (see("0.28.1"), see("0.27.0")) == (("NC205",), ())


def with_gpu(facts: Facts) -> Facts:
    return {**facts, GpuFacts: GpuFacts((Gpu(0, "NVIDIA A100-SXM4-80GB"),), "550.54", "12.4", "nvml")}


def test_a_node_without_horovod_fails_where_others_have_it() -> None:
    lacking: Facts = {HorovodFacts: Absent("horovodrun: not there"), GpuFacts: Absent("no NVIDIA GPU")}
    judgement = judge([horovod_differs], {"n1": node("NCCL"), "n2": lacking})
    assert [finding.nodes for finding in judgement.findings] == [("n2",)]


def test_it_is_silent_where_all_were_built_alike() -> None:
    judgement = judge([horovod_differs], {"n1": node("NCCL", "MPI"), "n2": node("MPI", "NCCL")})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED]
