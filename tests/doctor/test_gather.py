"""The fan-out over scripted transports: every node once, one deadline, nothing lost, never a raise for a bad node."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from doctor.collect import facts_of
from doctor.gather import PEERS, gather
from doctor.model.evidence import Answer, Cause, Command, Evidence, Login, Reply, Source, Status
from doctor.model.facts import PeerSshFacts
from doctor.model.node import Node
from doctor.observer import Silent
from doctor.settings import JobEnvironment, Settings
from doctor.transport.link import LoginFailedError, Stream
from doctor.transport.local import LocalTransport

HELLO = Command(("echo", "hello"))


@dataclass
class Ways:
    """This machine under many names; some of them fail as they are told to, or wait for an event."""

    name: str = "ways"
    failing: dict[str, Cause | Exception] = field(default_factory=dict)
    waiting: dict[str, threading.Event] = field(default_factory=dict)
    open_at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def connect(self, node: Node, timeout: float) -> Stream:
        with self.lock:
            self.open_at_once += 1
            self.most_at_once = max(self.most_at_once, self.open_at_once)
        try:
            if event := self.waiting.get(node.name):
                event.wait(timeout)
            why = self.failing.get(node.name)
            if isinstance(why, Exception):
                raise why
            if why:
                raise LoginFailedError(Login(reached=False, cause=why, detail="scripted"))
            return LocalTransport().connect(node, timeout)
        finally:
            with self.lock:
                self.open_at_once -= 1


@dataclass
class Told(Silent):
    """An observer that keeps what it was told."""

    failed: list[tuple[str, Cause | None]] = field(default_factory=list)

    def login_failed(self, node: str, login: Login) -> None:
        self.failed.append((node, login.cause))


def nodes(*names: str) -> tuple[Node, ...]:
    return tuple(Node(name) for name in names)


def collected(
    names: Sequence[str], sources: Sequence[Source], ways: Ways, settings: Settings | None = None
) -> dict[str, Evidence]:
    run = gather(nodes(*names), sources, settings or Settings(mesh="none"), lambda _: ways, Told())
    return {evidence.node: evidence for evidence in run}


def test_every_node_comes_once_whatever_it_is_like() -> None:
    ways = Ways(failing={"b": Cause.REFUSED, "c": RuntimeError("a bug of ours")})
    found = collected(["a", "b", "c"], [HELLO], ways)
    assert {name: (e.login.reached, e.login.cause, list(e.replies)) for name, e in found.items()} == {
        "a": (True, None, [HELLO.key]),
        "b": (False, Cause.REFUSED, []),
        "c": (False, Cause.TRANSPORT, []),
    }
    assert found["c"].login.detail == "RuntimeError: a bug of ours"


def test_no_more_than_the_width_are_connected_to_at_once() -> None:
    ways = Ways()
    found = collected([f"n{number}" for number in range(12)], [], ways, Settings(mesh="none", width=3))
    assert len(found) == 12
    assert ways.most_at_once <= 3


def test_the_deadline_ends_the_run_and_loses_nothing() -> None:
    slow = Command(("sh", "-c", "[ $NODE = done ] || sleep 600"), timeout=600)
    never = threading.Event()
    ways = Ways(waiting={"stuck": never})
    began = time.monotonic()
    found = collected(["quick", "stuck"], [HELLO, slow], ways, Settings(mesh="none", deadline=2.0))
    assert time.monotonic() - began < 4.0
    assert (found["quick"].login.reached, found["quick"].login.cause) == (True, Cause.DEADLINE)
    assert found["quick"].replies[HELLO.key].stdout == "hello\n"
    assert (found["stuck"].login.reached, found["stuck"].login.cause) == (False, Cause.DEADLINE)
    never.set()


def test_a_node_that_got_less_than_the_time_to_connect_is_not_blamed() -> None:
    ways = Ways(failing={"late": Cause.FILTERED, "refused": Cause.REFUSED})
    found = collected(["late", "refused"], [], ways, Settings(mesh="none", deadline=5.0, connect_timeout=15.0))
    assert [found[name].login.cause for name in ("late", "refused")] == [Cause.DEADLINE, Cause.REFUSED]


def test_nodes_whose_turn_never_came_are_named() -> None:
    never = threading.Event()
    ways = Ways(waiting={"a": never})
    found = collected(["a", "b"], [], ways, Settings(mesh="none", width=1, deadline=1.0))
    assert (found["b"].login.reached, found["b"].login.cause) == (False, Cause.DEADLINE)
    never.set()


def test_an_interrupt_yields_what_is_known_and_then_raises() -> None:
    never = threading.Event()
    run = gather(nodes("a", "b"), [HELLO], Settings(mesh="none"), lambda _: Ways(waiting={"b": never}), Told())
    assert next(run).node == "a"
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    known: list[Evidence] = []
    with pytest.raises(KeyboardInterrupt):
        known.extend(run)
    assert [(e.node, e.login.cause, e.login.detail) for e in known] == [
        ("b", Cause.DEADLINE, "ncheck was interrupted"),
    ]
    never.set()


def test_failures_are_told_at_once_and_by_name() -> None:
    told = Told()
    list(gather(nodes("a", "b"), [], Settings(mesh="none"), lambda _: Ways(failing={"b": Cause.REFUSED}), told))
    assert told.failed == [("b", Cause.REFUSED)]


def test_only_the_greeting_is_asked_for_where_no_source_is_wanted() -> None:
    found = collected(["a"], [PEERS], Ways(), Settings(mesh="none"))
    assert found["a"].greeting
    assert found["a"].greeting.python == ""
    assert found["a"].replies[PEERS.key] == Reply(Status.OK, value={"peers": {}})


def test_peers_are_asked_when_every_login_is_settled_and_only_those_that_were_reached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ssh = tmp_path / "ssh"
    refuses_b = 'case "$*" in *"-- b "*) echo Permission denied >&2; exit 255;; esac\n'
    ssh.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> {tmp_path}/asked\n{refuses_b}")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    late = threading.Event()
    threading.Timer(0.5, late.set).start()
    ways = Ways(failing={"down": Cause.REFUSED}, waiting={"c": late})
    found = collected(["a", "b", "c", "down"], [PEERS], ways, Settings(mesh="auto", port=10001, user="me"))
    edges = {name: peers(found[name]) for name in ("a", "b", "c")}
    assert {name: {e.target: e.cause for e in said.peers} for name, said in edges.items()} == {
        "a": {"b": Cause.CLOSED, "c": None}, "b": {"c": None, "a": None}, "c": {"a": None, "b": Cause.CLOSED},
    }  # fmt: skip
    assert found["down"].replies == {}
    lines = (tmp_path / "asked").read_text().splitlines()
    assert all("-p 10001 -l me -- " in line and line.endswith(" true") for line in lines)
    assert len(lines) == 6


def peers(evidence: Evidence) -> PeerSshFacts:
    facts = facts_of(evidence, [PeerSshFacts])[PeerSshFacts]
    assert isinstance(facts, PeerSshFacts)
    return facts


def test_the_jobs_environment_is_each_nodes_own() -> None:
    class PerNode(Settings):
        def environment_of(self, node: str) -> JobEnvironment:
            return JobEnvironment(setup=f"export NODE={node}")

    node = Command(("sh", "-c", "echo $NODE"), job=True)
    found = collected(["a", "b"], [node], Ways(), PerNode(mesh="none"))
    assert {name: evidence.replies[node.key].stdout for name, evidence in found.items()} == {"a": "a\n", "b": "b\n"}


def test_the_clock_is_read_by_the_quickest_ping() -> None:
    evidence = collected(["a"], [Answer("clock")], Ways())["a"]
    assert evidence.clock_offset is not None
    assert evidence.clock_uncertainty is not None
    assert abs(evidence.clock_offset) <= evidence.clock_uncertainty + 0.005


def test_listing_and_slots_travel_with_the_evidence() -> None:
    node = replace(Node("a"), places=("nodes.txt:3",), slots=8)
    evidence = next(iter(gather([node], [], Settings(mesh="none"), lambda _: Ways(), Told())))
    assert (evidence.places, evidence.slots) == (("nodes.txt:3",), 8)
