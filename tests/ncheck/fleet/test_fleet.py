"""The fan-out over scripted transports: every node once, one deadline, nothing lost, never a raise for a bad node."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from ncheck.model.evidence import Answer, Cause, Command, Evidence
from ncheck.model.node import Node
from ncheck.settings import JobEnvironment, Settings

from tests.ncheck.fleet.scripted import HELLO, Told, Ways, asked, collected, first, interrupted, nodes


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
    found = collected([f"n{number}" for number in range(12)], [], ways, Settings(width=3))
    assert len(found) == 12
    assert ways.most_at_once <= 3


@pytest.mark.slow
def test_no_further_node_is_asked_while_the_answers_of_many_wait_to_be_taken() -> None:
    names, most = [f"n{number}" for number in range(500)], 64 + 2  # what waits, and what two workers had begun
    ways = Ways(failing=dict.fromkeys(names, Cause.REFUSED))
    run = asked(nodes(*names), [first(names, (HELLO,))], Settings(width=2), lambda _: ways, Told())
    for taken, _ in enumerate(run, start=1):
        assert ways.connected <= taken + most
    assert ways.connected == len(names)


@pytest.mark.slow
def test_the_deadline_ends_the_run_and_loses_nothing() -> None:
    slow = Command(("sh", "-c", "[ $NODE = done ] || sleep 600"), timeout=600)
    never = threading.Event()
    ways = Ways(waiting={"stuck": never})
    began = time.monotonic()
    found = collected(["quick", "stuck"], [HELLO, slow], ways, Settings(deadline=6.0))
    assert time.monotonic() - began < 75.0  # the command would take ten minutes
    assert (found["quick"].login.reached, found["quick"].login.cause) == (True, Cause.DEADLINE)
    assert found["quick"].replies[HELLO.key].stdout == "hello\n"
    assert (found["stuck"].login.reached, found["stuck"].login.cause) == (False, Cause.DEADLINE)
    never.set()


def test_a_node_that_got_less_than_the_time_to_connect_is_not_blamed() -> None:
    ways = Ways(failing={"late": Cause.FILTERED, "refused": Cause.REFUSED})
    found = collected(["late", "refused"], [], ways, Settings(deadline=50.0, connect_timeout=60.0))
    assert [found[name].login.cause for name in ("late", "refused")] == [Cause.DEADLINE, Cause.REFUSED]


def test_nodes_whose_turn_never_came_are_named() -> None:
    never = threading.Event()
    ways = Ways(waiting={"a": never})
    found = collected(["a", "b"], [], ways, Settings(width=1, deadline=1.0))
    login = found["b"].login
    assert (login.cause, login.detail) == (Cause.NOT_TRIED, "not tried: the run's deadline passed before its turn")
    never.set()


def test_an_interrupt_yields_what_is_known_and_then_raises() -> None:
    never = threading.Event()
    run = asked(nodes("a", "b"), [first("ab", [HELLO])], Settings(), lambda _: Ways(waiting={"b": never}), Told())
    assert next(run).node == "a"
    threading.Thread(target=interrupted, args=(run,)).start()
    known: list[Evidence] = []
    with pytest.raises(KeyboardInterrupt):
        known.extend(run)
    assert [(e.node, e.login.cause, e.login.detail) for e in known] == [
        ("b", Cause.DEADLINE, "ncheck was interrupted"),
    ]
    never.set()


def test_failures_are_told_at_once_and_by_name() -> None:
    told = Told()
    list(asked(nodes("a", "b"), [first("ab", [])], Settings(), lambda _: Ways(failing={"b": Cause.REFUSED}), told))
    assert told.failed == [("b", Cause.REFUSED)]


def test_only_the_greeting_is_asked_for_where_no_source_is_wanted() -> None:
    found = collected(["a"], [], Ways())
    assert found["a"].greeting
    assert found["a"].greeting.python == ""


def test_the_jobs_environment_is_each_nodes_own() -> None:
    class PerNode(Settings):
        def environment_of(self, node: str) -> JobEnvironment:
            return JobEnvironment(setup=f"export NODE={node}")

    node = Command(("sh", "-c", "echo $NODE"), job=True)
    found = collected(["a", "b"], [node], Ways(), PerNode())
    assert {name: evidence.replies[node.key].stdout for name, evidence in found.items()} == {"a": "a\n", "b": "b\n"}


def test_the_clock_is_read_by_the_quickest_ping() -> None:
    evidence = collected(["a"], [Answer("clock")], Ways())["a"]
    assert evidence.clock_offset is not None
    assert evidence.clock_uncertainty is not None
    assert abs(evidence.clock_offset) <= evidence.clock_uncertainty + 0.005


def test_listing_and_slots_travel_with_the_evidence() -> None:
    node = replace(Node("a"), places=("nodes.txt:3",), slots=8)
    evidence = next(iter(asked([node], [first("a", [])], Settings(), lambda _: Ways(), Told())))
    assert (evidence.places, evidence.slots) == (("nodes.txt:3",), 8)
