"""The stages of the probe: their order, their time, and who is asked no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ncheck.facts.learning import facts_of
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.tools import Tool, ToolFacts
from ncheck.model.cluster import Cluster, Facts, FactType
from ncheck.model.evidence import Evidence, Login, Note
from ncheck.model.fact import Absent, Unread
from ncheck.model.op import Op
from ncheck.model.plan import Blocker
from ncheck.probe.facts import TASK, ProbeFacts, probed
from ncheck.probe.node_result import Skipped, Stage, Step, StepFailure
from ncheck.probe.results import collectives
from ncheck.probe.steps import cut_short
from ncheck.settings import RunContext, Settings

from .driven import Answers, Driven, evidence_of, fails, meets, well

ALL = ("gpu01", "gpu02", "gpu03", "gpu04")
OF_ALL = [
    "measuring inside", "measuring pairs, round 1", "measuring pairs, round 2", "measuring 2 nodes", "measuring all",
]  # fmt: skip


def outside(arguments: Mapping[str, Any], *nodes: str) -> bool:
    """Tell whether one of these nodes meets others in this step."""
    return arguments["stage"] != "inside" and not set(nodes).isdisjoint(arguments["group"])


def test_each_node_comes_first_then_pairs_then_some_then_all() -> None:
    driven = Driven().run()
    assert driven.stages() == OF_ALL
    assert driven.groups("measuring inside") == tuple((node,) for node in ALL)
    assert driven.groups("measuring pairs, round 1") == (("gpu01", "gpu02"), ("gpu03", "gpu04"))
    assert driven.groups("measuring all") == (ALL,)
    assert {one["stage"] for one in driven.asked if one["in_place"]} == {"inside", "all"}, "of which a curve is shown"
    assert [skipped for node in ALL for skipped in driven.probed(node).skipped] == []


def test_the_nics_alone_are_measured_last_where_that_is_asked_for() -> None:
    driven = Driven(settings=Settings(nic_test=True)).run()
    assert driven.stages() == [*OF_ALL, "measuring the NICs"]
    assert driven.groups("measuring the NICs") == tuple((node,) for node in ALL)
    (first, *_) = (one for one in driven.asked if one["method"] == "nics")
    assert (first["stage"], first["ranks"], first["net"], first["planned"][0]) == ("nics", [8], "IB", "mlx5_0:1")
    late = Driven(settings=Settings(nic_test=True, probe_time=60.0), seconds=7.0).run()
    assert late.stages()[-1] == "measuring the NICs", "no time is kept for what is measured already"
    others = Driven(settings=Settings(nic_test=True, ops=(Op.ALL_TO_ALL, Op.BROADCAST))).run().asked
    assert {one["op"] for one in others if one["method"] == "nics"} == {"all-reduce"}, "by which the NICs are judged"
    assert first["variables"] | {
        "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0",
        "NCCL_NET_DISABLE_INTRA": "0", "NCCL_NET": "IB",
    } == first["variables"]  # fmt: skip
    failing = Driven(
        lambda one: fails() if one["stage"] == "nics" else well(one), settings=Settings(nic_test=True)
    ).run()
    assert failing.stages() == driven.stages(), "that is no reason to leave a node out"


def test_each_hca_port_writes_to_itself_where_the_program_is_there() -> None:
    facts: dict[str, dict[FactType, object]] = {
        "gpu02": {ToolFacts: ToolFacts({"ib_write_bw": Tool("/usr/bin/ib_write_bw")})}
    }
    driven = Driven(settings=Settings(nic_test=True), facts=facts).run()
    ports = [one for one in driven.asked if one["method"] == "loopback"]
    assert driven.stages()[-9:] == [
        "measuring the NICs", *(f"measuring HCA port {port} of each node" for port in range(1, 9)),
    ]  # fmt: skip
    assert [(one["node"], one["device"], one["planned"], one["serves"]) for one in ports] == [
        ("gpu02", f"mlx5_{port}", [f"mlx5_{port}:1"], None) for port in range(8)
    ]
    assert [one["gpu"]["index"] for one in ports] == list(range(8)), "the nearest one"


def test_what_ran_at_the_same_time_has_one_number_and_each_turn_is_asked_once() -> None:
    driven = Driven().run()
    asked = [(one["round"], one["node"]) for one in driven.asked]
    assert len(asked) == len(set(asked))
    assert {one["round"] for one in driven.asked} == {1, 2, 3, 4, 5}
    assert all(one.whole for one in collectives({node: driven.probed(node) for node in ALL}))


def test_pairs_have_one_rank_a_node_and_all_have_every_gpu() -> None:
    ranks = {Stage(one["stage"]): one["ranks"] for one in Driven().run().asked}
    assert ranks == {
        Stage.INSIDE: [8], Stage.PAIR: [1, 1], Stage.SCALING: [8, 8], Stage.ALL: [8, 8, 8, 8],
    }  # fmt: skip


def test_each_step_has_a_rendezvous_of_its_own_and_its_nodes_the_same_one() -> None:
    ids: dict[tuple[str, str], set[tuple[int, str]]] = {}
    for one in Driven().run().asked:
        ids.setdefault((one["group"][0], one["id"]), set()).add((one["round"], one["group"][0]))
        assert len(one["id"]) == 256
    assert all(len(steps) == 1 for steps in ids.values())


def test_the_ranks_of_a_step_are_counted_through_its_nodes() -> None:
    last = {one["node"]: (one["first"], one["gpus"]) for one in Driven().run().asked if one["stage"] == "all"}
    assert last == {node: (8 * place, list(range(8))) for place, node in enumerate(ALL)}


def test_the_network_is_pinned_where_nodes_meet() -> None:
    nets = {(one["stage"], one["net"], one["variables"].get("NCCL_NET")) for one in Driven().run().asked}
    assert nets == {("inside", "", None), ("pair", "IB", "IB"), ("scaling", "IB", "IB"), ("all", "IB", "IB")}


def test_a_node_that_fails_by_itself_is_asked_no_more_and_the_rest_go_on() -> None:
    driven = Driven(lambda asked: fails() if "gpu02" in asked["group"] else well(asked)).run()
    assert driven.groups("measuring all") == (("gpu01", "gpu03", "gpu04"),)
    assert [result.failure for result in driven.probed("gpu02").results] == [StepFailure("init", "it broke")]


def test_a_node_that_hangs_with_two_partners_is_asked_no_more_and_they_are() -> None:
    driven = Driven(lambda asked: fails("late", late=True) if outside(asked, "gpu02") else well(asked)).run()
    assert driven.groups("measuring all") == (("gpu01", "gpu03", "gpu04"),)
    assert {result.step.group for result in driven.probed("gpu02").results if result.failure} >= {("gpu01", "gpu02")}
    assert driven.now - 100 < Settings().probe_time


def test_a_node_that_says_nothing_more_is_asked_no_more() -> None:
    driven = Driven(lambda asked: None if outside(asked, "gpu03") and asked["node"] == "gpu03" else well(asked)).run()
    assert driven.groups("measuring all") == (("gpu01", "gpu02", "gpu04"),)
    assert [one.silent for one in collectives({n: driven.probed(n) for n in ALL}) if not one.whole] == [("gpu03",)]


def test_where_all_pairs_fail_nothing_is_measured_of_all_and_that_is_told() -> None:
    driven = Driven(lambda asked: fails() if outside(asked, *ALL) else well(asked)).run()
    assert "measuring all" not in driven.stages()
    last = driven.probed("gpu01").skipped[-1]
    assert (last.step.stage, last.step.group) == (Stage.ALL, ALL)
    assert last.why.startswith("fewer than two nodes are left to measure (gpu[01,03]: it failed with gpu[02,04]; ")


def test_little_time_is_kept_for_all_nodes_together_and_the_rest_says_so() -> None:
    driven = Driven(settings=Settings(probe_time=16)).run()
    assert driven.stages()[-1] == "measuring all"
    skipped = driven.probed("gpu01").skipped
    assert Stage.PAIR in {one.step.stage for one in skipped}
    assert {one.why for one in skipped} == {"the time for the probe was over (--probe-time)"}


def test_no_time_at_all_measures_nothing_and_says_so_of_every_stage() -> None:
    driven = Driven(settings=Settings(probe_time=1)).run()
    assert driven.stages() == []
    stages = [one.step.stage for one in driven.probed("gpu01").skipped]
    assert stages == [Stage.INSIDE, Stage.PAIR, Stage.SCALING, Stage.ALL]


def test_a_step_that_hangs_costs_no_more_than_its_own_time() -> None:
    for broken in ("inside", "pair", "scaling", "all"):
        driven = Driven(_late_at(broken)).run()
        assert driven.now - 100 <= Settings().probe_time


def _late_at(stage: str) -> Answers:
    return lambda asked: fails(late=True) if asked["stage"] == stage else well(asked)


def test_a_node_where_ranks_cannot_meet_fails_in_its_own_words_and_leads_no_other() -> None:
    def meeting(asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"ids": []} if asked["node"] == "gpu01" else meets(asked)

    driven = Driven(meeting=meeting).run()
    assert [one.failure for one in driven.probed("gpu01").results if one.failure] == [
        StepFailure("meeting", "it has no meeting point for the ranks")
    ]
    assert driven.groups("measuring all") == (("gpu02", "gpu03", "gpu04"),)


def test_a_node_that_imports_torch_longer_than_there_is_time_is_not_measured_and_the_others_are() -> None:
    def driven(*slow: str) -> Driven:
        return Driven(meeting=lambda asked: {"importing": 31.7} if asked["node"] in slow else meets(asked)).run()

    one = driven("gpu01")
    (note,) = one.probed("gpu01").skipped
    assert (note.step.stage, note.why) == (Stage.ALL, "torch takes more than 32 s to import on gpu01")
    assert one.probed("gpu01").results == ()
    assert one.groups("measuring all") == (("gpu02", "gpu03", "gpu04"),)
    assert [failed for node in one.known for failed in one.probed(node).results if failed.failure] == []

    every = driven("gpu01", "gpu02", "gpu03", "gpu04")
    assert every.stages() == []
    assert [one.why for one in every.probed("gpu03").skipped] == [
        "fewer than two nodes are left to measure (gpu[01-04]: torch takes more than 32 s to import)"
    ]


def test_named_sizes_are_those_of_the_nodes_and_of_all_and_bound_the_others() -> None:
    sizes = {one["stage"]: one["sizes"] for one in Driven(settings=Settings(sizes=(8, 2**22))).run().asked}
    assert sizes == {"inside": [8, 2**22], "pair": [2**20], "scaling": [2**20], "all": [8, 2**22]}


def test_no_size_is_asked_for_that_the_gpus_have_no_room_for() -> None:
    sizes = {tuple(one["sizes"]) for one in Driven(settings=Settings(sizes=(2**20, 64 * 2**30))).run().asked}
    assert sizes == {(2**20,), (2**20, 2**26, 2**30)}


def test_what_stands_against_the_plan_is_told_and_nothing_is_asked() -> None:
    polls = Blocker("NC402 ib-port-polling on gpu02: it polls", ("gpu02",), code="NC402")
    driven = Driven(against=(polls, Blocker("another", ()), Blocker("a third", ()))).run()
    assert driven.told == [("", ())]
    why = "fix NC402 first"
    assert [driven.known[node][ProbeFacts] for node in ALL] == [Absent(why)] * 4


def test_who_has_asked_for_it_is_left_without_an_answer_then() -> None:
    for settings in (Settings(probe="nccl"), Settings(run=RunContext(probe_wanted=True))):
        driven = Driven(settings=settings, against=(Blocker("NC201 one thing", (), code="NC201"),)).run()
        why = "fix NC201 first"
        assert driven.known["gpu01"][ProbeFacts] == Unread(why, fix="ncheck explain NC201")


def test_force_measures_all_the_same() -> None:
    assert Driven(settings=Settings(force=True), against=(Blocker("one thing", ()),)).run().stages() == OF_ALL


def test_the_rest_is_measured_without_the_nodes_that_are_left_out() -> None:
    driven = Driven(dropped={"gpu02": "NC402"}, settings=Settings(probe="nccl")).run()
    assert driven.groups("measuring all") == (("gpu01", "gpu03", "gpu04"),)
    assert driven.known["gpu02"][ProbeFacts] == Absent("left out by --drop-bad")


DROPPING = Settings(drop_bad=True)


def test_who_is_bad_by_what_the_pairs_told_is_left_out_of_more_nodes_and_that_is_noted() -> None:
    driven = Driven(dropped_later={"gpu02": "NC710"}, settings=DROPPING).run()
    assert driven.groups("measuring 2 nodes") == (("gpu01", "gpu03"),)
    assert driven.groups("measuring all") == (("gpu01", "gpu03", "gpu04"),)
    (skipped,) = driven.probed("gpu02").skipped
    assert (skipped.step.stage, skipped.step.group, skipped.why) == (Stage.ALL, ALL, "--drop-bad left out gpu02")
    assert [driven.probed(node).skipped for node in ("gpu01", "gpu03", "gpu04")] == [(), (), ()]


def test_where_nobody_would_be_left_all_are_measured() -> None:
    driven = Driven(dropped_later=dict.fromkeys(ALL, "NC721"), settings=DROPPING).run()
    assert (driven.stages(), driven.groups("measuring all")) == (OF_ALL, (ALL,))


def test_one_node_that_is_left_meets_nobody() -> None:
    driven = Driven(dropped_later=dict.fromkeys(ALL[1:], "NC710"), settings=DROPPING).run()
    assert "measuring all" not in driven.stages()
    assert driven.probed("gpu01").skipped == ()


MOE = Settings(ops=(Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL))


def asked_of(driven: Driven) -> list[tuple[str, str, list[str]]]:
    """Return what was asked, once for each group: the operation, the stage and the group."""
    return [(one["op"], one["stage"], one["group"]) for one in driven.asked if one["node"] == one["group"][0]]


def test_further_operations_have_each_node_one_round_of_pairs_and_all() -> None:
    driven = Driven(settings=MOE).run()
    further = ["measuring inside", "measuring pairs, round 1", "measuring all"]
    assert driven.stages() == OF_ALL + [f"{name}: {op.value}" for op in MOE.ops[1:] for name in further]
    first, rest = asked_of(Driven().run()), asked_of(driven)
    assert rest[: len(first)] == first
    assert rest[len(first) :] == [
        (op.value, stage, list(group))
        for op in MOE.ops[1:]
        for stage, groups in (
            ("inside", [(node,) for node in ALL]), ("pair", [ALL[:2], ALL[2:]]), ("all", [ALL]),
        )
        for group in groups
    ]  # fmt: skip
    assert [driven.probed(node).skipped for node in ALL] == [()] * 4
    results = driven.probed("gpu01").results
    assert [one.step.op for one in results[5:]] == [op for op in MOE.ops[1:] for _ in range(3)]


def test_a_pair_that_is_slow_in_one_operation_alone_has_second_partners_in_that_one() -> None:
    def answers(asked: Mapping[str, Any]) -> dict[str, Any]:
        slow = asked["op"] == "all-to-all" and asked["stage"] == "pair" and "gpu02" in asked["group"]
        return well(asked, 4e9 if slow else 40e9)

    driven = Driven(answers, settings=MOE).run()
    pairs = [(op, group) for op, stage, group in asked_of(driven) if stage == "pair"]
    assert {op: [group for one, group in pairs if one == op] for op in ("all-gather", "reduce-scatter")} == {
        "all-gather": [["gpu01", "gpu02"], ["gpu03", "gpu04"]],
        "reduce-scatter": [["gpu01", "gpu02"], ["gpu03", "gpu04"]],
    }
    partners = {(set(group) - {"gpu02"}).pop() for op, group in pairs if op == "all-to-all" and "gpu02" in group}
    assert len(partners) > 1
    assert asked_of(driven)[-1] == ("all-to-all", "all", list(ALL))


def test_who_fails_in_a_further_operation_is_measured_in_the_next_one() -> None:
    def answers(asked: Mapping[str, Any]) -> dict[str, Any]:
        return fails() if asked["op"] == "all-gather" and "gpu02" in asked["group"] else well(asked)

    driven = Driven(answers, settings=MOE).run()
    assert [(op, group) for op, stage, group in asked_of(driven) if stage == "all"] == [
        ("all-reduce", list(ALL)), ("all-gather", ["gpu01", "gpu03", "gpu04"]), ("reduce-scatter", list(ALL)),
        ("all-to-all", list(ALL)),
    ]  # fmt: skip


def test_the_first_operation_has_the_time_that_it_has_alone_and_the_others_share_the_rest() -> None:
    for seconds in (16.0, 30.0, 120.0):
        alone, driven = (Driven(settings=replace(one, probe_time=seconds)).run() for one in (Settings(), MOE))
        assert asked_of(driven)[: len(asked_of(alone))] == asked_of(alone)
        limits = [one["timeout"] for one in driven.asked][: len(alone.asked)]
        assert limits == [one["timeout"] for one in alone.asked]
    hanging = Driven(lambda one: well(one) if one["op"] == "all-reduce" else fails(late=True), settings=MOE).run()
    assert hanging.now - 100 <= MOE.probe_time
    assert {op for op, _, _ in asked_of(hanging)} == {op.value for op in MOE.ops}


def test_what_runs_no_operation_is_not_called_by_the_one_that_is_measured() -> None:
    tools: Mapping[FactType, object] = {ToolFacts: ToolFacts({"ib_write_bw": Tool("/usr/bin/ib_write_bw")})}
    driven = Driven(settings=Settings(ops=(Op.ALL_TO_ALL, Op.ALL_GATHER)), facts=dict.fromkeys(ALL, tools)).run()
    assert driven.stages()[:3] == [
        "measuring inside: all-to-all", "measuring pairs, round 1: all-to-all", "measuring rail 1, round 1",
    ]  # fmt: skip
    asked = [(stage, op) for op, stage, _ in asked_of(driven)]
    assert {op for stage, op in asked if stage == "rail"} == {"all-reduce"}
    assert "rail" not in [stage for stage, _ in asked[asked.index(("inside", "all-gather")) :]]


def test_an_operation_that_the_method_lacks_is_skipped_with_the_reason() -> None:
    old: Mapping[FactType, object] = {LoadedNcclFacts: LoadedNcclFacts("2.6.4", "/lib/libnccl.so.2")}
    driven = Driven(settings=MOE, facts=dict.fromkeys(ALL, old)).run()
    assert "measuring all: reduce-scatter" in driven.stages()
    why = "NCCL before 2.7 on gpu[01-04] has no all-to-all"
    skipped = [(one.step.round, one.step.stage, one.step.op, one.why) for one in driven.probed("gpu01").skipped]
    assert skipped == [
        (number, stage, Op.ALL_TO_ALL, why) for number, stage in ((12, Stage.INSIDE), (13, Stage.PAIR), (14, Stage.ALL))
    ]


def tabled(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer as the agent does with the table of nccl-tests."""
    ranks = [f"#  Rank  {rank} Group  0 Pid 1 on n1 device  {rank} [0000:0f:00] H100" for rank in range(8)]
    rows = [f"{size} 1 float sum -1 {size / 4e4} 1.0 1.0 0 {size / 4e4} 1.0 1.0 0" for size in asked["sizes"]]
    head = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
    text = "\n".join((*ranks, head, *rows, "# Out of bounds values : 0 OK"))
    return {"rows": [], "output": {"stdout": text, "stderr": "", "exit_status": 0, "status": "ok", "seconds": 1.0}}


def test_an_operation_without_its_program_of_nccl_tests_is_skipped_on_every_stage() -> None:
    alone = Tool("/opt/bin/all_reduce_perf", mpi=False)
    tools: Mapping[FactType, object] = {ToolFacts: ToolFacts({"all_reduce_perf": alone})}
    settings = Settings(probe="nccl-tests", ops=(Op.ALL_REDUCE, Op.SEND_RECV))
    driven = Driven(tabled, settings=settings, facts=dict.fromkeys(ALL, tools)).run()
    no_mpi = "all_reduce_perf on gpu[01-04] was built without MPI and would test each GPU alone: make MPI=1"
    none = "no sendrecv_perf beside all_reduce_perf on gpu[01-04]"
    assert [(one.step.op, one.step.stage, one.why) for one in driven.probed("gpu01").skipped] == [
        (Op.ALL_REDUCE, Stage.PAIR, no_mpi), (Op.ALL_REDUCE, Stage.SCALING, no_mpi), (Op.ALL_REDUCE, Stage.ALL, no_mpi),
        (Op.SEND_RECV, Stage.INSIDE, none), (Op.SEND_RECV, Stage.PAIR, none), (Op.SEND_RECV, Stage.ALL, none),
    ]  # fmt: skip


def test_nodes_that_were_not_reached_have_no_part() -> None:
    driven = Driven(cluster="one-node-down").run()
    assert driven.groups("measuring all") == (("gpu01", "gpu02", "gpu04"),)


def test_a_node_that_is_lost_on_the_way_is_asked_no_more() -> None:
    def lost(asked: Mapping[str, Any]) -> dict[str, Any] | None:
        if asked["node"] == "gpu04" and asked["stage"] == "pair":
            login = driven.known["gpu04"][LoginFacts]
            assert isinstance(login, LoginFacts)
            driven.known["gpu04"] = {**driven.known["gpu04"], LoginFacts: _cut(login)}
            return None
        return well(asked)

    driven = Driven(lost)
    driven.run()
    assert driven.groups("measuring all") == (("gpu01", "gpu02", "gpu03"),)


def _cut(login: LoginFacts) -> LoginFacts:
    from ncheck.model.evidence import Cause

    return replace(login, login=replace(login.login, cause=Cause.CLOSED))


def test_what_an_interrupt_cuts_short_is_noted_as_not_tried() -> None:
    driven = Driven().run()
    early: dict[str, Facts] = {node: {ProbeFacts: ProbeFacts(driven.probed(node).results[:1])} for node in ALL[:3]}
    notes = noted({**early, "gpu04": {}})
    source, note = notes["gpu01"]
    facts = probed(Evidence("gpu01", Login(reached=True), notes={source: note}))
    assert isinstance(facts, ProbeFacts)
    (skipped,) = facts.skipped
    assert (skipped.step.stage, skipped.step.group, skipped.why) == (
        Stage.ALL, ("gpu01", "gpu02", "gpu03"), "ncheck was interrupted",
    )  # fmt: skip
    assert notes["gpu04"] == (TASK.key, Note("ncheck was interrupted", failed=True, remedy="probe"))
    assert noted({"gpu01": {ProbeFacts: Absent("--probe none")}}) == {}


def test_what_is_noted_of_an_interrupt_takes_the_place_of_no_earlier_note() -> None:
    *measured, last = Driven().run().probed("gpu01").results
    earlier = Skipped(last.step, "--drop-bad left out gpu01")
    notes = noted({"gpu01": {ProbeFacts: ProbeFacts(tuple(measured), (earlier,))}})
    assert notes["gpu01"][0] == f"answer:step#{last.step.round + 1}"


def noted(known: Mapping[str, Facts]) -> dict[str, tuple[str, Note]]:
    """Return what an interrupt notes on reached nodes of which this is known, with its key."""
    reached = {name: {LoginFacts: LoginFacts(Login(reached=True)), **facts} for name, facts in known.items()}
    evidence = cut_short(Cluster.of(reached), "ncheck was interrupted")
    return {one.node: next(iter(one.notes.items())) for one in evidence}


def test_a_recording_of_it_tells_the_same() -> None:
    driven = Driven(lambda asked: fails("late", late=True) if outside(asked, "gpu02") else well(asked)).run()
    for evidence in evidence_of(driven):
        assert facts_of(evidence, [ProbeFacts])[ProbeFacts] == driven.known[evidence.node][ProbeFacts]


def test_steps_are_read_back_as_they_were_asked() -> None:
    results = Driven(settings=Settings(expect=380.0, repeats=9)).run().probed("gpu01").results
    assert results[-1].step == Step(
        5, Stage.ALL, results[0].step.method, ALL, (8, 8, 8, 8),
        (8, 65536, 2**20, 2**24, 2**28, 2**30), "agents", "IB", 380.0, 9,
    )  # fmt: skip
    assert results[-1].planned == (*(f"mlx5_{number}:1" for number in range(8)), "eno1")
