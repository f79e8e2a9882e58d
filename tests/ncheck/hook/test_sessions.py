"""One connection to the part of ncheck on a node serves a session after the other, where the job is watched."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from subprocess import DEVNULL
from typing import Any

import pytest
from ncheck.agent.frames import packed
from ncheck.facts.limits import LIMITS
from ncheck.fleet.bootstrap import module_text
from ncheck.fleet.engine import NotConnectedError
from ncheck.fleet.session import Known, Request, Session, SessionEndedError, SessionTerms
from ncheck.hook.children import start_child
from ncheck.hook.engine import RanksEngine, SocketStream
from ncheck.model.evidence import Command, Source
from ncheck.model.node import Node
from ncheck.this_machine.process import end
from ncheck.triage.facts.processes import asked

from tests.ncheck.hook.gathering import PATIENCE

NODE = Node("gpu01")
PROCESSES = asked(match=None)


@contextmanager
def node_part(*, watched: bool = True) -> Iterator[RanksEngine]:
    """Start what a rank starts, as if this process were the rank, and give the examiner's side."""
    ours, its = socket.socketpair()
    control, other = socket.socketpair()
    call = f"main(int(sys.argv[1]),{PATIENCE},{watched})"
    with other, its:
        process = start_child(
            "ncheck.hook.node_part", call, (str(os.getpid()),), stdin=other.fileno(), stdout=DEVNULL, site=False
        )
        socket.send_fds(control, [b"."], [its.fileno()])
    engine = RanksEngine({NODE.name: ours}, {}, kept=True)
    try:
        yield engine
    finally:
        engine.lose(NODE.name, "the test is over")
        control.close()
        end(process)


def session(engine: RanksEngine) -> tuple[SocketStream, Session]:
    """Connect, and let the other side start."""
    stream = engine.connect(NODE, PATIENCE)
    wanted = SessionTerms(os.urandom(8).hex(), time.monotonic() + PATIENCE)
    begun = Session(stream, Known(NODE), wanted, module_text)
    begun.greet(time.monotonic())
    begun.start()
    return stream, begun


def replies(engine: RanksEngine, *sources: Source) -> dict[str, Any]:
    """Ask in a session of its own; return status and reason by key."""
    stream, begun = session(engine)
    begun.collect(Request(sources))
    stream.close()
    return {key: (one.status.value, one.reason) for key, one in begun.known.replies.items()}


def test_one_session_follows_the_other_and_knows_what_triage_asks() -> None:
    with node_part() as engine:
        for _ in range(3):
            assert replies(engine, LIMITS, PROCESSES) == {LIMITS.key: ("ok", ""), PROCESSES.key: ("ok", "")}


def test_no_session_answers_what_is_not_known() -> None:
    refused = "failed", "the ncheck on this node does not know this question"
    reboot = Command(("sh", "-c", "reboot"))
    with node_part() as engine:
        assert replies(engine, LIMITS) == {LIMITS.key: ("ok", "")}
        assert replies(engine, reboot, asked(match=".*")) == {reboot.key: refused, PROCESSES.key: refused}


def test_a_session_that_is_ended_among_its_answers_leaves_nothing_to_the_next() -> None:
    with node_part() as engine:
        for said_bye in (False, True):
            stream, begun = session(engine)
            stream.send(begun.wanted.start + Request([LIMITS, PROCESSES]).frame, 5.0)
            if said_bye:
                begun.bye()
            else:
                stream.close()
            assert replies(engine, LIMITS) == {LIMITS.key: ("ok", "")}


def test_closing_ends_the_wait_of_another_thread_which_takes_nothing_of_the_next_session() -> None:
    with node_part() as engine:
        stream, begun = session(engine)
        ended: Future[str] = Future()

        def wait() -> None:
            try:
                begun.collect(Request([LIMITS]))
                stream.receive(PATIENCE)
            except SessionEndedError as error:
                ended.set_result(str(error))

        threading.Thread(target=wait).start()
        while LIMITS.key not in begun.known.replies:
            time.sleep(0.01)
        stream.close()
        assert ended.result(PATIENCE) == "ncheck's part on this node ended: the stream was closed"
        assert replies(engine, LIMITS) == {LIMITS.key: ("ok", "")}


def test_a_session_of_which_half_was_sent_is_the_last_one() -> None:
    with node_part() as engine:
        stream = engine.connect(NODE, PATIENCE)
        wanted = SessionTerms(os.urandom(8).hex(), time.monotonic() + PATIENCE)
        Session(stream, Known(NODE), wanted, module_text).greet(time.monotonic())
        stream.close()
        with pytest.raises(NotConnectedError, match="its connection to the watch has ended"):
            engine.connect(NODE, PATIENCE)


def test_a_connection_that_was_never_used_needs_no_end() -> None:
    with node_part() as engine:
        engine.connect(NODE, PATIENCE).close()
        assert replies(engine, LIMITS) == {LIMITS.key: ("ok", "")}


def test_a_node_that_was_not_told_to_watch_serves_the_examination_alone() -> None:
    with node_part(watched=False) as engine:
        assert replies(engine, LIMITS, PROCESSES)[LIMITS.key] == ("ok", "")
        with pytest.raises(NotConnectedError, match="no rank there was started with NCHECK_WATCH"):
            engine.connect(NODE, PATIENCE)


def test_what_is_no_session_ends_the_part_of_the_node() -> None:
    with node_part() as engine:
        assert replies(engine, LIMITS) == {LIMITS.key: ("ok", "")}
        engine.connect(NODE, PATIENCE)
        engine.sockets[NODE.name].sendall(packed({"do": "collect", "sources": []}) + b"\n")
        with pytest.raises(NotConnectedError):
            engine.connect(NODE, PATIENCE)
