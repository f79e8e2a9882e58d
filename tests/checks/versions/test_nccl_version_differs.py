"""NC201: NCCL is compared by majority, over all GPU models, and no golden file says what is right."""

from __future__ import annotations

import pytest
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts, NcclCopiesFacts, NcclCopy
from ncheck.facts.os_release import OsFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.versions.nccl_version_differs import nccl_version_differs

SYSTEM = "/usr/lib/x86_64-linux-gnu/libnccl.so.2"
PATH = "/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"


def node(version: str | Absent | Unread, model: str = "NVIDIA H100 80GB HBM3") -> Facts:
    nccl = LoadedNcclFacts(version, PATH) if isinstance(version, str) else version
    gpus = GpuFacts((Gpu(0, model),), "550.54", "12.4", "nvml")
    python = InterpreterFacts("/opt/venv/bin/python3", "3.11.2", "active venv", {"torch": "2.5.1"})
    absent = {OsFacts: Absent("no /etc/os-release"), NcclCopiesFacts: Absent("no libnccl on this node")}
    return {LoadedNcclFacts: nccl, GpuFacts: gpus, InterpreterFacts: python, **absent}


def with_copy(version: str, path: str, cuda: str, *, for_compilers: bool = False) -> Facts:
    held = NcclCopiesFacts((NcclCopy(path, version, "loader", cuda, for_compilers),))
    return {**node(version), LoadedNcclFacts: LoadedNcclFacts(version, path), NcclCopiesFacts: held}


def test_the_odd_node_is_named_with_the_majoritys_version_to_install() -> None:
    judgement = judge([nccl_version_differs], {"n1": node("2.21.5"), "n2": node("2.21.5"), "n3": node("2.18.3")})
    assert judgement.findings == [
        Finding("NC201", "nccl-version-differs", Severity.ERROR, ("n3",),
                "NCCL differs: 2.21.5 on n[1-2], 2.18.3 on n3 (2 to 1)",
                (f"2.21.5 from {PATH} on n[1-2]", f"2.18.3 from {PATH} on n3"),
                "/opt/venv/bin/python3 -m pip install nvidia-nccl-cu12==2.21.5", summary="NCCL differs"),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]


@pytest.mark.parametrize(("ids", "fix"), [
    (("ubuntu", "debian"), "sudo apt-get install 'libnccl2=2.21.5*'"),
    (("rocky", "rhel", "centos", "fedora"), "sudo dnf install libnccl-2.21.5"),
    (("opensuse-leap", "suse", "opensuse"), "sudo zypper install --oldpackage libnccl-2.21.5"),
    ((), "sudo apt-get install 'libnccl2=2.21.5*'"),
])  # fmt: skip
def test_the_systems_copy_is_mended_by_the_systems_packages(ids: tuple[str, ...], fix: str) -> None:
    library = LoadedNcclFacts("2.18.3", "/usr/lib/x86_64-linux-gnu/libnccl.so.2.18.3")
    system: Facts = {LoadedNcclFacts: library, OsFacts: OsFacts(ids)}
    judgement = judge([nccl_version_differs], {"n1": node("2.21.5"), "n2": {**node("2.21.5"), **system}})
    assert [finding.fix for finding in judgement.findings] == [fix]


@pytest.mark.parametrize(("ids", "for_compilers", "fix"), [
    (("ubuntu", "debian"), True, "sudo apt-get install libnccl2=2.21.5-1+cuda12.4 libnccl-dev=2.21.5-1+cuda12.4"),
    (("ubuntu", "debian"), False, "sudo apt-get install libnccl2=2.21.5-1+cuda12.4"),
    (("rhel", "fedora"), True, "sudo dnf install libnccl-2.21.5-1+cuda12.4 libnccl-devel-2.21.5-1+cuda12.4"),
    (("sles",), True, "sudo zypper install --oldpackage libnccl-2.21.5-1+cuda12.4 libnccl-devel-2.21.5-1+cuda12.4"),
])  # fmt: skip
def test_the_fix_is_exact_where_the_majoritys_build_is_known(
    ids: tuple[str, ...], fix: str, *, for_compilers: bool
) -> None:
    usual = with_copy("2.21.5", SYSTEM, "12.4")
    other = {**with_copy("2.18.3", SYSTEM, "12.2", for_compilers=for_compilers), OsFacts: OsFacts(ids)}
    judgement = judge([nccl_version_differs], {"n1": usual, "n2": usual, "n3": other})
    assert [finding.fix for finding in judgement.findings] == [fix]


def test_the_wheel_is_that_of_the_majoritys_cuda() -> None:
    usual, other = with_copy("2.27.5", PATH, "13.0"), with_copy("2.26.2", PATH, "12.8")
    judgement = judge([nccl_version_differs], {"n1": usual, "n2": usual, "n3": other})
    assert [finding.fix for finding in judgement.findings] == [
        "/opt/venv/bin/python3 -m pip install nvidia-nccl-cu13==2.27.5"
    ]


def test_two_nodes_that_differ_are_both_named() -> None:
    judgement = judge([nccl_version_differs], {"n1": node("2.21.5"), "n2": node("2.18.3")})
    assert [finding.nodes for finding in judgement.findings] == [("n1", "n2")]


def test_a_node_without_nccl_fails_where_others_have_it() -> None:
    nodes = {"n1": node("2.21.5"), "n2": node("2.21.5"), "n3": node(Absent("no libnccl"))}
    assert [(found.nodes, found.message) for found in judge([nccl_version_differs], nodes).findings] == [
        (("n3",), "no libnccl, and n[1-2] has it"),
    ]


def test_a_node_that_could_not_be_read_is_unknown_and_takes_no_side() -> None:
    judgement = judge(
        [nccl_version_differs], {"n1": node("2.21.5"), "n2": node("2.21.5"), "n3": node(Unread("no answer"))}
    )
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN]


def test_two_gpu_models_need_one_nccl_and_the_only_node_of_a_model_is_compared() -> None:
    nodes = {"n1": node("2.21.5"), "n2": node("2.21.5"), "n3": node("2.18.3", "Tesla V100")}
    judgement = judge([nccl_version_differs], nodes)
    assert [(found.nodes, found.message) for found in judgement.findings] == [
        (("n3",), "NCCL differs: 2.21.5 on n[1-2], 2.18.3 on n3 (2 to 1)"),
    ]


def test_it_is_silent_where_two_gpu_models_have_one_version() -> None:
    nodes = {"n1": node("2.21.5"), "n2": node("2.21.5", "Tesla V100")}
    assert [verdict.outcome for verdict in judge([nccl_version_differs], nodes).verdicts] == [Outcome.PASSED] * 2


RCCL = "/opt/venv/lib/python3.11/site-packages/torch/lib/librccl.so"


def test_rccl_is_compared_with_rccl_and_its_fix_only_looks() -> None:
    amd = {name: {**node("2.22.3"), LoadedNcclFacts: LoadedNcclFacts(version, RCCL)}
           for name, version in (("a1", "2.22.3"), ("a2", "2.22.3"), ("a3", "2.20.5"))}  # fmt: skip
    assert judge([nccl_version_differs], {"n1": node("2.21.5"), "n2": node("2.21.5"), **amd}).findings == [
        Finding("NC201", "nccl-version-differs", Severity.ERROR, ("a3",),
                "RCCL differs: 2.22.3 on a[1-2], 2.20.5 on a3 (2 to 1)",
                (f"2.22.3 from {RCCL} on a[1-2]", f"2.20.5 from {RCCL} on a3"),
                f"ls -l {RCCL}", kind="look", summary="RCCL differs"),
    ]  # fmt: skip
