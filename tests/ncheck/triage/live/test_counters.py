"""Counters of a job's nodes: whether data flows, and what is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ncheck.model.cluster import Cluster, Facts
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.counters import CountersFacts, NicTraffic, PortTraffic, TcpTraffic
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.sockets import SocketsFacts
from ncheck.triage.live.counters import signs

from .jobs import job, process, rank, spread
from .wired import named

MUCH, LITTLE = 50_000_000, 20_000


def facts(
    sent: int = LITTLE, received: int = LITTLE, resent: int = 0, segments: int = 500, **more: Any
) -> CountersFacts:
    traffic = {"lo": NicTraffic(10**10, 10**10), "eth0": NicTraffic(sent, received, 1000)}
    return replace(CountersFacts({"net:[1]": traffic}, {"net:[1]": TcpTraffic(segments, resent)}, {}), **more)


def said(*nodes: CountersFacts, **words: Any) -> list[Sign]:
    of = spread(len(nodes), len(nodes))
    return list(signs(of, Cluster.of({f"node{at}": {CountersFacts: one} for at, one in enumerate(nodes)}), **words))


def motions(found: list[Sign]) -> list[bool]:
    return [one.moves for one in found if isinstance(one, Motion)]


@pytest.mark.parametrize(
    ("nodes", "moves"),
    [
        ([facts(MUCH, MUCH)] * 2, [True]),
        ([facts()] * 2, [False]),
        ([facts(2_000_000, 2_000_000)] * 2, []),  # too much for silence, too little for gradients
        ([facts(LITTLE, MUCH)] * 2, []),  # both read from a file server
        ([facts(MUCH, MUCH), facts()], []),
        ([facts(ports={"mlx5_0:1": PortTraffic("ACTIVE", MUCH, MUCH)})] * 2, [True]),
        ([facts(MUCH, MUCH)], []),  # one node: what flows is not between ranks
    ],
)
def test_data_flows_where_every_node_sends_and_receives_much(nodes: list[CountersFacts], moves: list[bool]) -> None:
    found = said(*nodes)
    assert (motions(found), named(found)) == (moves, [])


def test_data_between_nodes_that_another_job_uses_too_says_nothing() -> None:
    other = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "node0"}
    known: dict[str, Facts] = {
        "node0": {CountersFacts: facts(MUCH, MUCH),
                  ProcessesFacts: ProcessesFacts((process(77, variables=other),), {})},
        "node1": {CountersFacts: facts(MUCH, MUCH)},
    }  # fmt: skip
    assert motions(list(signs(spread(4), Cluster.of(known)))) == []


def test_a_node_without_an_answer_leaves_the_flow_unknown() -> None:
    known = Cluster.of({"node0": {CountersFacts: facts()}, "node1": {}})
    assert list(signs(spread(2), known)) == []


def test_the_one_node_that_stands_still_while_all_others_exchange_is_named() -> None:
    found = said(facts(MUCH, MUCH), facts(MUCH, MUCH), facts())
    assert named(found) == [("slow_rank_timeout", Grade.POSSIBLE, (2,), ("node2",))]
    assert motions(found) == []


def test_segments_that_are_sent_again_name_the_nodes_that_wait_for_an_answer() -> None:
    found = said(facts(resent=4, segments=9), facts(), facts())
    assert named(found) == [("network_stalled", Grade.POSSIBLE, (), ("node0",))]


def test_where_all_nodes_but_one_send_again_that_one_does_not_answer() -> None:
    found = said(facts(resent=4, segments=9), facts(resent=4, segments=9), facts())
    assert {one[3] for one in named(found)} == {("node2",)}


def test_what_others_than_the_job_send_again_is_not_its_trouble() -> None:
    two = spread(2)
    quiet = SocketsFacts({two.ranks[0].pid: ()}, {})
    known = {f"node{at}": {CountersFacts: facts(resent=4, segments=9), SocketsFacts: quiet} for at in range(2)}
    assert named(list(signs(two, Cluster.of(known)))) == []


def test_loss_that_slows_a_working_job_says_so() -> None:
    (motion, clue) = said(facts(MUCH, MUCH, resent=900, segments=20000), facts(MUCH, MUCH))
    assert isinstance(motion, Motion)
    assert isinstance(clue, Clue)
    assert (clue.cause, clue.still, clue.slow, clue.nodes) == ("network_stalled", False, True, ("node0",))
    assert named(said(facts(MUCH, MUCH, resent=20, segments=20000), facts(MUCH, MUCH))) == []


def test_errors_and_many_drops_of_an_interface_are_named_and_a_few_drops_are_not() -> None:
    def one(**counts: int) -> list[Any]:
        nic = NicTraffic(LITTLE, LITTLE, 100_000, **counts)
        return named(said(facts(interfaces={"net:[1]": {"eth0": nic}}), facts()))

    assert one(errors=40) == one(drops=5000) == [("network_stalled", Grade.POSSIBLE, (), ("node0",))]
    assert one(drops=12) == one(errors=1) == []


@pytest.mark.parametrize(
    ("errors", "grade", "still", "slow"),
    [
        ({"link_downed": 1}, Grade.CERTAIN, False, False),
        ({"symbol_error": 500}, Grade.LIKELY, False, True),
        ({"local_ack_timeout_err": 3}, Grade.LIKELY, True, False),
    ],
)
def test_errors_of_an_hca_port_that_grow_are_the_fabrics(
    errors: dict[str, int], grade: Grade, *, still: bool, slow: bool
) -> None:
    found = said(facts(ports={"mlx5_0:1": PortTraffic("ACTIVE", 0, 0, "InfiniBand", errors)}), facts())
    (clue,) = (one for one in found if isinstance(one, Clue))
    assert (clue.cause, clue.grade, clue.still, clue.slow, clue.nodes) == ("ib_fabric", grade, still, slow, ("node0",))


def test_a_port_that_is_down_counts_where_it_is_active_elsewhere_or_the_job_names_it() -> None:
    down, up = (facts(ports={"mlx5_1:1": PortTraffic(state)}) for state in ("DOWN", "ACTIVE"))
    assert named(said(up, up, down)) == [("ib_fabric", Grade.LIKELY, (), ("node2",))]
    assert named(said(down, down, down)) == named(said(up, down, down)) == []
    told = rank(0, "node0")
    told = replace(told, process=replace(told.process, variables={"NCCL_IB_HCA": "=mlx5_1:1"}))
    two = job(told, rank(1, "node1"))
    known = Cluster.of({f"node{at}": {CountersFacts: down} for at in range(2)})
    assert named(list(signs(two, known))) == [("ib_fabric", Grade.LIKELY, (), ("node0",))]
