"""Strangers, forgers and broken ranks: the honest ranks meet all the same, and in time."""

from __future__ import annotations

import os
import resource
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress

import pytest
from ncheck.hook.meeting.attendance import BadRanks
from ncheck.hook.meeting.connection import user_of_peer
from ncheck.hook.meeting.messages import NotMet, Outcome, Told
from ncheck.hook.meeting.ports import listen
from ncheck.hook.meeting.wire import GREETING, job_token
from ncheck.rank_variables import Rank

from tests.ncheck.hook.gathering import VERDICT, Bare, Job, dial, nothing_left  # noqa: F401  a fixture

# Ranks as real processes, or meetings that wait.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]

TOLD = Told(VERDICT)


class Held:
    """A job of two whose rank 0 waits for rank 1."""

    def __init__(self, timeout: float = 20.0) -> None:
        self.job = Job(2, timeout=timeout)
        self.first: Future[Outcome] = self.job.start(0)

    def stranger(self) -> socket.socket:
        sock = dial(self.job.ports[0])
        sock.settimeout(20)
        return sock

    def proved(self) -> Bare:
        return Bare(self.stranger(), self.job.token).prove()

    def ends_well(self) -> None:
        began = time.monotonic()
        assert self.job.meet(1) == TOLD
        assert self.first.result(20) == TOLD
        assert time.monotonic() - began < 5.0
        assert [member.rank for member in self.job.attendances[0].members] == [0, 1]


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open many files, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    if not held.first.done():  # the test failed
        held.job.meet(1)


def test_a_stranger_gets_nothing_but_the_greeting(held: Held) -> None:
    for garbage in (b"GET / HTTP/1.1\r\nHost: gpu01\r\n\r\n" * 4, b"\x16\x03\x01" * 40, b"\0" * 64, os.urandom(4096)):
        with closing(held.stranger()) as sock:
            sock.sendall(garbage)
            answer = b""
            with suppress(ConnectionResetError):
                while data := sock.recv(65536):
                    answer += data
            assert answer in {b"", GREETING + answer[len(GREETING) :]}
            assert len(answer) <= len(GREETING) + 32
    held.ends_well()


def test_a_stranger_that_sends_byte_by_byte_is_dropped(held: Held) -> None:
    with closing(held.stranger()) as sock, suppress(ConnectionError):
        sock.settimeout(0.05)
        began = time.monotonic()
        while time.monotonic() - began < 8.0:
            sock.send(b"x")
            with suppress(TimeoutError):
                if sock.recv(4096) == b"":
                    break
        assert time.monotonic() - began < 6.0
    held.ends_well()


def test_a_rank_that_knows_another_token_is_turned_away(held: Held) -> None:
    other = job_token(Rank(1, 2, job="another"), "", "user")
    with Bare(held.stranger(), other) as forger, pytest.raises(AssertionError, match="hung up before the proof"):
        forger.prove()
    held.ends_well()


@pytest.mark.usefixtures("many_files")
def test_a_scanner_with_two_thousand_connections_keeps_nobody_out(held: Held) -> None:
    with ExitStack() as stack:
        for _ in range(2000):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)  # noqa: FBT003
            sock.connect_ex(("127.0.0.1", held.job.ports[0]))
        held.ends_well()


def test_half_open_peers_keep_nobody_out(held: Held) -> None:
    for _ in range(50):
        sock = held.stranger()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    held.ends_well()


def test_nonsense_of_a_proved_peer_is_dropped(held: Held) -> None:
    with held.proved() as peer:
        peer.say({"what": "rank", "member": {**held.job.member(1), "pid": True}, "seconds": 30})
        assert peer.is_closed()
    held.ends_well()


def test_a_proved_peer_that_sends_a_gigabyte_is_dropped(held: Held) -> None:
    with held.proved() as peer:
        peer.sock.sendall(struct.pack(">I", 1 << 30))
        with suppress(ConnectionError):
            for _ in range(1024):
                peer.sock.sendall(bytes(1 << 20))
        assert peer.is_closed()
    held.ends_well()


def test_a_rank_that_sends_a_million_frames_is_dropped() -> None:
    job = Job(3)
    first = job.start(0)
    with Bare(dial(job.ports[0]), job.token) as peer:
        peer.prove().enter(job.member(1))
        with suppress(ConnectionError):
            for _ in range(1_000_000):
                peer.say({"what": "chatter"})
        assert peer.is_closed()
    assert job.outcomes(2) == [TOLD]
    assert first.result(10) == TOLD
    words = "rank 1 (pid 1001 on host1) sent what ncheck does not send"
    assert job.attendances[0].problems == (BadRanks("misuse", (1,), words),)


# Jobs whose id can be guessed. Ranks of another machine may be anybody; on this one, the kernel tells whose they are.


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the ranks seem to come from other machines."""
    monkeypatch.setattr("ncheck.hook.meeting.connection._is_own", lambda _: False)


@pytest.mark.usefixtures("far")
def test_a_stranger_that_comes_as_a_rank_and_ends_stops_nothing_if_the_rank_comes() -> None:
    job = Job(2)
    first = job.start(0)
    with Bare(dial(job.ports[0]), job.token) as forger:
        forger.prove().enter(job.member(1), seconds=0)
        hang_up(forger)
    assert [job.meet(1), first.result(10)] == [TOLD, TOLD]
    (attendance,) = job.attendances
    assert (attendance.missing, attendance.ended, attendance.problems) == ((), (), ())


def hang_up(peer: Bare) -> None:
    """End a connection, and wait until rank 0 knows."""
    peer.sock.shutdown(socket.SHUT_WR)
    assert peer.is_closed()


def test_the_ranks_of_a_secret_job_are_believed_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncheck.hook.meeting.connection.user_of_peer", lambda _: None)
    job = Job(2, secret=True)
    first = job.start(0)
    with Bare(dial(job.ports[0]), job.token) as only:
        only.prove().enter(job.member(1, size=7))
    assert first.result(10) == TOLD
    assert [(one.kind, one.ranks) for one in job.attendances[0].problems] == [("world-size", (1,))]


def test_another_user_of_this_machine_who_knows_the_token_is_no_rank_and_no_hub(
    monkeypatch: pytest.MonkeyPatch, foreign: tuple[Job, socket.socket]
) -> None:
    monkeypatch.setattr("ncheck.hook.meeting.connection._user", lambda *_: os.geteuid() + 4711)
    job = Job(2, timeout=3.0)
    first = job.start(0)
    with Bare(dial(job.ports[0]), job.token) as forger:
        forger.prove().say({"what": "rank", "member": job.member(1), "seconds": 30})
        assert forger.is_closed()
    assert first.result(10) == TOLD
    assert (job.attendances[0].missing, job.attendances[0].strangers) == ((1,), ("127.0.0.1",))

    theirs, listener = foreign
    second = theirs.start(1)
    sock, _ = listener.accept()
    with Bare(sock, theirs.token, hub=True) as hub:
        hub.prove()
        assert hub.is_closed()
    outcome = second.result(10)
    assert isinstance(outcome, NotMet)
    assert (outcome.kind, outcome.is_error) == ("foreign", False)


@pytest.mark.parametrize("how", ["asked", "read"])
def test_the_kernel_tells_whose_the_other_end_is(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    def refused(*_: object) -> int:
        raise OSError("no such socket")

    monkeypatch.setattr(
        "ncheck.hook.meeting.connection._row_user" if how == "asked" else "ncheck.hook.meeting.connection._asked",
        refused,
    )
    for host in ("127.0.0.1", "::1"):
        with closing(listen(0)) as listener:
            listener.setblocking(True)  # noqa: FBT003
            port = listener.getsockname()[1]
            with closing(socket.create_connection((host, port), 10)) as sock, closing(listener.accept()[0]) as accepted:
                assert [user_of_peer(sock), user_of_peer(accepted)] == [os.geteuid()] * 2


def test_silent_connections_leave_room_for_others_and_a_missing_rank_is_no_error() -> None:
    job = Job(2, timeout=8.0)
    first = job.start(0)
    dial(job.ports[0]).close()
    with ExitStack() as stack:
        for _ in range(200):  # more than one address may hold open
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)  # noqa: FBT003
            sock.connect_ex(("127.0.0.1", job.ports[0]))
        with Bare(socket.create_connection(("127.0.0.1", job.ports[0]), 5, ("127.0.0.9", 0)), job.token) as other:
            other.prove()
        assert first.result(20) == TOLD
    (attendance,) = job.attendances
    assert (attendance.missing, attendance.evidence, attendance.strangers) == ((1,), "", ("127.0.0.1",))


# Hubs that are none.


@pytest.fixture
def foreign() -> Iterator[tuple[Job, socket.socket]]:
    """Return a job whose first port somebody else has."""
    job = Job(2, timeout=1.0)
    with closing(listen(job.ports[0])) as listener:
        listener.setblocking(True)  # noqa: FBT003
        listener.settimeout(20)
        yield job, listener


@pytest.mark.parametrize(
    "words",
    [b"", b"SSH-2.0-OpenSSH_9.2\r\n", GREETING + bytes(32)],
    ids=["nothing", "ssh", "whole"],
)
def test_a_stranger_on_the_port_is_told_nothing_and_harms_no_rank(
    foreign: tuple[Job, socket.socket], words: bytes
) -> None:
    job, listener = foreign
    second = job.start(1)
    sock, _ = listener.accept()
    with closing(sock):
        sock.sendall(words)
        outcome = second.result(10)
        assert isinstance(outcome, NotMet)
        assert (outcome.kind, outcome.is_error) == ("foreign", False)
        sock.settimeout(5)
        said = b""
        with suppress(ConnectionResetError):
            while data := sock.recv(4096):
                said += data
        assert len(said) == (64 if words.startswith(GREETING) and len(words) >= len(GREETING) + 32 else 0)


def test_a_job_finds_its_hub_behind_a_stranger(foreign: tuple[Job, socket.socket]) -> None:
    job, _ = foreign
    job.timeout = 10.0
    assert job.outcomes(1, 0) == [TOLD, TOLD]
    assert job.attendances[0].ports == (job.ports[1],)


def test_a_hub_that_talks_nonsense_harms_no_rank(foreign: tuple[Job, socket.socket]) -> None:
    job, listener = foreign
    second = job.start(1)
    sock, _ = listener.accept()
    with Bare(sock, job.token, hub=True) as hub:
        hub.prove()
        assert hub.hear()["what"] == "rank"
        hub.say({"what": "welcome", "member": job.member(0)})
        hub.say({"what": "verdict", "verdict": 7, "ended": []})
        assert second.result(10) == NotMet("lost", "the connection to rank 0 broke")
