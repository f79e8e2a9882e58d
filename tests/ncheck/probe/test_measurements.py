"""What was measured as the report tells it: folded, named, and never more than was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ncheck.facts.login import LoginFacts
from ncheck.model.evidence import Cause, Login
from ncheck.model.fact import Absent, Unread
from ncheck.model.op import Op
from ncheck.model.report import Measurement, Pair, Point, Probe, Protocol, Standing, Traffic
from ncheck.probe.expected import Expected
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.measurements import measured, measured_with
from ncheck.probe.node_result import Carried, Method, NodeResult, Row, Skipped, Stage, Step, StepFailure, Timing
from ncheck.probe.results import Collective
from ncheck.probe.skip_reason import Facts

GIB = 2**30


def row(busbw: float, world: int, size: int = GIB, op: Op = Op.ALL_REDUCE) -> Row:
    """Return a row that comes to this bus bandwidth in GB/s with so many ranks."""
    seconds = size * op.bus_factor(world) / (busbw * 1e9)
    return Row(size, in_place=False, seconds=seconds, fastest=seconds, slowest=seconds, wrong=0)


def step(stage: Stage, *group: str, ranks: int = 1, number: int = 1, method: Method = Method.NCCL) -> Step:
    return Step(number, stage, method, group, (ranks,) * len(group), (GIB,))


def ran(step: Step, busbw: float) -> dict[str, NodeResult]:
    rows = (row(busbw, step.world, op=step.op),)
    return {node: NodeResult(step, rows, version="2.21.5") for node in step.group}


def failed(step: Step, words: str) -> dict[str, NodeResult]:
    return {node: NodeResult(step, (), version="2.21.5", failure=StepFailure("init", words)) for node in step.group}


def facts(parts: Sequence[Mapping[str, NodeResult]], **others: object) -> dict[str, Facts]:
    results: dict[str, tuple[NodeResult, ...]] = {}
    for part in parts:
        for node, result in part.items():
            results[node] = (*results.get(node, ()), result)
    held: dict[str, object] = {node: ProbeFacts(own) for node, own in results.items()}
    return {node: {ProbeFacts: one} for node, one in {**held, **others}.items()}


def nothing_known(_: Collective) -> Expected:
    return Expected(None, unknown=("the NICs' rates",))


def four_hundred(_: Collective) -> Expected:
    return Expected(400.0, "the 8 x 400 Gb/s NICs", ("7 of 8 rails on n2",))


def words(made: Sequence[Measurement]) -> list[tuple[str, float | None, tuple[str, ...]]]:
    return [(one.what, one.measured, one.nodes) for one in made]


def test_one_collective_is_told_whole_with_what_it_should_have_reached_and_its_curve() -> None:
    one = step(Stage.ALL, "n1", "n2", ranks=8)
    (made,), probe = measured_with(facts([ran(one, 380.0)]), four_hundred)
    seconds = row(380.0, 16).seconds
    assert made == Measurement(
        "all-reduce on 2 nodes", 380.0, 400.0, "GB/s", "the 8 x 400 Gb/s NICs", ("n1", "n2"), "NCCL 2.21.5", "all", 16,
        ("7 of 8 rails on n2",), (),
        (Point(GIB, in_place=False, seconds=seconds, algbw=202.667, busbw=380.0, wrong=0),), standing=Standing.OK,
    )  # fmt: skip
    assert made.ratio == 0.95
    how = "all-reduce by NCCL 2.21.5, started by ncheck"
    assert probe == Probe(ran=True, reason=how, means="nccl", launcher="agents", version="2.21.5", rounds=1)


def protocol(*timings: Timing | None, method: Method = Method.NCCL) -> tuple[Protocol | None, tuple[Point, ...]]:
    """Return the protocol and the curve of a step that wanted five repeats; its sizes were timed so."""
    one = replace(step(Stage.ALL, "n1", "n2", method=method), repeats=5)
    rows = [replace(row(100.0, 2, GIB << place), timing=timing) for place, timing in enumerate(timings)]
    noisy = tuple(replace(row, fastest=row.seconds * 0.9, slowest=row.seconds * 1.3) for row in rows)
    (made,), _ = measured_with(facts([{node: NodeResult(one, noisy) for node in one.group}]), four_hundred)
    return made.protocol, made.curve


def test_a_value_says_how_its_size_was_timed_and_each_size_how_often() -> None:
    told, curve = protocol(Timing(2, 5, 20), Timing(2, 3))
    assert told == Protocol("median", 3, 2, 1, wanted=5, spread=0.4)
    assert [(point.repeats, point.spread) for point in curve] == [(5, 0.4), (3, 0.4)]
    told, _ = protocol(Timing(1, 5), method=Method.NCCL_TESTS)
    assert told == Protocol("mean", 5, 1, 1, wanted=5), "of single repeats nccl-tests says nothing"
    assert protocol(Timing(2, 1)) == (Protocol("median", 1, 2, wanted=5), (replace(curve[0], repeats=1, spread=None),))
    told, curve = protocol(None)
    assert (told, curve[0].repeats, curve[0].spread) == (None, None, None)


def test_nodes_that_gave_alike_inside_are_told_as_one_and_the_odd_one_by_itself() -> None:
    speeds = {"n1": 471.0, "n2": 475.0, "n3": 240.0, "n4": 473.0}
    runs = [ran(step(Stage.INSIDE, node, ranks=8), speed) for node, speed in speeds.items()]
    made, _ = measured_with(facts(runs), nothing_known)
    what = "all-reduce inside the node"
    assert words(made) == [(what, 473.0, ("n1", "n2", "n4")), (what, 240.0, ("n3",))]
    assert {one.unknown for one in made} == {("the NICs' rates",)}


def test_a_port_that_wrote_to_itself_is_told_with_its_latency_and_whose_memory_it_was() -> None:
    alone = Step(2, Stage.NICS, Method.LOOPBACK, ("n1",), (1,), (2, GIB))
    small = Row(2, in_place=False, seconds=1.87e-6, fastest=1.79e-6, slowest=2.03e-6)
    result = NodeResult(alone, (small, row(48.9, 1)), ("mlx5_3:1",), used=("GPU 3",))
    inside = ran(step(Stage.INSIDE, "n1", ranks=8), 470.0)
    made, probe = measured_with(facts([inside, {"n1": result}]), nothing_known)
    what = "RDMA of mlx5_3:1 to itself, from the memory of GPU 3: 1.87 us for 2 bytes, 99 % within 2.03 us"
    assert words(made)[1:] == [(what, 48.9, ("n1",))]
    assert (probe.means, made[1].by) == ("nccl", "the HCAs alone, no library")
    other = replace(result, step=replace(alone, round=3), planned=("mlx5_4:1",))
    (_, folded), _ = measured_with(facts([inside, {"n1": result}, {"n1": other}]), nothing_known)
    assert folded.what.endswith(" within 2.03 us: 2 HCA ports with about the same result")


def test_of_many_pairs_the_best_the_middle_and_the_worst_are_named_and_all_are_in_the_picture() -> None:
    pairs = [("n1", "n2", 48.0, 1), ("n3", "n4", 21.0, 1), ("n1", "n3", 47.0, 2)]
    made, probe = measured_with(
        facts([ran(step(Stage.PAIR, a, b, number=at), speed) for a, b, speed, at in pairs]), four_hundred
    )
    what = "all-reduce between two nodes, one rank each"
    assert words(made) == [
        (f"{what}: the best of 3 pairs of nodes", 48.0, ("n1", "n2")),
        (f"{what}: the middle of 3 pairs of nodes", 47.0, ("n1", "n3")),
        (f"{what}: the worst of 3 pairs of nodes", 21.0, ("n3", "n4")),
    ]
    slow = Standing.FAR_TOO_LOW  # all of them are far below 400
    assert probe.pairs == tuple(Pair(nodes, busbw, slow) for nodes, busbw in (
        (("n1", "n2"), 48.0), (("n3", "n4"), 21.0), (("n1", "n3"), 47.0),
    ))  # fmt: skip
    assert probe.rounds == 2


def test_pairs_that_are_alike_are_one_line_and_one_that_failed_says_why_and_has_no_value() -> None:
    parts = [
        ran(step(Stage.PAIR, "n1", "n2"), 48.0), ran(step(Stage.PAIR, "n3", "n4"), 47.0),
        failed(step(Stage.PAIR, "n1", "n3", number=2), "no route to host"),
    ]  # fmt: skip
    (alike, lost), probe = measured_with(facts(parts), nothing_known)
    assert alike.what.endswith(": 2 pairs of nodes with about the same result")
    assert alike.nodes == ("n1", "n2", "n3", "n4")
    assert (lost.measured, lost.curve, lost.failed) == (None, (), "n[1,3]: init: no route to host")
    assert probe.pairs[2] == Pair(("n1", "n3"), None, Standing.FAILED)


def test_more_nodes_are_told_with_what_they_keep_of_what_fewer_have() -> None:
    two, four = step(Stage.SCALING, "n1", "n2", ranks=8), step(Stage.ALL, "n1", "n2", "n3", "n4", ranks=8, number=2)
    made, _ = measured_with(facts([ran(two, 400.0), ran(four, 200.0)]), four_hundred)
    assert [(one.what, one.efficiency) for one in made] == [
        ("all-reduce on 2 nodes", None), ("all-reduce on 4 nodes", 0.5),
    ]  # fmt: skip


def test_a_node_of_the_group_that_tells_nothing_leaves_no_value() -> None:
    one = step(Stage.ALL, "n1", "n2", ranks=8)
    results = {"n1": ran(one, 380.0)["n1"]}
    (made,), probe = measured_with(facts([results], n2=Unread("the connection ended")), four_hundred)
    assert (made.measured, made.failed) == (None, "n2: reported nothing")
    assert probe.notes == ("not measured on n2: the connection ended",)


def test_a_run_on_cpus_never_calls_itself_nccl() -> None:
    for method in (Method.GLOO, Method.TCP, Method.RDMA):
        (made,), probe = measured_with(facts([ran(step(Stage.PAIR, "n1", "n2", method=method), 1.0)]), nothing_known)
        assert "nccl" not in (made.what + made.by + probe.reason + probe.means).lower()


def test_what_each_device_carried_is_of_the_step_of_all_nodes_and_one_that_should_have_is_told_with_nothing() -> None:
    first, second = step(Stage.PAIR, "n1", "n2"), step(Stage.ALL, "n1", "n2", number=2)
    part = NodeResult(first, (), ("mlx5_0:1", "eth0"), {"mlx5_0:1": Carried(900, 900)})
    together = {"mlx5_0:1": Carried(0, 0), "eth0": Carried(5, 7), "eth1": Carried(0, 0)}
    again = NodeResult(second, (), ("mlx5_0:1", "eth0"), together)
    _, probe = measured_with({"n1": {ProbeFacts: ProbeFacts((part, again))}}, nothing_known)
    by_rail, by_wire = Traffic("n1", "mlx5_0:1", 0, 0, planned=True), Traffic("n1", "eth0", 5, 7, planned=False)
    assert probe.traffic == (by_rail, by_wire)


def test_without_a_step_of_all_nodes_it_is_the_sum_of_all_steps() -> None:
    results = tuple(
        NodeResult(step(Stage.PAIR, "n1", other, number=number), (), ("eth0",), {"eth0": Carried(5, 7)})
        for number, other in enumerate(("n2", "n3"), 1)
    )
    _, probe = measured_with({"n1": {ProbeFacts: ProbeFacts(results)}}, nothing_known)
    assert probe.traffic == (Traffic("n1", "eth0", 10, 14, planned=True),)


def test_what_was_not_begun_and_what_the_means_do_not_tell_of_is_noted_once() -> None:
    last = Skipped(step(Stage.ALL, "n1", "n2", number=2), "the time for the probe was over")
    results = ran(step(Stage.PAIR, "n1", "n2", method=Method.TCP), 1.0)
    note = "the GPUs were not measured: no NCCL"
    held: dict[str, Facts] = {n: {ProbeFacts: ProbeFacts((result,), (last,), note)} for n, result in results.items()}
    _, probe = measured_with(held, nothing_known)
    assert probe.notes == (note, "not measured on all 2 nodes together: the time for the probe was over")
    nothing = ProbeFacts((), (last,))
    _, probe = measured_with({"n1": {ProbeFacts: nothing}}, nothing_known)
    assert probe == Probe(ran=False, reason="the time for the probe was over")


def test_where_nothing_ran_the_true_reason_is_told_folded_and_nothing_suggests_a_measurement() -> None:
    why = Absent("--probe none")
    assert measured({"n1": {ProbeFacts: why}, "n2": {ProbeFacts: why}}) == (
        (), Probe(ran=False, reason="--probe none"),
    )  # fmt: skip
    busy, silent = Absent("GPUs are in use"), Unread("it hangs")
    _, probe = measured({"n1": {ProbeFacts: busy}, "n2": {ProbeFacts: silent}, "n3": {ProbeFacts: busy}})
    assert probe.reason == "n[1,3]: GPUs are in use; n2: it hangs"
    blocked = Absent("blocked by NC201 nccl-version-differs on n1")
    refused = LoginFacts(Login(reached=False, cause=Cause.REFUSED))
    unreached: Facts = {LoginFacts: refused, ProbeFacts: Unread("not reached (refused)")}
    _, probe = measured({"n1": {ProbeFacts: blocked}, "n2": unreached})
    assert probe.reason == "blocked by NC201 nccl-version-differs on n1"
    assert measured({"n2": unreached})[1].reason == "not reached (refused)"
    assert measured({"n1": {}})[1].reason == "no check that was selected needs it"


def of(one: Step, op: Op) -> Step:
    return replace(one, op=op)


def test_each_operation_is_told_by_itself_and_named() -> None:
    pairs, rest = (step(Stage.PAIR, "n1", "n2"), step(Stage.PAIR, "n3", "n4")), step(Stage.ALL, "n1", "n2", number=2)
    swapped = [(of(pairs[0], Op.ALL_TO_ALL), 47.0), (of(pairs[1], Op.ALL_TO_ALL), 21.0)]
    parts = [ran(one, 48.0) for one in pairs] + [ran(one, busbw) for one, busbw in swapped]
    made, probe = measured_with(facts([*parts, ran(rest, 380.0)], n5=Unread("gone")), nothing_known)
    sums, parted = (f"{op} between two nodes, one rank each" for op in ("all-reduce", "all-to-all"))
    assert [(one.op, one.what, one.measured) for one in made] == [
        ("all-reduce", f"{sums}: 2 pairs of nodes with about the same result", 48.0),
        ("all-reduce", "all-reduce on 2 nodes", 380.0),
        ("all-to-all", f"{parted}: the best of 2 pairs of nodes", 47.0),
        ("all-to-all", f"{parted}: the worst of 2 pairs of nodes", 21.0),
    ]
    assert [(pair.op, pair.nodes, pair.busbw) for pair in probe.pairs] == [
        ("all-reduce", ("n1", "n2"), 48.0), ("all-reduce", ("n3", "n4"), 48.0),
        ("all-to-all", ("n1", "n2"), 47.0), ("all-to-all", ("n3", "n4"), 21.0),
    ]  # fmt: skip
    assert probe.reason == "all-reduce and all-to-all by NCCL 2.21.5, started by ncheck"
    assert probe.notes == ("not measured on n5: gone",)


def test_pairs_of_one_operation_are_slow_beside_pairs_of_the_same_only() -> None:
    everybody = [("n1", "n2", 1), ("n3", "n4", 1), ("n2", "n3", 2), ("n4", "n1", 2)]
    steps = [step(Stage.PAIR, one, other, number=number) for one, other, number in everybody]
    parts = [ran(of(one, op), busbw) for op, busbw in ((Op.ALL_REDUCE, 48.0), (Op.ALL_TO_ALL, 9.0)) for one in steps]
    _, probe = measured_with(facts(parts), nothing_known)
    assert {pair.standing for pair in probe.pairs} == {Standing.OK}


def test_operations_after_which_devices_differ_by_nature_leave_no_traffic_to_judge() -> None:
    one = NodeResult(of(step(Stage.ALL, "n1", "n2"), Op.SEND_RECV), (), ("eth0",), {"eth0": Carried(5, 7)})
    _, probe = measured_with({"n1": {ProbeFacts: ProbeFacts((one,))}}, nothing_known)
    assert probe.traffic == ()
