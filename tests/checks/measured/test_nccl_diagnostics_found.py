"""NC742: what NCCL's own diagnostics found is told of the nodes whose ranks it names; notices are not."""

from __future__ import annotations

from ncheck.model.cluster import Facts
from ncheck.model.finding import Outcome
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Stage, Step, StepFailure
from ncheck.steps.judge import judge
from ncheck_checks.measured.nccl_diagnostics_found import nccl_diagnostics_found

STEP = Step(9, Stage.ALL, Method.DIAGNOSTICS, ("n1", "n2"), (2, 2), ())
HEAD = "a:1 NCCL DIAG === NCCL Diagnostics ==="
WELL = "a:1 NCCL DIAG [OK]   p2p: verified P2P access in both directions between every GPU pair (4 peer accesses)"
SHARED = "a:1 NCCL DIAG [INFO] net bw: net devices are shared across ranks, concurrent use can lower it in comm 0x1"
MISSING = "a:1 NCCL DIAG [INFO] net bw: required external tool missing in comm 0x1"
SUMMARY = "a:1 NCCL DIAG [INFO] p2p: only 3/4 GPU-to-GPU peer accesses passed verification"
MISMATCH = "b:1 NCCL DIAG [INFO] p2p: write mismatch srcRank=2 srcCudaDev=0 dstRank=3 dstCudaDev=1 path=NVL"
SLOW = "a:1 NCCL DIAG [INFO] net bw: same-nic rank 3 (b): 26.1 Gbit/s, >30% off median 391.5 Gbit/s in comm 0x1"


def nodes(*first: str, second: tuple[str, ...] = (), failure: StepFailure | None = None) -> dict[str, Facts]:
    results = {name: NodeResult(STEP, (), log=log, failure=failure) for name, log in (("n1", first), ("n2", second))}
    return {name: {ProbeFacts: ProbeFacts((result,))} for name, result in results.items()}


def outcomes(facts: dict[str, Facts]) -> dict[str, Outcome]:
    return {verdict.nodes[0]: verdict.outcome for verdict in judge([nccl_diagnostics_found], facts).verdicts}


def test_ranks_that_a_line_names_are_their_nodes_and_the_summary_says_no_more() -> None:
    found = judge([nccl_diagnostics_found], nodes(HEAD, SUMMARY, SLOW, second=(MISMATCH,))).findings
    assert [(one.nodes, one.message, one.fix) for one in found] == [
        (("n2",), "NCCL's diagnostics: net bw: same-nic rank 3 (b): 26.1 Gbit/s, >30% off median 391.5 Gbit/s",
         "sudo iblinkinfo"),
        (("n2",), f"NCCL's diagnostics: {MISMATCH.partition('[INFO] ')[2]}", "nvidia-smi topo -p2p rw"),
    ]  # fmt: skip


def test_a_summary_alone_is_told_of_who_printed_it() -> None:
    (found,) = judge([nccl_diagnostics_found], nodes(HEAD, SUMMARY)).findings
    assert found.nodes == ("n1",)


def test_a_healthy_report_with_notices_and_a_tool_that_is_missing_is_no_problem() -> None:
    assert set(outcomes(nodes(HEAD, WELL, SHARED, MISSING)).values()) == {Outcome.PASSED}


def test_what_was_not_run_or_printed_nothing_is_skipped_and_not_passed() -> None:
    assert set(outcomes(nodes()).values()) == {Outcome.SKIPPED}
    none: dict[str, Facts] = {"n1": {ProbeFacts: ProbeFacts(())}}
    assert outcomes(none) == {"n1": Outcome.SKIPPED}


def test_a_run_that_came_to_no_end_is_unknown() -> None:
    late = StepFailure("init", "it ran out of time in: init", late=True)
    assert set(outcomes(nodes(HEAD, failure=late)).values()) == {Outcome.UNKNOWN}
