"""NC231: what the job's framework loads is compared, and nothing else that is installed."""

from __future__ import annotations

from ncheck.facts.cuda import CudnnFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.cudnn_differs import cudnn_differs as check

WHEEL = "/opt/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
SYSTEM = "/usr/lib/x86_64-linux-gnu/libcudnn.so."


def wheel(version: str, *system: str) -> Facts:
    return {CudnnFacts: CudnnFacts(WHEEL, version, system)}


def system(version: str) -> Facts:
    return {CudnnFacts: CudnnFacts(SYSTEM + version, version, (version,))}


def outcomes(*nodes: Facts) -> list[Outcome]:
    judgement = judge([check], {f"n{number}": facts for number, facts in enumerate(nodes, 1)})
    return [verdict.outcome for verdict in judgement.verdicts]


def test_a_node_that_loads_another_copy_than_the_wheel_of_the_others_is_named() -> None:
    nodes = {"n1": wheel("9.1.0.70"), "n2": wheel("9.1.0.70"), "n3": system("8.9.7")}
    assert judge([check], nodes).findings == [
        Finding("NC231", "cudnn-differs", Severity.WARNING, ("n3",),
                "cuDNN differs: 9.1.0.70 on n[1-2], 8.9.7 on n3 (2 to 1)",
                (f"9.1.0.70 from {WHEEL} on n[1-2]", f"8.9.7 from {SYSTEM}8.9.7 on n3"),
                f"ls -l {SYSTEM}8.9.7", kind="look", summary="cuDNN differs"),
    ]  # fmt: skip


def test_a_cudnn_of_the_system_that_no_framework_loads_may_differ() -> None:
    assert outcomes(wheel("9.1.0.70", "8.9.7"), wheel("9.1.0.70", "9.5.1")) == [Outcome.SKIPPED] * 2
    assert outcomes({CudnnFacts: CudnnFacts("", "", ("8.9.7",))}, system("9.5.1")) == [Outcome.SKIPPED, Outcome.PASSED]
    assert outcomes(wheel("9.1.0.70"), system("9.1.0")) == [Outcome.PASSED] * 2


def test_wheels_are_left_to_the_check_of_libraries() -> None:
    assert outcomes(wheel("9.1.0.70"), wheel("8.9.2.26")) == [Outcome.SKIPPED] * 2


def test_a_copy_that_could_not_be_found_out_is_unknown() -> None:
    assert outcomes({CudnnFacts: Unread("torch needs libcudnn.so.9")}, system("9.1.0"), system("9.1.0")) == [
        Outcome.UNKNOWN, Outcome.PASSED, Outcome.PASSED,
    ]  # fmt: skip
