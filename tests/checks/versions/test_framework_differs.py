"""NC206: frameworks are compared one by one; where none lives, the wrong Python may have been asked."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck_checks.versions.framework_differs import framework_differs

GPUS = GpuFacts((Gpu(0, "NVIDIA H100 80GB HBM3"),), "550.54", "12.4", "nvml")


NO_NCCL = Absent("no NCCL that the job's interpreter would load")


def node(gpus: GpuFacts | Absent = GPUS, nccl: LoadedNcclFacts | Absent = NO_NCCL, **frameworks: str) -> Facts:
    return {
        LoadedNcclFacts: nccl,
        InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", frameworks),
        GpuFacts: gpus,
        RanksFacts: Absent("no job"),
    }


def test_the_odd_version_is_named_framework_by_framework() -> None:
    nodes = {"n1": node(torch="2.3.1", deepspeed="0.14"), "n2": node(torch="2.3.1", deepspeed="0.14"),
             "n3": node(torch="2.1.0", deepspeed="0.14")}  # fmt: skip
    assert judge([framework_differs], nodes).findings == [
        Finding("NC206", "framework-differs", Severity.ERROR, ("n3",),
                "torch differs: 2.3.1 on n[1-2], 2.1.0 on n3 (2 to 1)", (), "python3 -m pip install torch==2.3.1",
                summary="torch differs"),
    ]  # fmt: skip


def test_a_node_without_any_framework_fails_where_another_has_one() -> None:
    judgement = judge([framework_differs], {"n1": node(torch="2.3.1"), "n2": node(), "n3": node()})
    assert [found.message for found in judgement.findings] == ["torch differs: none on n[2-3], 2.3.1 on n1 (2 to 1)"]
    assert [found.fix for found in judgement.findings] == ["python3 -m pip install torch==2.3.1"]


def test_nodes_of_two_gpu_models_need_one_framework() -> None:
    other = GpuFacts((Gpu(0, "Tesla V100"),), "550.54", "12.4", "nvml")
    nodes = {"n1": node(torch="2.3.1"), "n2": node(torch="2.3.1"), "n3": node(other, torch="2.1.0")}
    assert [found.nodes for found in judge([framework_differs], nodes).findings] == [("n3",)]


def test_nodes_with_gpus_and_no_framework_anywhere_are_unknown_and_not_passed() -> None:
    judgement = judge([framework_differs], {"n1": node(), "n2": node()})
    reason = "no framework in /usr/bin/python3 (python3 on PATH): give the job's Python with --python"
    assert [(verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [(Outcome.UNKNOWN, reason)] * 2


def test_it_is_silent_and_skipped_where_nccl_is_there_for_jobs_that_need_no_framework() -> None:
    nccl = LoadedNcclFacts("2.21.5", "/usr/lib/x86_64-linux-gnu/libnccl.so.2")
    judgement = judge([framework_differs], {"n1": node(nccl=nccl), "n2": node(nccl=nccl)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED, Outcome.SKIPPED]


def test_it_is_silent_and_skipped_where_there_is_neither_gpu_nor_framework() -> None:
    none = Absent("no NVIDIA GPU")
    judgement = judge([framework_differs], {"n1": node(none), "n2": node(none)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED, Outcome.SKIPPED]


def test_it_is_silent_about_what_one_node_has_beside_the_jobs_framework() -> None:
    nodes = {"n1": node(torch="2.3.1", jax="0.4.30"), "n2": node(torch="2.3.1"), "n3": node(torch="2.3.1")}
    assert judge([framework_differs], nodes).findings == []


def test_two_builds_of_one_version_differ_and_the_fix_names_their_index() -> None:
    nodes = {"n1": node(torch="2.3.0+cu121"), "n2": node(torch="2.3.0+cu121"), "n3": node(torch="2.3.0+cpu")}
    assert [(found.message, found.fix) for found in judge([framework_differs], nodes).findings] == [
        (
            "torch differs: 2.3.0+cu121 on n[1-2], 2.3.0+cpu on n3 (2 to 1)",
            "python3 -m pip install torch==2.3.0+cu121 --index-url https://download.pytorch.org/whl/cu121",
        )
    ]


def test_inside_a_job_a_package_that_it_does_not_use_is_a_warning() -> None:
    one, other = node(torch="2.3.1", accelerate="1.0"), node(torch="2.3.1")
    gpu_build = {"paddlepaddle-gpu": "2.6"}
    paddle: Facts = {
        **node(), InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", gpu_build)
    }  # fmt: skip
    for packages, nodes, severity in (
        (("os", "torch"), (one, other), Severity.WARNING),
        (("accelerate", "torch"), (one, other), Severity.ERROR),
        (("torch",), (paddle, node()), Severity.WARNING),
        (("paddle",), (paddle, node()), Severity.ERROR),
    ):
        ranks: Facts = {RanksFacts: RanksFacts(2, (0,), packages=packages)}
        found = judge([framework_differs], {"n1": {**nodes[0], **ranks}, "n2": {**nodes[1], **ranks}}).findings
        assert [finding.severity for finding in found] == [severity], packages
