"""Nodes that answer with floods, nonsense and silence: each is named for what it did, and none of it is believed."""

from __future__ import annotations

import shlex
import struct
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import pytest
from ncheck.agent.frames import LARGEST, MOST, framed, packed
from ncheck.fleet.engines.command import RshEngine
from ncheck.fleet.session import Known, Request, Session, SessionEndedError, SessionTerms
from ncheck.model.evidence import Cause, Command, Evidence, Login, Status
from ncheck.model.node import Node
from ncheck.settings import Settings

from tests.ncheck.fleet.scripted import Told, Ways, asked, first, nodes

HELLO = Command(("echo", "hello"))
NONCE = "0f3a99bc12d4e5f6"
MARK = "ncheck-" + NONCE

Script = Callable[[], Iterator[bytes]]


class Scripted:
    """A stream whose node says what a generator yields, whatever it is asked."""

    login = Login(reached=True, transport="scripted")

    def __init__(self, says: Iterator[bytes], complaint: bytes = b"", status: int | None = None) -> None:
        self.says, self.complaint, self.status = says, complaint, status
        self.taken = 0

    def send(self, data: bytes, timeout: float) -> None:
        """Take anything."""

    def receive(self, timeout: float) -> bytes:
        said = next(self.says, b"")
        if said == b"silence":
            time.sleep(min(timeout, 0.05))
            raise TimeoutError("nothing came")
        if said == b"reset":
            raise ConnectionResetError("Connection reset by peer")
        self.taken += len(said)
        return said

    def stderr(self) -> bytes:
        return self.complaint

    def exit_status(self, timeout: float) -> int | None:  # noqa: ARG002  the contract's
        return self.status

    def close(self) -> None:
        """Nothing is open."""


class Deaf(Scripted):
    """A node that takes the script, and nothing after it."""

    sent = 0

    def send(self, data: bytes, timeout: float) -> None:  # noqa: ARG002  the contract's
        self.sent += 1
        if self.sent > 1:
            raise BrokenPipeError(32, "Broken pipe")


def greeting(*more: str) -> bytes:
    told = ("hello", "command ncheck-command", "host n1", "boot b", "net net:[1]", "uid 0", "end", *more)
    return ("\n" + "".join(f"{MARK} {line}\n" for line in told)).encode()


def reply(**fields: object) -> bytes:
    frame: bytes = packed({"is": "replies", "replies": {HELLO.key: fields}})
    return frame


STARTED = greeting("go 3.6.15 /usr/bin/python3") + packed({"is": "started"})


def talk(stream: Scripted, *, modules: list[str] | None = None) -> Evidence:
    known = Known(Node("n1"))
    wanted = SessionTerms(NONCE, time.monotonic() + 120.0, connect_timeout=60.0)
    asked = modules if modules is not None else []
    session = Session(stream, known, wanted, asked.append)
    try:
        session.greet(time.monotonic())
        session.start()
        session.collect(Request((HELLO,)))
    except SessionEndedError as error:
        known.fail(error.cause, error.detail)
    return known.evidence()


def endless(line: bytes) -> Iterator[bytes]:
    while True:
        yield line


def then(*parts: bytes) -> Iterator[bytes]:
    yield from parts


@pytest.mark.parametrize("line", [b"x" * 65536, b"Welcome!\n" * 1000, b"\n" * 65536])
def test_a_flood_before_the_greeting_is_stopped_early_and_named(line: bytes) -> None:
    stream = Scripted(endless(line))
    evidence = talk(stream)
    assert (evidence.login.reached, evidence.login.cause) == (False, Cause.FLOODED)
    assert stream.taken < 1024 * 1024


@pytest.mark.parametrize("line", [b"x" * 65536, b"\n" * 65536, b"y\n" * 30000])
def test_a_flood_after_the_greeting_is_stopped_early_and_named(line: bytes) -> None:
    def says() -> Iterator[bytes]:
        yield greeting()
        yield from endless(line)

    stream = Scripted(says())
    evidence = talk(stream)
    assert (evidence.login.reached, evidence.login.cause) == (True, Cause.FLOODED)
    assert stream.taken < 1024 * 1024


@pytest.mark.parametrize(
    "frame",
    [
        lambda: struct.pack(">I", LARGEST + 1),
        lambda: struct.pack(">I", 5) + b"xxxxx",
        lambda: struct.pack(">I", 60000) + zlib.compress(b"0" * 50_000_000)[:60000].ljust(60000, b"0"),
        lambda: b"Traceback (most recent call last):\n",
    ],
)
def test_what_is_no_frame_ends_the_conversation_and_is_named(frame: Callable[[], bytes]) -> None:
    evidence = talk(Scripted(then(STARTED, frame(), b"silence")))
    assert (evidence.login.reached, evidence.login.cause) == (True, Cause.FLOODED)


@pytest.mark.parametrize(
    "value",
    ["[]", "{}", "[0]", '{"a":0}', "1e9", '"ab"', f'"{"x" * 1000}"'],
)
def test_small_frames_that_grow_when_they_are_read_cost_no_more_than_a_node_may(value: str) -> None:
    held = ",".join([value] * ((LARGEST - 1000) // (len(value) + 1)))
    frame = framed(f'{{"is":"replies","replies":{{"command:other":{{"value":[{held}]}}}}}}'.encode())
    assert len(frame) < 100_000

    def says() -> Iterator[bytes]:
        yield STARTED
        yield from endless(frame)

    stream = Scripted(says())
    tracemalloc.start()
    evidence = talk(stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (evidence.login.cause, evidence.login.detail) == (
        Cause.FLOODED,
        f"the node sent more than {MOST // 2**20} MiB of answers",
    )
    assert stream.taken < 1024 * 1024
    assert peak < 3 * MOST


_HOSTILE = r"""
import json, re, struct, sys, threading, zlib
first, second = re.match(r"m=(ncheck-\w+);m=\$\{m\}(\w+);", sys.stdin.readline()).groups()
marked = ("hello", "command ncheck-command", "host n1", "boot b", "net n", "uid 0", "end", "go 3.6.15 /usr/bin/python3")
frame = zlib.compress(json.dumps({"is": "started", "more": [[]] * 100000}).encode())
threading.Thread(target=sys.stdin.buffer.read, daemon=True).start()  # it takes the agent, and whatever else comes
out = sys.stdout.buffer
out.write(("\n" + "".join("%s%s %s\n" % (first, second, line) for line in marked)).encode())
while True:
    out.write(struct.pack(">I", len(frame)) + frame)
"""


@pytest.mark.slow
def test_a_node_that_sends_too_much_costs_the_others_nothing() -> None:
    rsh = RshEngine(lambda _: shlex.join([sys.executable, "-c", _HOSTILE]))
    good = Ways()
    names = ("good1", "bad1", "bad2", "bad3", "good2")
    run = asked(
        nodes(*names), [first(names, [HELLO])], Settings(), lambda node: good if "good" in node.name else rsh, Told()
    )
    found = {evidence.node: evidence for evidence in run}
    flooded: tuple[Cause, str, list[str]] = (
        Cause.FLOODED,
        f"the node sent more than {MOST // 2**20} MiB of answers",
        [],
    )
    assert {name: (one.login.cause, one.login.detail, list(one.replies)) for name, one in found.items()} == {
        **dict.fromkeys(("good1", "good2"), (None, "", [HELLO.key])),
        **dict.fromkeys(("bad1", "bad2", "bad3"), flooded),
    }


def test_a_reply_to_what_was_not_asked_is_not_kept() -> None:
    other = packed({"is": "replies", "replies": {"command:rm -rf /": {"status": "ok"}}})
    nothing = ({"is": "replies"}, {"is": "replies", "replies": [["x"]]}, {"is": "replies", "replies": None})
    strange = map(packed, (["a", "list"], None, *nothing))
    evidence = talk(Scripted(then(STARTED, *strange, other, reply(status="ok", stdout="hello\n", exit_status=0))))
    assert evidence.login.cause is None
    assert list(evidence.replies) == [HELLO.key]


@pytest.mark.parametrize(
    "message",
    [
        {"is": "pong", "id": 1},
        {"is": "replies", "replies": {"command:other": {"status": "ok"}}},
        {"is": "replies", "replies": {}},
        {"is": "wanted", "module": "pynvml"},
        [],
    ],
)
def test_a_flood_of_unexpected_messages_is_stopped_and_named(message: object) -> None:
    def says() -> Iterator[bytes]:
        yield STARTED
        yield from endless(packed(message))

    evidence = talk(Scripted(says()))
    assert (evidence.login.reached, evidence.login.cause) == (True, Cause.FLOODED)
    assert evidence.login.detail == "the node sent 1001 unexpected messages"


@pytest.mark.parametrize("number", ["9" * 5000, "\u00b2", "-1", ""])
def test_a_users_number_that_is_none_is_not_known(number: str) -> None:
    told = (
        "hello",
        "command ncheck-command",
        "host n1",
        "boot b",
        "net net:[1]",
        f"uid {number}",
        "end",
        "go 3.6.15 /usr/bin/python3",
    )
    lines = ("\n" + "".join(f"{MARK} {line}\n" for line in told)).encode()
    evidence = talk(Scripted(then(lines, packed({"is": "started"}), reply(status="ok"))))
    assert evidence.greeting
    assert (evidence.greeting.user_id, evidence.login.cause) == (None, None)


def test_a_reply_of_the_wrong_types_is_a_failed_one() -> None:
    evidence = talk(Scripted(then(STARTED, reply(status="ok", stdout=["not", "text"]))))
    assert evidence.replies[HELLO.key].status is Status.FAILED
    assert evidence.login.cause is None


def test_bytes_may_come_one_at_a_time() -> None:
    sent = b"noise, no newline" + STARTED + reply(status="ok", stdout="hello\n", exit_status=0)
    evidence = talk(Scripted(iter([bytes([byte]) for byte in sent])))
    assert evidence.replies[HELLO.key].stdout == "hello\n"
    assert evidence.greeting
    assert evidence.greeting.noise == "noise, no newline"


def test_a_node_is_sent_no_module_but_those_that_may_travel() -> None:
    asked: list[str] = []
    wanted = packed({"is": "wanted", "module": "../../etc/passwd"})
    talk(Scripted(then(STARTED, wanted, reply(status="ok"))), modules=asked)
    assert asked == ["../../etc/passwd"]
    from ncheck.fleet.bootstrap import module_text

    assert module_text("../../etc/passwd") is None
    assert module_text("os") is None
    assert "nvmlInit" in str(module_text("pynvml"))


@pytest.mark.parametrize(
    ("parts", "cause", "reached"),
    [
        ((b"",), Cause.NO_SHELL, False),
        ((b"This account is currently not available.\n", b""), Cause.NO_SHELL, False),
        ((b"silence",), Cause.NO_SHELL, False),
        ((b"reset",), Cause.CLOSED, False),
        ((greeting(), b""), Cause.CLOSED, True),
        ((greeting("none"),), Cause.NO_PYTHON, True),
        ((greeting(), b"silence"), Cause.NO_PYTHON, True),
        ((greeting("left 126"),), Cause.NOT_ENTERED, True),
        ((greeting("in", "none", "left 0"),), Cause.NO_PYTHON, True),
        ((STARTED, b""), Cause.CLOSED, True),
        ((STARTED, b"reset"), Cause.CLOSED, True),
    ],
)
def test_each_way_to_end_has_its_own_cause(parts: tuple[bytes, ...], cause: Cause, reached: bool) -> None:  # noqa: FBT001
    evidence = talk(Scripted(then(*parts)))
    assert (evidence.login.cause, evidence.login.reached) == (cause, reached)


def test_a_node_that_answers_nothing_larger_than_a_greeting_loses_large_packets() -> None:
    answered = {}
    for transport, end in (("paramiko", b"reset"), ("openssh", b"silence"), ("rsh", b"silence")):
        stream = Scripted(then(greeting(), end))
        stream.login = Login(reached=True, transport=transport)
        answered[transport] = talk(stream).login.cause
    assert answered == {"paramiko": Cause.STALLED, "openssh": Cause.STALLED, "rsh": Cause.NO_PYTHON}


@pytest.mark.parametrize(
    ("parts", "cause"),
    [
        ((greeting("in", "go 3.6.15 /usr/bin/python3", "left 0"), b""), Cause.NOT_ENTERED),
        ((greeting("go 3.6.15 /usr/bin/python3"), b""), Cause.CLOSED),
        ((greeting("go 3.6.15 /usr/bin/python3"), b"silence"), Cause.CLOSED),
        ((STARTED, b""), Cause.CLOSED),
        ((greeting("go 3.6.15 /usr/bin/python3"), b"no frame"), Cause.CLOSED),
    ],
)
def test_who_takes_no_more_is_still_heard_for_why(parts: tuple[bytes, ...], cause: Cause) -> None:
    evidence = talk(Deaf(then(*parts)))
    assert (evidence.login.reached, evidence.login.cause) == (True, cause)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (b"Access denied by pam_slurm_adopt: you have no active jobs on this node\n", Cause.SLURM_JOB_WANTED),
        (b"WARNING: Your password has expired.\n", Cause.PERSON_WANTED),
        (b"Connection closed\n", Cause.NO_SHELL),
    ],
)
def test_what_ended_the_shell_is_read_from_its_words(said: bytes, cause: Cause) -> None:
    assert talk(Scripted(then(b""), complaint=said, status=1)).login.cause is cause
    assert talk(Scripted(then(said, b""), status=1)).login.cause is cause


def test_a_shell_that_ends_at_once_is_told_with_its_status_and_its_words() -> None:
    evidence = talk(Scripted(then(b""), complaint=b"bash: no such file\n", status=3))
    assert evidence.login.detail == "the login shell ended at once with exit status 3: bash: no such file"
    quiet = talk(Scripted(then(b"This account is currently not available.\n", b""), status=1))
    assert quiet.login.detail == (
        "the login shell ended at once with exit status 1: This account is currently not available."
    )
