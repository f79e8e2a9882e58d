"""NC743: GPUs that are slow or fail by the NICs of their own node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Row, Skipped, Stage, Step, StepFailure
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_nic_path_slow import gpu_nic_path_slow

from .bandwidths import part, probed

MIB = 2**20


def by_nics(node: str, busbw: float, failure: StepFailure | None = None, planned: tuple[str, ...] = ()) -> Facts:
    result = part(Stage.NICS, (node,), 8, busbw)
    rows = () if failure else result.rows
    step = replace(result.step, method=Method.NICS, net="IB")
    return probed(replace(result, step=step, rows=rows, failure=failure, planned=planned or result.planned))


def outcomes(facts: dict[str, Facts]) -> dict[str, Outcome]:
    return {node: one.outcome for one in judge([gpu_nic_path_slow], facts).verdicts for node in one.nodes}


def test_a_node_that_is_slow_by_its_nics_is_named_with_what_they_should_carry() -> None:
    assert judge([gpu_nic_path_slow], {"n1": by_nics("n1", 45.0), "n2": by_nics("n2", 20.7)}).findings == [
        Finding(
            "NC743", "gpu-nic-path-slow", Severity.WARNING, ("n2",),
            ("n2: by its NICs alone its GPUs reach 20.7 of 42 GB/s "
             "(NIC sum: 8 x 400 Gb/s, shared by 8 ranks, 0.84 of it)"),
            (), "sudo lspci -vv", kind="look", summary="GPUs are slow by their NICs alone",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "busbw", [40.0, 48.5]
)  # what published acceptance tests ask for with 8 x 400 Gb/s, and a good one
def test_what_acceptance_tests_let_pass_is_no_problem(busbw: float) -> None:
    assert outcomes({"n1": by_nics("n1", busbw)}) == {"n1": Outcome.PASSED}


def test_a_failure_is_told_and_one_for_want_of_time_is_not_the_nodes() -> None:
    words = "unhandled system error (result 2)"
    facts = {
        "n1": by_nics("n1", 1, StepFailure("init", words)),
        "n2": by_nics("n2", 1, StepFailure("init", "", late=True)),
    }
    (found,) = judge([gpu_nic_path_slow], facts).findings
    assert (found.nodes, found.message) == (("n1",), f"n1: by its NICs alone its GPUs fail in init: {words}")
    assert outcomes(facts) == {"n1": Outcome.FAILED, "n2": Outcome.UNKNOWN}


def test_what_was_not_tested_is_skipped_and_what_was_left_out_is_unknown() -> None:
    step = replace(part(Stage.NICS, ("n2",), 8, 1).step, method=Method.NICS)
    facts: dict[str, Facts] = {
        "n1": probed(part(Stage.INSIDE, ("n1",), 8, 400)),
        "n2": {ProbeFacts: ProbeFacts((), (Skipped(step, "no time"),))},
    }
    assert outcomes(facts) == {"n1": Outcome.SKIPPED, "n2": Outcome.UNKNOWN}
    assert outcomes({"n1": by_nics("n1", 45.0, planned=("mlx9_0:1",))}) == {"n1": Outcome.UNKNOWN}


def to_itself(gbits: float, failure: StepFailure | None = None, used: tuple[str, ...] = ("GPU 3",)) -> Facts:
    step = Step(1, Stage.NICS, Method.LOOPBACK, ("n1",), (1,), (2, MIB))
    seconds = MIB * 8 / (gbits * 1e9)
    large = Row(MIB, in_place=False, seconds=seconds, fastest=seconds, slowest=seconds)
    rows = (Row(2, in_place=False, seconds=1.87e-6, fastest=1.79e-6, slowest=2.03e-6), large)
    result = NodeResult(step, () if failure else rows, ("mlx5_3:1",), used=used, failure=failure)
    return probed(result)


def test_a_port_that_writes_slowly_to_itself_is_named_with_whose_memory_it_was() -> None:
    (found,) = judge([gpu_nic_path_slow], {"n1": to_itself(212)}).findings
    assert (found.nodes, found.message) == (
        ("n1",), "n1 mlx5_3:1 writes to itself with 212 Gb/s from the memory of GPU 3 (minimum 360)",
    )  # fmt: skip
    assert outcomes({"n1": to_itself(391.1)}) == {"n1": Outcome.PASSED}
    assert outcomes({"n1": to_itself(380)}) == {"n1": Outcome.PASSED}, "which azurehpc-health-checks asks for"


def test_a_port_that_cannot_write_is_named_and_one_whose_programs_never_met_is_unknown() -> None:
    broken = StepFailure("write", "Completion with error at client")
    (found,) = judge([gpu_nic_path_slow], {"n1": to_itself(1, broken)}).findings
    assert found.message == "n1 mlx5_3:1 fails to write to itself: Completion with error at client"
    assert outcomes({"n1": to_itself(1, StepFailure("connect", "Couldn't connect"))}) == {"n1": Outcome.UNKNOWN}
