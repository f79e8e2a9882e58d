"""NC701: a step that failed is told with its cause, the node that failed by itself, and what to type."""

from __future__ import annotations

import pytest
from ncheck.facts.login import LoginFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Skipped, Stage, StepFailure
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.measured.all_reduce_failed import all_reduce_failed

from .results import broken, late, probed, rows, step, well

MEMLOCK = "n2:77:78 [0] ibvwrap.cc:163 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory"
CLOSED = "n1:61:62 [0] socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n2<40113>"
REMOTE = "remote process exited or there was a network error"
PAIR = step(1, "n1", "n2")
BARE: Facts = dict.fromkeys((NicFacts, LoginFacts), Absent("not asked"))


def judged(nodes: dict[str, Facts]) -> Judgement:
    """Judge nodes of which nothing else is known than what these facts tell."""
    return judge([all_reduce_failed], {name: {**BARE, **facts} for name, facts in nodes.items()})


def found(nodes: dict[str, Facts]) -> list[Finding]:
    return judged(nodes).findings


def outcomes(nodes: dict[str, Facts]) -> dict[str, Outcome]:
    return {verdict.nodes[0]: verdict.outcome for verdict in judged(nodes).verdicts}


def test_the_node_whose_own_log_names_the_cause_is_named_and_the_other_only_lost_it() -> None:
    nodes = probed(n1=broken(PAIR, REMOTE, CLOSED, code=6), n2=broken(PAIR, "unhandled system error", MEMLOCK, code=2))
    assert found(nodes) == [
        Finding("NC701", "all-reduce-failed", Severity.ERROR, ("n2",),
                "the all-reduce between two nodes failed in init on n2: the limit on locked memory is too low for "
                "InfiniBand; other possible causes: rank crashed or software bug; n1 only lost the connection",
                (MEMLOCK,), "ulimit -l", kind="look", summary="all-reduce failed"),
    ]  # fmt: skip
    assert outcomes(nodes) == {"n1": Outcome.PASSED, "n2": Outcome.FAILED}


def test_a_node_where_ranks_cannot_meet_is_named_alone_and_those_that_were_not_asked_are_not_gone() -> None:
    trio, why = step(3, "n1", "n2", "n3", stage=Stage.ALL), "n1 cannot take part in this step"
    no_meeting = ProbeFacts((NodeResult(trio, (), failure=StepFailure("meeting", "it has no address for a store")),))
    nodes = probed(n1=(), n2=(), n3=())
    nodes["n1"] = {ProbeFacts: no_meeting}
    nodes |= {name: {ProbeFacts: ProbeFacts((), (Skipped(trio, why),))} for name in ("n2", "n3")}
    assert [(one.nodes, one.message, one.evidence) for one in found(nodes)] == [
        (("n1",), "the all-reduce on 3 nodes failed in meeting on n1: it has no address for a store",
         ("it has no address for a store",)),
    ]  # fmt: skip
    assert outcomes(nodes) == {"n1": Outcome.FAILED, "n2": Outcome.UNKNOWN, "n3": Outcome.UNKNOWN}


def test_one_cause_over_many_steps_and_nodes_is_one_finding() -> None:
    other, whole = step(2, "n1", "n3"), step(3, "n1", "n2", "n3", stage=Stage.ALL)
    full = "Error: failed to extend /dev/shm/nccl-{} to 9637892 bytes, error: No space left on device (28)"
    nodes = probed(
        n1=(late(PAIR), late(other), late(whole)),
        n2=(broken(PAIR, "unhandled system error", full.format("a")), broken(whole, "error", full.format("b"))),
        n3=(broken(other, "unhandled system error", full.format("c")), late(whole)),
    )
    (finding,) = found(nodes)
    assert finding.nodes == ("n2", "n3")
    assert finding.message == (
        "the all-reduce between two nodes and 1 more failed in init on n[2-3]: the node's shared memory, /dev/shm, is "
        "too small for its ranks; n1 only lost the connection"
    )
    assert finding.evidence == tuple(full.format(name) for name in "acb")


def test_two_sure_causes_on_two_nodes_are_both_told() -> None:
    duplicate = "NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 3b000"
    files = "NCCL WARN socketTryAccept: Accept failed: Too many open files"
    nodes = probed(n1=broken(PAIR, "invalid usage", duplicate), n2=broken(PAIR, "unhandled system error", files))
    assert [(one.nodes, one.fix, one.kind) for one in found(nodes)] == [
        (("n1",), "nvidia-smi -L", "look"),
        (("n2",), "put into the script of the job, before it starts the ranks: ulimit -n 131072", "do"),
    ]  # fmt: skip


def test_versions_that_differ_are_seen_across_the_logs_of_both() -> None:
    said = "{}:61:62 [0] NCCL INFO NCCL version {}+cuda12.2"
    nodes = probed(n1=late(PAIR, said.format("n1", "2.18.3")), n2=late(PAIR, said.format("n2", "2.21.5")))
    (finding,) = found(nodes)
    assert (finding.nodes, finding.evidence) == (
        ("n1", "n2"),
        (said.format("n1", "2.18.3"), said.format("n2", "2.21.5")),
    )
    assert "use different versions of a library" in finding.message


def test_a_rank_that_was_killed_is_told_by_its_signal() -> None:
    nodes = probed(n1=broken(PAIR, REMOTE, CLOSED, code=6), n2=broken(PAIR, "the rank was killed", code=-9))
    (finding,) = found(nodes)
    assert (finding.nodes, finding.fix) == (("n2",), "sudo journalctl -k -g 'oom|segfault|Xid'")
    assert finding.message.endswith("failed in init on n2: a rank was killed by signal 9; n1 only lost the connection")


def test_words_that_triage_does_not_know_are_told_as_they_are() -> None:
    (finding,) = found(probed(n1=broken(step(1, "n1"), "the moon is full", at="libnccl")))
    assert finding.message == "the all-reduce inside the node failed in libnccl on n1: the moon is full"
    assert finding.fix == "ncheck nodes.txt --mesh all --probe none"


def test_who_came_least_far_is_named_where_ranks_stand_still_without_a_word() -> None:
    nodes = probed(n1=late(PAIR, at="init"), n2=late(PAIR, at="libcuda"))
    (finding,) = found(nodes)
    assert finding.nodes == ("n2",)
    assert "its ranks hung until their time was over, and the others waited for them; n1" in finding.message


def test_a_node_that_stands_still_with_everybody_is_named_and_its_partners_are_not() -> None:
    with_one, with_other, between = step(1, "n1", "n2"), step(2, "n2", "n3"), step(2, "n1", "n4")
    nodes = probed(
        n1=(late(with_one), well(between)), n2=(late(with_one), late(with_other)), n3=(late(with_other),),
        n4=well(between),
    )  # fmt: skip
    named = [one.nodes for one in found(nodes)]
    assert named == [("n2", "n3")]
    cleared = step(3, "n3", "n4")
    both = {**nodes, **probed(n3=(late(with_other), well(cleared)), n4=(well(between), well(cleared)))}
    assert [one.nodes for one in found(both)] == [("n2",)]


@pytest.mark.parametrize(
    "part",
    [
        late(PAIR, seconds=5.0),
        late(PAIR, at="all-reduce of 67108864 bytes", seconds=18.0, rows=rows()[:1], start=4.0),
        late(step(1, "n1", "n2", method=Method.GLOO), seconds=20.0),
    ],
)
def test_a_step_that_ran_out_of_the_probes_own_time_blames_nobody(part: NodeResult) -> None:
    nodes = probed(n1=part, n2=part)
    assert found(nodes) == []
    assert outcomes(nodes) == {"n1": Outcome.UNKNOWN, "n2": Outcome.UNKNOWN}


def test_a_large_size_that_never_comes_back_is_no_lack_of_time() -> None:
    part = late(PAIR, at="all-reduce of 67108864 bytes", seconds=60.0, rows=rows()[:1], start=2.0)
    (finding,) = found(probed(n1=part, n2=part))
    assert finding.nodes == ("n1", "n2")
    assert "failed in all-reduce of 67108864 bytes on n[1-2]: it hung until its time was over" in finding.message


def test_a_node_that_says_nothing_more_is_named_when_the_others_lost_it() -> None:
    nodes = probed(n1=broken(PAIR, REMOTE, CLOSED, code=6), n3=well(step(2, "n3")))
    (finding,) = found(nodes)
    assert (finding.nodes, finding.fix) == (("n2",), "ncheck nodes.txt --probe none")


def test_who_waits_for_a_node_that_went_down_is_not_blamed_for_the_silence() -> None:
    said = "n1:61:62 [0] NCCL WARN socketPollConnect: connect to 10.77.0.3<35561> returned Operation canceled, exceeded"
    (finding,) = found(probed(n1=late(PAIR, f"{said} error retry count after 35 attempts"), n3=well(step(2, "n3"))))
    assert finding.nodes == ("n2",)
    assert finding.message.endswith("on n2: it stopped answering during the step: the node or its network went down; "
                                    "n1 only lost the connection")  # fmt: skip


def test_a_cause_that_a_node_names_surely_outweighs_who_says_nothing() -> None:
    nodes = probed(n1=broken(PAIR, "cuMemAlloc_v2: out of memory (CUDA error 2)"), n3=well(step(2, "n3")))
    assert [one.nodes for one in found(nodes)] == [("n1",)]


def test_a_node_that_says_nothing_while_the_others_came_to_the_end_is_unknown() -> None:
    nodes = probed(n1=well(PAIR))
    assert found(nodes) == []
    verdicts = judged(nodes).verdicts
    assert [(one.nodes[0], one.outcome) for one in verdicts] == [("n1", Outcome.PASSED)]


def test_a_stage_that_was_never_begun_is_unknown_and_not_passed() -> None:
    skipped = ProbeFacts((well(step(1, "n1")),), (Skipped(step(2, "n1", "n2"), "no time was left"),))
    nodes: dict[str, Facts] = {"n1": {ProbeFacts: skipped}}
    (verdict,) = judged(nodes).verdicts
    assert (verdict.outcome, verdict.reason) == (
        Outcome.UNKNOWN,
        "the all-reduce between two nodes was skipped: no time was left",
    )


def test_a_run_over_sockets_alone_is_called_no_all_reduce() -> None:
    one = step(1, "n1", "n2", method=Method.TCP)
    (finding,) = found(probed(n1=broken(one, "the moon is full", at="moving 8 bytes each way"), n2=well(one)))
    assert finding.message.startswith("the TCP transfer between two nodes failed in moving 8 bytes each way on n1: ")


def test_it_is_silent_where_all_went_well_and_skipped_where_no_probe_ran() -> None:
    assert outcomes(probed(n1=well(PAIR), n2=well(PAIR))) == {"n1": Outcome.PASSED, "n2": Outcome.PASSED}
    none: dict[str, Facts] = {"n1": {ProbeFacts: Absent("--probe none")}}
    assert outcomes(none) == {"n1": Outcome.SKIPPED}


def test_what_perftest_says_is_told_by_its_own_checks() -> None:
    one = step(1, "n1", "n2", stage=Stage.RAIL, method=Method.RDMA)
    part = NodeResult(one, (), failure=StepFailure("", "Failed status 12: wr_id 0"))
    assert found(probed(n1=part, n2=part)) == []


def test_one_node_alone_is_judged_too() -> None:
    (finding,) = found(probed(n1=broken(step(1, "n1"), "cuMemAlloc_v2: out of memory (CUDA error 2)", at="init")))
    assert finding.message == "the all-reduce inside the node failed in init on n1: a GPU's memory is full"


def test_a_cause_that_ends_several_operations_is_one_finding_and_what_failed_is_named() -> None:
    other = step(2, "n1", "n2", op=Op.ALL_TO_ALL)
    system = ("unhandled system error", MEMLOCK)
    nodes = probed(n1=(well(PAIR), broken(other, REMOTE, CLOSED)), n2=(well(PAIR), broken(other, *system)))
    (finding,) = found(nodes)
    assert (finding.summary, finding.message.partition(": ")[0]) == (
        "all-to-all failed", "the all-to-all between two nodes failed in init on n2",
    )  # fmt: skip
    nodes = probed(n1=(broken(PAIR, REMOTE, CLOSED), well(other)), n2=(broken(PAIR, *system), broken(other, *system)))
    (finding,) = found(nodes)
    assert (finding.nodes, finding.summary) == (("n2",), "all-reduce and all-to-all failed")


def test_an_operation_that_was_skipped_is_unknown_though_another_was_measured() -> None:
    other = step(2, "n1", "n2", op=Op.ALL_TO_ALL)
    short = ProbeFacts((well(PAIR),), (Skipped(other, "no time left"),))
    verdicts = judged({"n1": {ProbeFacts: short}, "n2": {ProbeFacts: short}}).verdicts
    assert {one.outcome for one in verdicts} == {Outcome.UNKNOWN}
    assert {one.reason for one in verdicts} == {"the all-to-all between two nodes was skipped: no time left"}
