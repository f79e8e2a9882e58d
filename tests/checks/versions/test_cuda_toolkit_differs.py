"""NC230: toolkits are compared as far as all of them say their versions."""

from __future__ import annotations

from ncheck.facts.cuda import CudaToolkitFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.cuda_toolkit_differs import cuda_toolkit_differs as check


def node(version: str, path: str = "/usr/local/cuda-12.4") -> Facts:
    return {CudaToolkitFacts: CudaToolkitFacts(path, version)}


NONE: Facts = {CudaToolkitFacts: Absent("no nvcc")}


def test_a_node_with_another_toolkit_is_named_with_the_place_of_each() -> None:
    nodes = {"n1": node("12.4.1"), "n2": node("12.4.1"), "n3": node("11.8.0", "/opt/cuda 11")}
    assert judge([check], nodes).findings == [
        Finding("NC230", "cuda-toolkit-differs", Severity.WARNING, ("n3",),
                "the CUDA toolkit differs: 12.4.1 on n[1-2], 11.8.0 on n3 (2 to 1)",
                ("12.4.1 in /usr/local/cuda-12.4 on n[1-2]", "11.8.0 in /opt/cuda 11 on n3"),
                "'/opt/cuda 11'/bin/nvcc --version", kind="look", summary="the CUDA toolkit differs"),
    ]  # fmt: skip


def test_it_is_silent_about_nodes_without_one_or_that_say_less() -> None:
    judgement = judge([check], {"n1": node("12.4.1"), "n2": node("12.4", "/opt/conda"), "n3": node(""), "n4": NONE})
    assert (judgement.findings, [one.outcome for one in judgement.verdicts]) == (
        [], [Outcome.PASSED, Outcome.PASSED, Outcome.SKIPPED, Outcome.SKIPPED],
    )  # fmt: skip
