"""NC203: MPI is compared by implementation and the first two numbers of its release."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.versions.mpi_differs import mpi_differs


def node(version: str | None, implementation: str = "Open MPI", gpus: GpuFacts | None = None) -> Facts:
    mpi = Absent("mpirun: not there") if version is None else MpiFacts(implementation, version, "/usr/bin/mpirun")
    return {MpiFacts: mpi, GpuFacts: gpus or Absent("no NVIDIA GPU")}


def test_another_release_is_named() -> None:
    judgement = judge([mpi_differs], {"n1": node("4.1.4"), "n2": node("4.1.4"), "n3": node("5.0.11")})
    assert judgement.findings == [
        Finding("NC203", "mpi-differs", Severity.ERROR, ("n3",),
                "MPI differs: Open MPI 4.1 on n[1-2], Open MPI 5.0 on n3 (2 to 1)",
                ("Open MPI 4.1.4 at /usr/bin/mpirun on n[1-2]", "Open MPI 5.0.11 at /usr/bin/mpirun on n3"),
                "which -a mpirun orted prted", kind="look", summary="MPI differs"),
    ]  # fmt: skip


def test_nodes_of_two_gpu_models_need_one_release() -> None:
    h100, v100 = (GpuFacts((Gpu(0, model),), "550.54", "12.4", "nvml") for model in ("H100", "V100"))
    judgement = judge([mpi_differs], {"n1": node("4.1.4", gpus=h100), "n2": node("5.0.11", gpus=v100)})
    assert [finding.nodes for finding in judgement.findings] == [("n1", "n2")]


def test_another_implementation_differs_whatever_its_number() -> None:
    judgement = judge([mpi_differs], {"n1": node("4.1.2"), "n2": node("4.1.2", "MPICH")})
    assert [finding.nodes for finding in judgement.findings] == [("n1", "n2")]


def test_a_node_without_mpirun_fails_where_others_have_it() -> None:
    judgement = judge([mpi_differs], {"n1": node("4.1.4"), "n2": node(None)})
    assert [(found.nodes, found.message) for found in judgement.findings] == [
        (("n2",), "mpirun: not there, and n1 has it")
    ]


def test_it_is_silent_about_the_last_number_of_a_release() -> None:
    judgement = judge([mpi_differs], {"n1": node("4.1.4"), "n2": node("4.1.6rc1")})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED]


def test_it_is_silent_where_no_node_has_any_mpi() -> None:
    judgement = judge([mpi_differs], {"n1": node(None), "n2": node(None)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED, Outcome.SKIPPED]
