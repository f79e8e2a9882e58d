"""Rails of recorded nodes with eight HCAs each: who is asked what, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.tools import Tool, ToolFacts
from ncheck.model.fact import Absent
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, Stage
from ncheck.probe.rails import Rail, failing, rails, second_partners, slow
from ncheck.settings import Settings

from tests.ncheck.probe.driven import Driven, well

PERFTEST = ToolFacts({"ib_write_bw": Tool("/usr/bin/ib_write_bw")})
PINGPONG = ToolFacts({"ibv_rc_pingpong": Tool("/usr/bin/ibv_rc_pingpong")})
NODES = tuple(f"gpu0{number}" for number in range(1, 5))
HEAD = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
ENOUGH = Settings(probe_time=600.0)


def said(arguments: Mapping[str, Any], gbits: float) -> dict[str, Any]:
    text = " remote address: LID 0x04\n" + HEAD + f" {arguments['bytes']}    5000    {gbits}    {gbits}   0.1\n"
    output = {"stdout": text, "stderr": "", "exit_status": 0, "status": "ok", "reason": "", "seconds": 1.0}
    return {"rows": [], "output": output}


def driven(facts: ToolFacts = PERFTEST, slow_port: tuple[str, str] = ("", "")) -> Driven:
    def answers(arguments: Mapping[str, Any]) -> dict[str, Any]:
        if arguments["method"] != "rdma":
            return well(arguments)
        ends = {(node, f"{arguments['device']}:1") for node in arguments["group"]}
        return said(arguments, 180.0 if slow_port in ends else 391.0)

    return Driven(answers, ENOUGH, facts={node: {ToolFacts: facts} for node in NODES}).run()


def asked(run: Driven) -> list[Mapping[str, Any]]:
    return [one for one in run.asked if one["method"] == "rdma"]


def tried(run: Driven) -> Any:
    known = {node: facts[ProbeFacts] for node, facts in run.known.items()}
    held = {node: facts[InfinibandFacts] for node, facts in run.known.items()}
    return rails(known, held)  # type: ignore[arg-type]


def test_each_pair_tries_its_eight_rails_one_after_the_other_a_server_and_a_client_each() -> None:
    run = driven()
    pairs = {(tuple(one["group"]), one["device"]) for one in asked(run)}
    assert len(pairs) == 2 * 8
    assert {one["serves"] for one in asked(run)} == {True, False}
    assert {(one["tool"], one["hca_port"], one["gid"], one["bytes"]) for one in asked(run)} == {
        ("ib_write_bw", 1, None, 2**20)
    }
    by_round: dict[int, set[tuple[Any, ...]]] = {}
    for one in asked(run):
        by_round.setdefault(one["round"], set()).add((one["device"], one["address"], *one["ports"]))
    assert {len(told) for told in by_round.values()} == {2}  # two pairs at once, both of one rail, each a leader's own
    found = tried(run)
    assert (len(found), [*failing(found)], [*slow(found)]) == (16, [], [])
    assert {round(rail.gbits) for rail in found} == {391}


def test_a_slow_port_is_tried_with_a_second_partner_and_named_alone() -> None:
    run = driven(slow_port=("gpu02", "mlx5_3:1"))
    (suspect,) = slow(tried(run))
    assert (suspect.ports, len(suspect.shown)) == ((("gpu02", "mlx5_3:1"),), 2)
    assert [told for told, _ in run.told if "other partners" in told] == ["measuring rail 4, other partners"]


def test_a_slow_port_of_two_nodes_alone_names_both() -> None:
    ends = {(node, "mlx5_3:1") for node in ("a", "b")}
    assert second_partners([("a", "b")], []) == ()
    (suspects,) = slow((Rail((("a", "mlx5_3:1"), ("b", "mlx5_3:1")), 180.0, 400.0, None),))
    assert set(suspects.ports) == ends


def test_the_ends_of_bad_pairs_meet_well_ones_and_else_each_other() -> None:
    assert second_partners([("a", "b")], [("c", "d"), ("e", "f")]) == (("a", "c"), ("b", "d"))
    assert second_partners([("a", "b"), ("c", "d")], []) == (("a", "c"), ("b", "d"))
    assert second_partners([("a", "b")], [("b", "c")]) == (("a", "c"),)


def test_pingpong_proves_that_rails_work_and_tells_no_bandwidth() -> None:
    run = driven(PINGPONG)
    assert {(one["tool"], one["iterations"]) for one in asked(run)} == {("ibv_rc_pingpong", 1000)}


def test_without_the_tools_no_rail_is_tried_and_the_rest_goes_on() -> None:
    run = driven(ToolFacts({}))
    assert (asked(run), "measuring all" in [told for told, _ in run.told]) == ([], True)


def test_a_node_without_ports_takes_no_part() -> None:
    facts = {node: {ToolFacts: PERFTEST} for node in NODES}
    facts["gpu02"] = {**facts["gpu02"], InfinibandFacts: Absent("none")}  # type: ignore[dict-item]
    run = Driven(well, ENOUGH, facts=facts).run()  # type: ignore[arg-type]
    assert asked(run) == []
    assert Method.RDMA not in {result.step.method for facts in run.known.values() for result in _results(facts)}
    assert Stage.ALL in {result.step.stage for facts in run.known.values() for result in _results(facts)}


def _results(facts: Any) -> Any:
    held = facts.get(ProbeFacts)
    return held.results if isinstance(held, ProbeFacts) else ()
