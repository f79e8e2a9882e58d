"""One agent listens and another connects, over loopback: what is told of links that are whole, and of those that are
not; and nothing of it goes on afterwards.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest
from ncheck.agent.wire import PROOF, proof
from ncheck.facts.learning import facts_of
from ncheck.facts.links import CONNECT, LISTEN, LinkCause, LinkFacts, ListenFacts, PortState, Reach, links
from ncheck.model.evidence import Answer, Evidence, JsonValue, Login, Reply

from .agents import Agent

pytestmark = pytest.mark.slow

TOKEN, SUBNET = "0f3a99bc", "127.0.0.0/8"
ONE, OTHER = "127.0.0.2", "127.0.0.3"
DRIP = 0.2  # seconds from byte to byte of the slowest: no silence, and longer in all than any silence may last
Row = list[JsonValue]


@pytest.fixture(autouse=True)
def interpreter(python3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run both agents by the oldest Python that is here, and by the newest."""
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", (python3,))


class Meshed(Agent):
    """An agent that is asked for links."""

    def listen(self, *addresses: str, ports: tuple[int, ...] = (), node: str = "other") -> ListenFacts:
        needed: JsonValue = [{"port": port, "assumed": False} for port in ports]
        asked: JsonValue = {"node": node, "token": TOKEN, "addresses": list(addresses), "ports": needed}
        read = facts_of(evidence(LISTEN, self.ask(Answer("listen", 60.0, asked))), [ListenFacts])[ListenFacts]
        assert isinstance(read, ListenFacts)
        return read

    def connect(self, *rows: Row, seconds: float = 60.0) -> LinkFacts:
        targets: JsonValue = [[node, *rest, source] for node, source, *rest in rows]
        asked: JsonValue = {"token": TOKEN, "timeout": seconds, "sources": {}, "targets": targets}
        read = links(evidence(CONNECT, self.ask(Answer("connect", seconds + 1, asked))))
        assert isinstance(read, LinkFacts)
        return read


def evidence(source: Answer, reply: Reply) -> Evidence:
    return Evidence("here", Login(reached=True), replies={source.key: reply})


@pytest.fixture(scope="module")
def connecting() -> Iterator[dict[str, Meshed]]:
    """Map interpreters to agents that connect: these keep nothing from one test to the next."""
    made: dict[str, Meshed] = {}
    yield made
    for agent in made.values():
        agent.bye()


@pytest.fixture
def agents(python3: str, connecting: dict[str, Meshed]) -> Iterator[tuple[Meshed, Meshed]]:
    """Yield a new agent that listens, and one that connects."""
    there = Meshed()
    yield there, connecting.get(python3) or connecting.setdefault(python3, Meshed())
    there.bye()


def row(port: int, node: str = "other", address: str = OTHER, *, job: bool = False) -> Row:
    return [node, ONE, address, port, SUBNET, job]


def test_a_link_that_is_whole_is_counted(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    port = there.listen(OTHER, "::1").ports
    found = here.connect(row(port[OTHER]), row(port[OTHER]), ["other", "::1", "::1", port["::1"], "::1/128", False])
    reaches = (Reach(SUBNET, ONE, 2, 2), Reach("::1/128", "::1", 1, 1))
    assert found == LinkFacts(reaches, (), frozenset({"other"}))


def test_what_else_may_answer_is_told_apart(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    port = there.listen(OTHER).ports[OTHER]
    with strangers() as (frozen, banner, echo, hangs_up, _), kept_port() as closed:
        found = here.connect(
            row(port), row(port, "another"), row(frozen, "frozen"), row(banner, "banner"), row(echo, "echo"),
            row(hangs_up, "hangs-up"), row(closed, "closed"), row(port, "blackhole", "240.0.0.9"),
            ["no-source", "10.99.99.99", OTHER, port, SUBNET, False],
        )  # fmt: skip
    stranger, unroutable = LinkCause.STRANGER, LinkCause.UNROUTABLE
    assert {link.target: (link.cause, link.detail) for link in found.broken} == {
        "another": (stranger, "what answers there closed the connection, which the agent does not do"),
        "hangs-up": (stranger, "what answers there closed the connection, which the agent does not do"),
        "banner": (stranger, "something other than the agent of banner answers there"),
        "echo": (stranger, "something other than the agent of echo answers there"),
        "frozen": (LinkCause.CUT, "connected, but no answer within 5 s"),
        "closed": (LinkCause.REFUSED, "connection refused, although its agent listens there"),
        "blackhole": (unroutable, "Invalid argument"),
        "no-source": (unroutable, "Cannot assign requested address"),
    }
    assert [(reach.source, reach.tried, reach.reached) for reach in found.reaches] == [
        (ONE, 8, 1),
        ("10.99.99.99", 1, 0),
    ]


def test_where_there_is_no_time_nothing_is_blamed(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    port = there.listen(OTHER).ports[OTHER]
    with strangers() as (frozen, *_):
        found = here.connect(*[row(frozen, "slow")] * 300, row(port, "late"), seconds=0.1)
    assert {(link.target, link.cause) for link in found.broken} == {
        ("slow", LinkCause.UNTRIED), ("late", LinkCause.UNTRIED),
    }  # fmt: skip
    assert (found.reaches, found.tried_to) == ((), frozenset())


def test_who_is_not_told_of_for_want_of_room_does_not_count_as_tried(agents: tuple[Meshed, Meshed]) -> None:
    with kept_port() as closed:
        found = agents[1].connect(*[row(closed, "first")] * 4096, row(closed, "beyond"))
    assert len(found.broken) == 4096
    assert {link.target for link in found.broken} == found.tried_to == {"first"}
    assert (found.reaches[0].tried, found.reaches[0].reached) == (4097, 0)


def test_links_that_wait_in_silence_hold_up_no_other(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    port = there.listen(OTHER).ports[OTHER]
    with strangers() as (frozen, *_):
        began = time.monotonic()
        found = here.connect(*[row(frozen, "slow")] * 60, *[row(port)] * 40)
    assert found.reaches[0].reached == 40
    assert {link.cause for link in found.broken} == {LinkCause.CUT}
    assert time.monotonic() - began < 30  # one batch after the other would take 40


def test_a_free_port_of_the_jobs_is_listened_on_and_reached(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    with kept_port() as port, kept_port() as nobody:
        assert there.listen(ports=(port,)).needed == (PortState(port, free=True),)
        found = here.connect(row(port, job=True))
        assert (found.broken, found.reaches, found.tried_to) == ((), (), frozenset({"other"}))
        assert [(link.cause, link.port) for link in here.connect(row(nobody, job=True)).broken] == [
            (LinkCause.REFUSED, nobody)
        ]


def test_a_port_that_is_taken_is_told_with_who_has_it(agents: tuple[Meshed, Meshed]) -> None:
    there, _ = agents
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        (state,) = there.listen(ports=(port,)).needed
    assert (state.free, state.error) == (False, "")
    assert f"(pid {os.getpid()}) of " in state.taken_by


def test_a_port_that_only_waits_for_its_time_to_end_is_free(agents: tuple[Meshed, Meshed]) -> None:
    there, _ = agents
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        with closing(socket.create_connection(("127.0.0.1", port))) as client:
            server.accept()[0].close()  # who closes first keeps the port in TIME_WAIT
            assert client.recv(1) == b""
    assert there.listen(ports=(port,)).needed == (PortState(port, free=True),)


def test_an_address_that_is_not_the_nodes_own_is_told_and_costs_the_others_nothing(
    agents: tuple[Meshed, Meshed],
) -> None:
    facts = agents[0].listen("10.99.99.99", OTHER)
    assert list(facts.ports) == [OTHER]
    assert "Cannot assign requested address" in facts.failed["10.99.99.99"]


def test_port_scanners_and_crowds_do_no_harm(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    port = there.listen(OTHER).ports[OTHER]
    crowd = [socket.create_connection((OTHER, port)) for _ in range(3)]
    crowd[0].sendall(b"GET / HTTP/1.1\r\nHost: there is no such thing\r\n\r\n")
    crowd[1].sendall(b"x" * 100)
    crowd[2].close()
    crowd += [socket.create_connection((OTHER, port)) for _ in range(597)]  # more than may stay
    for sock in crowd[:2]:
        with suppress(ConnectionResetError):
            assert sock.recv(100) == b""
    assert here.connect(row(port)).reaches[0].reached == 1
    for sock in crowd:
        sock.close()


def test_a_peer_that_holds_connections_with_a_proof_keeps_no_other_one_out(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    port = there.listen(OTHER).ports[OTHER]
    with all_of(closing(held(port, f"127.0.1.{number}")) for number in range(1, 6) for _ in range(130)):
        assert here.connect(row(port)).reaches[0].reached == 1


def test_one_peer_holds_a_quarter_of_the_connections_at_most(agents: tuple[Meshed, Meshed]) -> None:
    port = agents[0].listen(OTHER).ports[OTHER]
    with all_of(closing(held(port, "127.0.1.1")) for _ in range(200)) as crowd:
        assert sum(alive(sock) for sock in crowd) == 128


def held(port: int, source: str) -> socket.socket:
    """Connect from an address, with the proof that a node of the run has, and hold the connection."""
    sock = socket.create_connection((OTHER, port), source_address=(source, 0))
    with suppress(ConnectionError):
        sock.sendall(proof(TOKEN, "other", "client"))
        sock.recv(PROOF)  # its answer, or its end
    return sock


def alive(sock: socket.socket) -> bool:
    try:
        return sock.recv(1, socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@contextmanager
def all_of(socks: Iterable[closing[socket.socket]]) -> Iterator[list[socket.socket]]:
    """Hold all of them for a while."""
    with ExitStack() as stack:
        yield [stack.enter_context(sock) for sock in socks]


def test_nothing_listens_any_more_once_the_agent_has_gone(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    port = there.listen(OTHER).ports[OTHER]
    there.bye()
    end = time.monotonic() + 60
    while not here.connect(row(port)).broken:
        assert time.monotonic() < end
    assert [link.cause for link in here.connect(row(port)).broken] == [LinkCause.REFUSED]


def test_a_port_of_the_jobs_can_be_had_at_once_whoever_had_connected_to_it(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    with kept_port() as port:
        there.listen(OTHER, ports=(port,))
    assert here.connect(row(port, job=True)).broken == ()
    crowd = [socket.create_connection((OTHER, port)) for _ in range(3)]
    crowd[0].sendall(b"x" * PROOF)
    crowd[1].sendall(proof(TOKEN, "other", "client"))
    assert crowd[1].recv(1) == proof(TOKEN, "other", "server")[:1]
    there.bye()
    with suppress(ConnectionResetError):
        assert crowd[2].recv(1) == b""  # the agent has ended
    end = time.monotonic() + 40  # for its port to follow it; what is left in TIME_WAIT stays for a minute
    while not taken_as_by_the_least_careful_job(port):
        assert time.monotonic() < end
    for sock in crowd:
        sock.close()


def taken_as_by_the_least_careful_job(port: int) -> bool:
    with closing(socket.socket()) as job, suppress(OSError):  # with no SO_REUSEADDR
        job.bind((OTHER, port))
        return True
    return False


def test_who_answers_a_byte_at_a_time_holds_up_neither_the_others_nor_the_run(agents: tuple[Meshed, Meshed]) -> None:
    there, here = agents
    port = there.listen(OTHER).ports[OTHER]
    with strangers() as (*_, drips):
        began = time.monotonic()
        found = here.connect(*[row(drips, "drips")] * 9, row(port), seconds=100.0)
    assert time.monotonic() - began < 32 * DRIP * 5  # one after the other would take nine times what one takes
    why = "something other than the agent of drips answers there"
    assert {(link.target, link.cause, link.detail) for link in found.broken} == {("drips", LinkCause.STRANGER, why)}
    assert [(reach.tried, reach.reached) for reach in found.reaches] == [(10, 1)]


@contextmanager
def kept_port() -> Iterator[int]:
    """Hold a port on which nobody listens: an agent may, and the kernel gives it to no neighbour meanwhile."""
    with closing(socket.socket(socket.AF_INET6)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("::", 0))
        yield int(sock.getsockname()[1])


@contextmanager
def strangers() -> Iterator[tuple[int, ...]]:
    """Listen as what is no agent: one that never answers, one with a banner, one that echoes, one that hangs up, one
    that answers a byte at a time.
    """
    over = threading.Event()

    def drips(sock: socket.socket) -> None:
        while not over.wait(DRIP):
            sock.sendall(b"x")

    servers = [socket.create_server((OTHER, 0), backlog=1000) for _ in range(5)]
    for server, manner in zip(servers[1:], (_says_its_name, _echoes, _hangs_up, drips), strict=True):
        for _ in range(9):
            threading.Thread(target=_serve, args=(server, manner), daemon=True).start()
    yield tuple(int(server.getsockname()[1]) for server in servers)
    over.set()
    for server in servers:
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()


def _says_its_name(sock: socket.socket) -> None:
    sock.sendall(b"SSH-2.0-x\r\n")
    sock.recv(1000)
    sock.recv(1000)


def _echoes(sock: socket.socket) -> None:
    while data := sock.recv(1000):
        sock.sendall(data)


def _hangs_up(sock: socket.socket) -> None:
    sock.recv(1000)


def _serve(server: socket.socket, manner: Callable[[socket.socket], None]) -> None:
    with suppress(OSError):
        while True:
            with closing(server.accept()[0]) as sock, suppress(OSError):
                manner(sock)
