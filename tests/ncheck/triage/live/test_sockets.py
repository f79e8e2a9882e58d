"""Connections of a job, made by hand: whom they accuse, and that healthy ones accuse nobody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Login
from ncheck.model.fact import Unread
from ncheck.model.job import Job, RankProcess
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion
from ncheck.triage.facts.sockets import Connection, Socket, SocketLook, SocketsFacts
from ncheck.triage.live.sockets import signs

from .jobs import job, process, spread
from .wired import COUNTED, SPACE, both, cluster, connected, dials, ip, listens, named, pair, place

STUCK = {"sent": 5000, "timer": 1, "retransmits": 4, "resent": 4}


def meshed(of: Job) -> list[tuple[RankProcess, Socket]]:
    """Return idle connections between all ranks."""
    pairs = ((one, other) for at, one in enumerate(of.ranks) for other in of.ranks[:at])
    return [end for one, other in pairs for end in connected(one, other)]


def stuck(
    one: RankProcess, other: RankProcess, far: dict[str, Any] | None = None, **near: Any
) -> list[tuple[RankProcess, Socket]]:
    """Return a connection whose sender waits at both looks for the same acknowledgement."""
    (_, sender), (_, receiver) = connected(one, other)
    seen = SocketLook("ESTABLISHED", acknowledged=1000, received=1000, **{**STUCK, **near})
    got = SocketLook("ESTABLISHED", acknowledged=1000, received=1000)
    got = replace(got, **(far or {}))
    return [(one, replace(sender, first=seen, last=seen)), (other, replace(receiver, first=got, last=got))]


def motions(found: list[Any]) -> dict[int | None, bool]:
    return {one.rank: one.moves for one in found if isinstance(one, Motion)}


def text(found: list[Any]) -> str:
    return "\n".join(one.text for one in found if isinstance(one, Clue))


def test_idle_connections_accuse_nobody_and_show_no_motion() -> None:
    four = spread(4)
    found = list(signs(four, cluster(four, *meshed(four))))
    assert named(found) == []
    assert motions(found) == {0: False, 1: False, 2: False, 3: False}


def test_busy_connections_with_data_under_way_accuse_nobody() -> None:
    two = spread(2)
    busy = {"acknowledged": 900_000, "received": 800_000, "sent": 65536, "unread": 32768, "timer": 1}
    (one, near), (other, far) = connected(*pair(two), busy, busy)
    first = SocketLook("ESTABLISHED", sent=65536, unread=32768, timer=1, acknowledged=1000, received=1000, resent=0)
    found = list(signs(two, cluster(two, (one, replace(near, first=first)), (other, replace(far, first=first)))))
    assert named(found) == []
    assert motions(found) == {0: True, 1: True}


def test_little_traffic_where_ras_runs_is_neither_motion_nor_rest() -> None:
    two = spread(2)
    little = {"acknowledged": 9000, "received": 9000}
    ras = listens(two.ranks[0], 28028, "127.0.0.1")
    assert motions(list(signs(two, cluster(two, *connected(*pair(two), little, little))))) == {0: True, 1: True}
    assert motions(list(signs(two, cluster(two, ras, *connected(*pair(two), little, little))))) == {}


def test_what_the_store_says_to_its_clients_is_no_motion() -> None:
    ranks = tuple(
        replace(one, process=replace(one.process, variables={"MASTER_PORT": str(30000 + 4000)}))
        for one in spread(2).ranks
    )
    two = job(*ranks)
    much = {"acknowledged": 900_000, "received": 900_000}
    assert motions(list(signs(two, cluster(two, *connected(ranks[1], ranks[0], much, much))))) == {}


def test_a_download_shows_that_its_rank_works_on_something_and_a_few_figures_to_a_server_do_not() -> None:
    of = spread(2)
    first = SocketLook("ESTABLISHED", **COUNTED)

    def said(received: int) -> list[Motion]:
        last = replace(first, received=1000 + received)
        outside = (of.ranks[1], Socket(9001, SPACE, "10.0.0.2", 40001, "192.0.2.9", 443, first, last))
        found = signs(of, cluster(of, *meshed(of), outside))
        return [one for one in found if isinstance(one, Motion) and one.aside]

    text = "rank 1 (pid 4001 on node1), or a program beneath it, exchanged 1 MiB with 192.0.2.9:443 in 2 s"
    assert said(1 << 20) == [Motion("sockets", 1, "node1", moves=True, text=text, pid=4001, aside=True)]
    assert said(4000) == []


def test_data_that_is_lost_on_the_way_names_both_nodes_and_the_direction() -> None:
    two = spread(2)
    found = list(signs(two, cluster(two, *stuck(*pair(two)))))
    assert named(found) == [("network_stalled", Grade.CERTAIN, (), ("node1", "node0"))]
    assert "sent 4.883 KiB to rank 1" in text(found)
    assert text(found).endswith("sent 4 times again; it is lost on the way from node0 to node1")


def test_data_that_arrived_lost_its_acknowledgement_on_the_way_back() -> None:
    two = spread(2)
    found = list(signs(two, cluster(two, *stuck(*pair(two), far={"received": 6000}))))
    assert "the acknowledgements are lost on the way from node1 to node0" in text(found)


def test_the_one_node_that_all_lossy_connections_share_is_named_alone() -> None:
    three = spread(3, 3)
    first, second, third = three.ranks
    ends = [*stuck(first, third), *stuck(second, third), *connected(first, second)]
    assert {one[3] for one in named(list(signs(three, cluster(three, *ends))))} == {("node2",)}


def test_a_few_acknowledgements_less_are_no_stall() -> None:
    two = spread(2)
    (one, sender), other = stuck(*pair(two))
    assert sender.last
    sender = replace(sender, last=replace(sender.last, acknowledged=1500))
    assert named(list(signs(two, cluster(two, (one, sender), other)))) == []


def test_who_does_not_read_is_at_fault_and_not_the_network() -> None:
    three = spread(3, 3)
    first, second, third = three.ranks
    ends = [*stuck(first, third, {"unread": 60000}, timer=4), *stuck(second, third, {"unread": 50000}),
            *connected(first, second)]  # fmt: skip
    found = list(signs(three, cluster(three, *ends)))
    assert named(found) == [("slow_rank_timeout", Grade.LIKELY, (2,), ("node2",))]
    assert "has left 107.4 KiB unread for 2 s, which ranks 0 and 1 sent and cannot send more" in text(found)


def test_ranks_that_leave_data_of_each_other_unread_are_not_accused() -> None:
    two = spread(2)
    unread = {"unread": 5000}
    (one, near), (other, far) = connected(*pair(two), unread, unread)
    first = SocketLook("ESTABLISHED", unread=5000, acknowledged=1000, received=1000, resent=0)
    found = list(signs(two, cluster(two, (one, replace(near, first=first)), (other, replace(far, first=first)))))
    assert named(found) == []


def test_a_connection_that_nobody_answers_is_a_firewall() -> None:
    two = spread(2)
    found = list(signs(two, cluster(two, dials(two.ranks[0], ip("node1"), 7000), listens(two.ranks[1], 7000))))
    assert named(found) == [("firewall", Grade.CERTAIN, (), ("node1", "node0"))]
    assert motions(found) == {0: False}


def test_an_answer_that_is_lost_on_the_way_back_is_said() -> None:
    two = spread(2)
    half = Connection(ip("node1"), 7000, ip("node0"), 40000, "SYN-RECEIVED")
    known = cluster(two, dials(two.ranks[0], ip("node1"), 7000), node1=place("node1", others=(half,)))
    assert text(list(signs(two, known))).endswith("its answers are lost on the way back")


def test_a_listener_whose_queue_is_full_is_late_and_no_firewall() -> None:
    two = spread(2)
    ends = dials(two.ranks[0], ip("node1"), 7000), listens(two.ranks[1], 7000, backlog=129)
    assert named(list(signs(two, cluster(two, *ends)))) == [("slow_rank_timeout", Grade.LIKELY, (1,), ("node1",))]


def test_a_connection_to_docker0_of_another_node_is_a_wrong_nic_of_that_rank() -> None:
    two = spread(2)
    docker = {"172.17.0.1": "docker0", ip("node0"): "eth0"}
    known = cluster(
        two, dials(two.ranks[1], "172.17.0.1", 7000), listens(two.ranks[0], 7000, "172.17.0.1"),
        node0=place("node0", addresses=docker),
    )  # fmt: skip
    assert named(list(signs(two, known))) == [("wrong_nic", Grade.CERTAIN, (0,), ("node0",))]


def test_a_connection_that_leaves_by_docker0_is_a_wrong_nic_of_its_own_rank() -> None:
    two = spread(2)
    docker = {"172.17.0.1": "docker0", ip("node0"): "eth0"}
    known = cluster(two, dials(two.ranks[0], ip("node1"), 7000, "172.17.0.1"), node0=place("node0", addresses=docker))
    assert named(list(signs(two, known))) == [("wrong_nic", Grade.LIKELY, (0,), ("node0",))]


def test_an_address_that_no_node_has_is_a_bad_address_and_outside_the_cluster_only_a_possible_firewall() -> None:
    two = spread(2)
    private, public = (cluster(two, dials(two.ranks[0], to, 443)) for to in ("10.9.9.9", "34.1.2.3"))
    assert named(list(signs(two, private))) == [("gloo_bad_address", Grade.LIKELY, (), ("node0",))]
    assert named(list(signs(two, public))) == [("firewall", Grade.POSSIBLE, (0,), ("node0",))]


def test_a_node_that_gave_no_answer_is_not_called_unknown() -> None:
    two = spread(2)
    known = cluster(two, dials(two.ranks[0], "10.9.9.9", 7000)).known
    found = list(signs(two, Cluster.of({"node0": known["node0"], "node1": {SocketsFacts: Unread("no answer")}})))
    assert named(found) == [("firewall", Grade.POSSIBLE, (0,), ("node0",))]


def test_a_connection_whose_other_end_is_nowhere_was_that_of_the_missing_rank() -> None:
    two = replace(spread(2), size=3)
    (_, near), _ = connected(*pair(two))
    lone = replace(near, local_port=7000, remote_port=45678)
    known = cluster(two, (two.ranks[0], lone), listens(two.ranks[0], 7000))
    assert named(list(signs(two, known))) == [("rank_crashed", Grade.LIKELY, (2,), ())]


def test_a_connection_to_a_process_that_was_not_looked_at_is_not_called_broken() -> None:
    two = spread(2)
    (_, near), _ = connected(*pair(two))
    lone = replace(near, local_port=7000, remote_port=45678)
    other = Connection(ip("node1"), 45678, ip("node0"), 7000, "ESTABLISHED")
    known = cluster(two, (two.ranks[0], lone), listens(two.ranks[0], 7000), node1=place("node1", others=(other,)))
    assert named(list(signs(two, known))) == []
    known = cluster(two, (two.ranks[0], lone), listens(two.ranks[0], 7000), node1=place("node1", complete=False))
    assert named(list(signs(two, known))) == []


def test_a_connection_that_the_other_side_closed_is_possibly_a_dead_ranks() -> None:
    two = spread(2)
    closed = Socket(two.ranks[0].pid, SPACE, ip("node0"), 5, ip("node1"), 6, *both("CLOSE-WAIT", unread=1))
    assert named(list(signs(two, cluster(two, (two.ranks[0], closed))))) == [("rank_crashed", Grade.POSSIBLE, (), ())]
    outside = replace(closed, remote="34.1.2.3")
    assert named(list(signs(two, cluster(two, (two.ranks[0], outside))))) == []


def test_the_only_rank_without_a_connection_is_possibly_late() -> None:
    three = spread(3, 3)
    found = list(signs(three, cluster(three, *connected(*pair(three)))))
    assert named(found) == [("slow_rank_timeout", Grade.POSSIBLE, (2,), ("node2",))]


def test_ranks_that_cannot_be_looked_at_are_not_without_connections() -> None:
    three = spread(3, 3)
    known = cluster(three, *connected(*pair(three)))
    hidden: dict[str, Any] = {
        **known.known,
        "node2": {SocketsFacts: SocketsFacts({three.ranks[2].pid: Unread("needs root")})},
    }
    assert named(list(signs(three, Cluster.of(hidden)))) == []


def test_ssh_of_a_launcher_that_hears_nothing_names_the_node_of_its_login() -> None:
    mpirun = process(10, name="mpirun", argv=("mpirun", "-np", "2", "./a.out"))
    ssh = process(11, parent=10, name="ssh", argv=("ssh", "-x", "10.0.0.2", "orted"))
    waits = Job("launcher mpirun", (), launchers={"node0": (mpirun, ssh)})
    silent = both("ESTABLISHED", acknowledged=42, received=0)
    held = {10: (Socket(11, SPACE, ip("node0"), 40000, ip("node1"), 22, *silent),)}
    answers = LoginFacts(Login(reached=False, address=ip("node1")))
    known = Cluster.of({
        "node0": {SocketsFacts: SocketsFacts(held, {SPACE: place("node0")}, SPACE)}, "node1": {LoginFacts: answers},
    })  # fmt: skip
    assert named(list(signs(waits, known))) == [("ssh_auth", Grade.CERTAIN, (), ("node1",))]
    talks = both("ESTABLISHED", acknowledged=42, received=2000)
    held = {10: (Socket(11, SPACE, ip("node0"), 40000, ip("node1"), 22, *talks),)}
    known = Cluster.of({"node0": {SocketsFacts: SocketsFacts(held, {SPACE: place("node0")}, SPACE)}})
    assert named(list(signs(waits, known))) == []
