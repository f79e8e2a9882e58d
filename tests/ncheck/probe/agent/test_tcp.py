"""Two agents move bytes over loopback, with no library: what they tell of it, and that nothing of it is left."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from ncheck.agent.streams import MOST
from ncheck.agent.wire import PROOF, proof
from ncheck.fleet.session import Request
from ncheck.model.evidence import Answer, JsonValue
from ncheck.probe.agent.tcp import _COUNTED, _Pair, can_be

from tests.ncheck.agent.agents import Agent, at_once

NODES, ADDRESSES = ("node01", "node02"), ("127.0.0.21", "127.0.0.22")
KIB = 1024
MIB, GIB = KIB**2, KIB**3
TOKEN = "0f3a99bc"  # noqa: S105  of a run of these tests
Asked = Mapping[str, JsonValue]
Said = dict[str, Any]


@pytest.fixture(autouse=True)
def interpreter(python3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run both agents by the oldest Python that is here, and by the newest."""
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", (python3,))


class Pair:
    """Two agents that listen for each other, each on an address of its own."""

    def __init__(self) -> None:
        self.agents = (Agent(), Agent())
        self.ports = [self._listening(rank) for rank in (0, 1)]

    def _listening(self, rank: int) -> int:
        addresses: JsonValue = [ADDRESSES[rank]]
        asked: JsonValue = {"node": NODES[rank], "token": TOKEN, "addresses": addresses, "ports": []}
        said: Any = self.agents[rank].ask(Answer("listen", 60.0, asked)).value
        return int(said["ports"][ADDRESSES[rank]])

    def asked(self, rank: int, **changed: JsonValue) -> Answer:
        """Return what the node of this rank is asked."""
        other = 1 - rank
        asked: dict[str, JsonValue] = {
            "round": 1, "stage": "pair", "method": "tcp", "group": list(NODES), "ranks": [1, 1],
            "sizes": [64 * KIB, 8], "repeats": 5, "launcher": "agents", "net": "", "expect": None, "node": NODES[rank],
            "planned": ["lo"], "timeout": 60.0, "variables": {}, "source": ADDRESSES[rank],
            "address": ADDRESSES[other], "port": self.ports[other], "token": TOKEN, "seconds": 60.0,
        }  # fmt: skip
        return Answer("step", 60.0, {**asked, **changed}, round=1)

    def steps(self, *changed: Asked) -> list[Said]:
        """Ask both at once, and return what each says; `changed` is what one is asked otherwise."""
        each: Sequence[Asked] = changed or ({}, {})
        replies = at_once(self.agents, [self.asked(rank, **each[rank]) for rank in (0, 1)])
        assert all(reply.succeeded for reply in replies), replies
        return [reply.value for reply in replies]  # type: ignore[misc]

    def open_streams(self) -> list[object]:
        """Return what is connected, or was a moment ago, to where the two listen: on their addresses alone."""
        there = [(address, port) for address in ADDRESSES for port in self.ports]
        return [one for one in psutil.net_connections("tcp4") if one.raddr and tuple(one.raddr) in there]

    def moving(self) -> bool:
        """Tell whether more bytes are on their way between these two than are said before."""
        # 12: 1500007F:A0B1 1600007F:C3D2 01 0003A980:00000000 01:00000014 ...      (bytes sent, bytes received)
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ours = [row[4] for row in rows if {int(end[9:], 16) for end in row[1:3]}.intersection(self.ports)]
        return any(int(count, 16) > KIB for queues in ours for count in queues.split(":"))


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    for agent in made.agents:
        agent.bye()


@pytest.mark.slow
def test_both_nodes_tell_the_same_of_every_size_and_leave_nothing_open(pair: Pair) -> None:
    first, second = pair.steps()
    assert [(row["size"], row["in_place"], row["wrong"]) for row in first["rows"]] == [
        (8, False, None), (64 * KIB, False, None),
    ]  # fmt: skip
    assert first["rows"] == second["rows"]
    assert all(0 < row["fastest"] <= row["seconds"] <= row["slowest"] for row in first["rows"])
    assert [row["timing"] for row in first["rows"]] == [{"warm_ups": 1, "repeats": 5, "iterations": 1}] * 2
    for said in (first, second):
        assert said["carried"]["lo"]["sent"] > 64 * KIB * 6  # a warm-up, and five repeats
        assert said["start"] > 0
        assert (said["failure"], said["left"]) == (None, [])
    assert pair.open_streams() == []


@pytest.mark.slow
def test_a_size_that_there_is_no_time_for_is_left_out_by_both_and_another_is_timed_fewer_times(pair: Pair) -> None:
    steps = pair.steps(*both({"sizes": [KIB, 1024 * GIB], "seconds": 0.0}))
    told = [[(row["size"], row["timing"]["repeats"]) for row in said["rows"]] for said in steps]
    assert told == [[(KIB, 3)], [(KIB, 3)]], "three of five repeats"
    assert [said["failure"] for said in steps] == [None, None]


@pytest.mark.parametrize(
    ("rate", "wanted", "moved"),
    [
        (1e6, 5, [(MIB, 3)]),  # bytes a second: three moves of a second each
        (1e6, 1, [(MIB, 1)]),
        (1e8, 5, [(MIB, 5), (8 * MIB, 5)]),
        (1e8, 500, [(MIB, 500), (8 * MIB, 500)]),
        (1e9, 5, [(MIB, 5), (8 * MIB, 5), (64 * MIB, 5)]),
        (2e10, 5, [(MIB, 5), (8 * MIB, 5), (64 * MIB, 5), (512 * MIB, 5)]),
    ],
)
def test_sizes_ascend_until_one_lasts_long_enough(rate: float, wanted: int, moved: list[tuple[int, int]]) -> None:
    sizes = [MIB, 8 * MIB, 64 * MIB, 512 * MIB]
    asked = {"sizes": sizes, "node": NODES[0], "group": list(NODES), "round": 1, "token": TOKEN, "repeats": wanted}
    pair = _Pair(asked, 1e9)
    seen: Counter[int] = Counter()
    for kind, size in pair.moves(time.monotonic() + (2.0 if rate < 1e7 else 1e6)):
        pair.seconds = size / rate
        if kind == _COUNTED:
            seen[size] += 1
            pair.times[size] = [pair.seconds]
    assert [*seen.items()] == moved


@pytest.mark.parametrize("told", [float("nan"), float("inf"), float("-inf"), -1.0, 1e300, 3600.0, 2.1])
def test_a_time_of_the_other_node_that_did_not_go_by_here_is_not_believed(told: float) -> None:
    assert not can_be(told, 2.0)
    assert can_be(2.0, 2.0)
    assert can_be(0.0, 0.0)


@pytest.mark.slow
def test_the_way_to_a_large_size_is_felt_and_where_it_is_too_far_both_say_so(pair: Pair) -> None:
    steps = pair.steps(*both({"sizes": [1024 * GIB], "seconds": 0.0}))
    assert [(said["rows"], said["failure"]["words"], said["failure"]["late"]) for said in steps] == [
        ([], "there was no time for it", True), ([], "there was no time for it", True),
    ]  # fmt: skip
    steps = pair.steps(*both({"sizes": [16 * MIB], "seconds": 60.0, "round": 2}))
    assert [[row["size"] for row in said["rows"]] for said in steps] == [[16 * MIB]] * 2


@pytest.mark.slow
def test_turns_follow_each_other_over_the_same_listeners(pair: Pair) -> None:
    for number in (1, 2, 3):
        steps = pair.steps(*both({"round": number, "sizes": [KIB]}))
        assert [len(said["rows"]) for said in steps] == [1, 1]


def test_a_refusal_is_told_by_who_met_it_and_the_other_does_not_wait_for_ever(pair: Pair) -> None:
    nobody = closed_port()
    first, second = pair.steps({"port": nobody}, {})
    where = f"127.0.0.22 port {nobody} from 127.0.0.21"
    assert first["failure"] == {
        "step": "connecting to node02", "rank": 0, "code": None, "late": False,
        "words": f"refused: {where}: connection refused, although its agent listens there",
    }  # fmt: skip
    assert second["failure"]["step"] in ("waiting for node01 to connect", "connecting to node01")
    assert second["failure"]["late"] is False
    assert (first["rows"], second["rows"]) == ([], [])
    assert pair.open_streams() == []


def test_an_address_that_is_not_the_nodes_own_is_told(pair: Pair) -> None:
    said, _ = pair.steps({"source": "10.99.99.99"}, {})
    assert said["failure"]["words"].startswith("unroutable: 127.0.0.22 port ")
    assert said["failure"]["words"].endswith(" from 10.99.99.99: Cannot assign requested address")


@pytest.mark.slow
def test_what_else_answers_there_is_told_apart(pair: Pair) -> None:
    with closing(socket.create_server((ADDRESSES[1], 0))) as stranger:
        stranger.listen()
        port = int(stranger.getsockname()[1])
        said, _ = pair.steps({"port": port, "timeout": 5.0}, {"timeout": 5.0})
    assert said["failure"]["late"] is True
    assert said["failure"]["words"] == "no more data from node02 before the time limit"
    said, _ = pair.steps({"port": pair.ports[0], "address": ADDRESSES[0], "round": 2}, {"round": 2, "timeout": 1.0})
    assert said["failure"]["words"] == "stranger: something else answers there than the agent of node02"


@pytest.mark.slow
def test_who_waits_in_vain_ends_with_its_time(pair: Pair) -> None:
    said: Any = pair.agents[0].ask(pair.asked(0, timeout=0.5)).value
    assert said["failure"] == {
        "step": "waiting for node02 to connect", "words": "its time was over", "rank": 0, "code": None, "late": True,
    }  # fmt: skip


@pytest.mark.slow
def test_a_node_that_ends_in_the_middle_cuts_the_other_off(pair: Pair) -> None:
    asked = [pair.asked(rank, sizes=[1024 * GIB], timeout=100.0) for rank in (0, 1)]
    first, second = pair.agents
    for agent, source in zip((second, first), (asked[1], asked[0]), strict=True):
        agent.ask(Answer("sweep", 60.0, {"segments": {}}))  # from here on the agent has the modules of the test
        agent.session.posted += Request((source,)).frame
        agent.session._send_posted()
    await_that(pair.moving)
    second.bye()
    replies: Any = first.session._message()["replies"]
    (said,) = replies.values()
    failure = said["value"]["failure"]
    assert failure["step"].startswith("moving ")
    assert failure["late"] is False
    assert failure["words"] in (
        "the connection was cut: Connection reset by peer", "the connection was cut: Broken pipe",
        "the other node closed the connection in the middle",
    )  # fmt: skip


def test_who_cannot_prove_that_it_belongs_to_this_run_opens_no_stream(pair: Pair) -> None:
    with closing(socket.create_connection((ADDRESSES[0], pair.ports[0]), 60)) as stranger:
        stranger.sendall(proof("another token", NODES[0], "stream") + bytes(PROOF))
        assert nothing_comes(stranger)


@pytest.mark.slow
def test_streams_that_nobody_takes_are_few(pair: Pair) -> None:
    with ExitStack() as stack:
        opened = []
        for number in range(MOST + 2):
            sock = stack.enter_context(closing(socket.create_connection((ADDRESSES[0], pair.ports[0]), 60)))
            sock.sendall(proof(TOKEN, NODES[0], "stream") + proof(TOKEN, NODES[1], f"no such turn {number}"))
            assert sock.recv(PROOF, socket.MSG_WAITALL) == proof(TOKEN, NODES[0], "server")
            opened.append(sock)
        assert nothing_comes(opened[0])
        assert nothing_comes(opened[1])
        assert [len(said["rows"]) for said in pair.steps()] == [2, 2]


def both(changed: Asked) -> tuple[Asked, Asked]:
    return changed, changed


def nothing_comes(sock: socket.socket) -> bool:
    """Tell that the other side hangs up without a word."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def await_that(happens: Callable[[], bool]) -> None:
    """Wait for it, a minute at most."""
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end


def closed_port() -> int:
    with socket.create_server((ADDRESSES[1], 0)) as server:
        return int(server.getsockname()[1])
