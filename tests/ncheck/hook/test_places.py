"""Nodes from ranks: one for each machine, with a name that is its own, and one for each host that never came."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import ncheck
import pytest
from ncheck.facts.ranks import RanksFacts, RankTrouble
from ncheck.hook.meeting.attendance import Attendance
from ncheck.hook.meeting.messages import Member
from ncheck.hook.places import place
from ncheck.model.node import Node
from ncheck.rank_variables import Rank


def request(*members: Member, **other: Any) -> dict[str, Any]:
    return {
        "members": [asdict(one) for one in sorted(members, key=lambda one: one.rank)],
        "sockets": {}, "missing": {}, "ended": [], "problems": [], "could_come": True, "size": 8,
        "waited": 25.0, "packages": [], **other,
    }  # fmt: skip


def member(rank: int, host: str, machine: str, node: str = "", pid: int = 700) -> Member:
    return Member(rank, 8, None, host, node, machine, pid + rank, f"10.0.0.{len(host)}", "0.1.0")


def facts(came: tuple[int, ...], **other: Any) -> RanksFacts:
    pids = tuple(700 + rank for rank in came)
    return RanksFacts(8, came, pids, waited=25.0, version="0.1.0" if came else "", ours=ncheck.__version__, **other)


def test_ranks_of_one_machine_are_one_node_in_the_order_of_ranks() -> None:
    places = place(
        request(member(2, "gpu02", "b"), member(0, "gpu01", "a"), member(1, "gpu01", "a"), sockets={"b": 7, "a": 5})
    )
    assert places.ranks == {"gpu01": facts((0, 1)), "gpu02": facts((2,))}
    assert places.nodes == (Node("gpu01"), Node("gpu02"))
    assert (places.sockets, places.why) == ({"gpu02": 7, "gpu01": 5}, {})


def test_the_launchers_name_comes_first_and_each_name_is_there_once() -> None:
    places = place(
        request(
            member(0, "localhost", "a"),
            member(1, "localhost", "b"),
            member(2, "localhost", "c", node="node03"),
            member(3, "; reboot", "d"),
        )
    )
    assert {name: one.came for name, one in places.ranks.items()} == {
        "localhost": (0,), "localhost-1": (1,), "node03": (2,), "node3": (3,),
    }  # fmt: skip


def test_missing_ranks_belong_to_the_node_that_came_or_to_one_more_or_to_none() -> None:
    places = place(
        request(
            member(0, "gpu01.cluster", "a"),
            missing={"1": "gpu01", "4": "gpu03", "5": "gpu03", "7": ""},
        )
    )
    assert places.ranks == {
        "gpu01.cluster": facts((0,), missing=(1,), homeless=(7,)),
        "gpu03": facts((), missing=(4, 5), homeless=(7,)),
    }
    assert places.why == {"gpu03": "ranks 4 and 5 did not reach rank 0 within 25 s: not started, or blocked"}


def test_ranks_that_ended_and_trouble_with_ranks_belong_to_their_node() -> None:
    places = place(
        request(
            member(0, "gpu01", "a"),
            member(1, "gpu02", "b"),
            ended=[1],
            problems=[["duplicate-rank", [1], "rank 1 came twice"], ["world-size", [9], "rank 9 has 16"]],
        )
    )
    assert places.ranks == {
        "gpu01": facts((0,), troubles=(RankTrouble("world-size", (9,), "rank 9 has 16"),)),
        "gpu02": facts((1,), ended={1: 701}, troubles=(RankTrouble("duplicate-rank", (1,), "rank 1 came twice"),)),
    }


def test_a_job_on_one_machine_needs_no_network() -> None:
    assert place(request(member(0, "laptop", "a"))).nodes == (Node("laptop", places=("local",)),)


@pytest.mark.parametrize(
    ("own", "came", "hosts"),
    [
        ({"local_size": 2}, {0: "a", 2: "b", 3: "b"}, {1: "a"}),
        ({"local_size": 2}, {0: "a", 1: "b"}, {2: "", 3: ""}),  # one by one: 2 may be on a or on a third node
        ({"local_size": 2}, {0: "a", 1: "a"}, {2: "", 3: ""}),
        ({}, {0: "a", 2: "b"}, {1: "", 3: ""}),
        ({"hosts": ("x", "y"), "layout": (0, 0, 1, 1)}, {0: "a"}, {1: "x", 3: "y"}),
    ],
)
def test_the_host_of_a_missing_rank_is_told_by_the_launcher_or_by_its_neighbours(
    own: dict[str, Any], came: dict[int, str], hosts: dict[int, str]
) -> None:
    members = tuple(member(rank, host, f"machine {host}") for rank, host in came.items())
    attendance = Attendance(members, tuple(hosts), (), (), remote_came=True, ports=(), evidence="remote-came")
    assert {rank: attendance.host_of(Rank(0, 4, **own), rank) for rank in hosts} == hosts


def test_all_ranks_of_a_job_on_one_machine_are_there() -> None:
    attendance = Attendance((member(0, "a", "m"),), (1,), (), (), False, (), "one-machine")  # noqa: FBT003
    assert attendance.host_of(Rank(0, 2, nodes=1), 1) == "a"
