"""Sockets and counters of a node's answer, and what a node is asked about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.names import Resolved
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Answer, Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread
from ncheck.settings import Settings
from ncheck.triage.facts import counters, sockets
from ncheck.triage.facts.counters import COUNTERS, CountersFacts, NicTraffic, PortTraffic, TcpTraffic
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.sockets import (
    SOCKETS,
    Connection,
    Listener,
    NetworkPlace,
    Socket,
    SocketLook,
    SocketsFacts,
)  # fmt: skip

from tests.ncheck.triage.live.jobs import process

Answered = Callable[[Mapping[Any, Reply]], Evidence]

COUNTS = {"acknowledged": 100, "received": 7, "resent": 0, "lost": 0, "last_sent": 20}
SEEN = {"state": "01", "sent": 0, "unread": 0, "timer": 0, "retransmits": 0, "counts": COUNTS}
SOCKET = {
    "held_by": 4711, "namespace": "net:[1]", "local": "10.1.0.1", "local_port": 29500, "remote": "::ffff:a01:2",
    "remote_port": 50000, "seen": [None, SEEN],
}  # fmt: skip
ANSWER = {
    "processes": [
        {"pid": 4711, "error": None, "unread": [], "sockets": [SOCKET]},
        {"pid": 4712, "error": "gone", "unread": [], "sockets": []},
        {"pid": 4713, "error": "the sockets of other users' processes need root", "unread": [4713], "sockets": []},
    ],
    "places": {
        "net:[1]": {
            "addresses": [["10.1.0.1", "eth0"], ["fe80::1%eth0", ""]], "interfaces": ["lo", "eth0"],
            "listeners": [{"ip": "::", "port": 29500, "asked": False, "pid": 17, "by": "python3 (pid 17) of ada"}],
            "others": [["10.1.0.1", 22, "10.1.0.9", 4242, "03"]], "others_left_out": 1,
        },
    },
    "own": "net:[1]",
    "names": {"gpu01": {"addresses": ["10.1.0.1"]}, "gpu02": {"late": True}},
    "left_out": 3,
}  # fmt: skip


def read(answered: Answered, answer: Any) -> Any:
    evidence = answered({SOCKETS: Reply(Status.OK, value=answer)})
    return facts_of(evidence, (SocketsFacts,))[SocketsFacts]


def test_an_answer_is_read_with_the_reason_of_what_is_not_there(answered: Answered) -> None:
    last = SocketLook("ESTABLISHED", acknowledged=100, received=7, resent=0)
    assert read(answered, ANSWER) == SocketsFacts(
        {
            4711: (Socket(4711, "net:[1]", "10.1.0.1", 29500, "10.1.0.2", 50000, None, last),),
            4712: Absent("the process has ended"),
            4713: Unread("the sockets of other users' processes need root", needs_root=True),
        },
        {
            "net:[1]": NetworkPlace(
                {"10.1.0.1": "eth0", "fe80::1": ""}, ("lo", "eth0"),
                (Listener("::", 29500, asked=False, pid=17, by="python3 (pid 17) of ada"),),
                (Connection("10.1.0.1", 22, "10.1.0.9", 4242, "SYN-RECEIVED"),), complete=False,
            )
        },
        "net:[1]", {"gpu01": Resolved(("10.1.0.1",)), "gpu02": Resolved(late=True)}, complete=False,
    )  # fmt: skip
    assert read(answered, ANSWER).of(99) == Unread("it was not asked about")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("processes", 0, "sockets", 0, "local"), "10.1.0.1; PWNED"),
        (("processes", 0, "sockets", 0, "seen"), [None]),
        (("places", "net:[1]", "others", 0), ["10.1.0.1"]),
        (("places", "net:[1]", "addresses", 0), ["10.1.0.1", "--help"]),
        (("processes", 0, "sockets", 0, "seen", 1, "sent"), "many"),
    ],
)
def test_nonsense_makes_the_fact_unread(answered: Answered, where: tuple[Any, ...], value: object) -> None:
    answer: Any = deepcopy(ANSWER)
    place = answer
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    assert isinstance(read(answered, answer), Unread)


def looks(first: dict[str, Any], last: dict[str, Any]) -> Socket:
    return Socket(
        1, "", "10.1.0.1", 1, "10.1.0.2", 2, SocketLook("ESTABLISHED", **first), SocketLook("ESTABLISHED", **last)
    )


def test_what_was_acknowledged_in_between_is_not_stuck_although_as_much_waits() -> None:
    assert (
        looks({"sent": 9, "acknowledged": 5, "received": 0}, {"sent": 9, "acknowledged": 6, "received": 0}).stuck
        is False
    )
    assert looks({"sent": 9, "acknowledged": 5}, {"sent": 9, "acknowledged": 5}).stuck is True
    assert looks({"sent": 9}, {"sent": 8}).stuck is False
    assert looks({"sent": 9}, {"sent": 12}).stuck is True


def test_what_was_read_in_between_is_not_left_unread_although_as_much_waits() -> None:
    busy = looks({"unread": 9, "acknowledged": 0, "received": 100}, {"unread": 9, "acknowledged": 0, "received": 200})
    assert (busy.unread, busy.moved) == (0, 100)
    assert looks({"unread": 9, "received": 100}, {"unread": 20, "received": 111}).unread == 9
    assert looks({"unread": 9}, {"unread": 9}).unread == 9
    assert looks({"unread": 9}, {"unread": 3}).unread == 0


def test_a_node_is_asked_about_its_ranks_its_launchers_and_the_rendezvous() -> None:
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "gpu01", "MASTER_PORT": "29500"}
    agent = process(10, argv=("python3", "/usr/bin/torchrun", "train.py"), variables={})
    rank = process(20, parent=10, variables=variables)
    shell = process(9, name="bash", argv=("bash",), variables={})
    held = ProcessesFacts((shell, agent, rank), {})
    (fact,) = sockets.FACTS
    assert fact.questions
    asked = fact.questions(Cluster.of({"gpu01": {ProcessesFacts: held}, "gpu02": {}}), Settings(), 30.0)
    ((question,),) = asked.values()
    assert isinstance(question, Answer)
    assert question.arguments == {
        "ranks": [
            {"rank": 0, "pid": 20, "started": 200, "inner_pid": 20, "namespace": "net:[1]", "children": []}
        ],
        "names": ["gpu01"], "ports": [29500],
        "launchers": [{"pid": 10, "started": 100, "namespace": "net:[1]", "children": []}],
    }  # fmt: skip


NIC = {
    f"{what}{way}": 5 for way, whats in (("sent", ("", "packets_")), ("received", ("", "packets_"))) for what in whats
} | dict.fromkeys(("receive_errors", "receive_drops", "send_errors", "send_drops"), 5)  # fmt: skip
PORT = {"state": "4: ACTIVE", "link_layer": "InfiniBand", "sent": 100, "received": 50, "errors": {"link_downed": 1}}


def look(nic: int = 0, port: int = 0) -> dict[str, Any]:
    counts = {name: count + nic for name, count in NIC.items()}
    moved = {**PORT, "sent": 100 + port, "errors": {"link_downed": 1 + port, "symbol_error": 3}}
    spaces = {"net:[1]": {"interfaces": {"eth0": counts}, "tcp": {"sent": 7 + nic, "resent": nic}}}
    return {"namespaces": spaces, "ports": {"mlx5_0:1": moved}}


def test_counters_are_the_difference_of_two_looks(answered: Answered) -> None:
    evidence = answered({COUNTERS: Reply(Status.OK, value={"looks": [look(), look(nic=10, port=8)]})})
    assert counters.counters(evidence) == CountersFacts(
        {"net:[1]": {"eth0": NicTraffic(10, 10, 20, 20, 20)}}, {"net:[1]": TcpTraffic(10, 10)},
        {"mlx5_0:1": PortTraffic("ACTIVE", 8, 0, "InfiniBand", {"link_downed": 8})},
    )  # fmt: skip


def test_a_counter_that_was_set_back_has_moved_nothing(answered: Answered) -> None:
    evidence = answered({COUNTERS: Reply(Status.OK, value={"looks": [look(nic=10, port=8), look()]})})
    assert counters.counters(evidence) == CountersFacts(
        {"net:[1]": {"eth0": NicTraffic(0, 0, 0, 0, 0)}}, {"net:[1]": TcpTraffic(0, 0)},
        {"mlx5_0:1": PortTraffic("ACTIVE", 0, 0, "InfiniBand", {})},
    )  # fmt: skip
