"""The fan-out in acts and rounds: later ones on the same connections, made of what came before."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from ncheck.model.evidence import Answer, Cause, Command, Note, Reply, Status
from ncheck.model.phase import Answered, NotAsked, Phase, Questions
from ncheck.settings import JobEnvironment, Settings

from tests.ncheck.fleet.scripted import HELLO, Told, Ways, asked, first, nodes, phase

ALSO = Command(("echo", "also"))


def test_a_later_act_asks_on_the_same_connections_once_all_have_answered() -> None:
    late, seen = threading.Event(), list[str]()
    threading.Timer(0.3, late.set).start()

    def ask(_left: float) -> Questions:
        assert sorted(seen) == ["a", "b", "c", "down"]
        return {"a": (ALSO,), "b": (NotAsked(ALSO, "it has nothing to tell"),), "down": (ALSO,)}

    ways = Ways(failing={"down": Cause.REFUSED}, waiting={"c": late})
    names = ["a", "b", "c", "down"]
    acts = [first(names, [HELLO]), phase("asking", names, ask), phase("resting", names, lambda _: {})]
    parts, told = [], Told()
    for evidence in asked(nodes(*names), acts, Settings(), lambda _: ways, told):
        seen.append(evidence.node)
        parts.append((evidence.node, {**evidence.replies, **evidence.notes}))
    assert sorted((name, list(replies)) for name, replies in parts) == [
        ("a", [ALSO.key]), ("a", [HELLO.key]), ("b", [ALSO.key]), ("b", [HELLO.key]), ("c", [HELLO.key]), ("down", []),
    ]  # fmt: skip
    assert ("b", {ALSO.key: Note("it has nothing to tell")}) in parts
    assert ways.connected == 4
    assert told.last == dict.fromkeys(names, "done")


@pytest.mark.slow
def test_a_node_that_is_busy_for_long_holds_up_no_later_act_and_is_left_out_of_it(tmp_path: Path) -> None:
    over = tmp_path / "over"
    slow = Command(("sh", "-c", f"until [ $NODE = a ] || [ -e {over} ]; do sleep 0.02; done"), job=True, timeout=60)

    class PerNode(Settings):
        def environment_of(self, node: str) -> JobEnvironment:
            return JobEnvironment(setup=f"export NODE={node}")

    acts = [
        replace(first("ab", [slow]), until=0.2),  # ten seconds, for "a" to be through
        phase("asking", "ab", lambda _: {"a": (ALSO,), "b": (ALSO,)}),
    ]
    parts = []
    for evidence in asked(nodes("a", "b"), acts, PerNode(), lambda _: Ways(), Told()):
        parts.append((evidence.node, list(evidence.replies)))
        if ALSO.key in evidence.replies:
            over.touch()
    assert parts == [("a", [slow.key]), ("a", [ALSO.key]), ("b", [slow.key])]


@pytest.mark.slow
def test_an_agent_that_was_stopped_is_named_and_the_run_goes_on_without_it_and_one_that_works_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncheck.fleet.session._QUIET", 0.5)
    pid = tmp_path / "pid"
    stops = Command(("sh", "-c", f"echo $PPID > {pid}.new; mv {pid}.new {pid}; kill -STOP $PPID; sleep 2"), timeout=60)
    works = Command(("sleep", "3"), timeout=60)  # for six times as long as an agent may be quiet
    acts = [
        phase("collecting", "ab", lambda _: {"a": (HELLO, works), "b": (HELLO, stops)}),
        phase("asking", "ab", lambda _: {"a": (ALSO,), "b": (ALSO,)}),
    ]
    parts = list(asked(nodes("a", "b"), acts, Settings(), lambda _: Ways(), Told()))
    with suppress(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert [(one.login.cause, sorted(one.replies)) for one in parts if one.node == "a"] == [
        (None, [HELLO.key, works.key]), (None, [ALSO.key]),
    ]  # fmt: skip
    (stopped,) = (one for one in parts if one.node == "b")
    why = "its python3 was stopped (SIGSTOP), or the node froze"
    assert (stopped.login.reached, stopped.login.cause) == (True, Cause.CLOSED)
    assert stopped.login.detail == f"it answered nothing for 2 s, and no ping: {why}"


def test_a_connection_that_ends_in_a_later_act_is_told_with_what_came() -> None:
    ending = Command(("sh", "-c", "kill -9 $PPID"))
    acts = [first("a", [HELLO]), phase("asking", "a", lambda _: {"a": (ending,)})]
    one, two = asked(nodes("a"), acts, Settings(), lambda _: Ways(), Told())
    assert (one.login.cause, list(one.replies)) == (None, [HELLO.key])
    assert (two.login.reached, two.login.cause, dict(two.replies)) == (True, Cause.CLOSED, {})


def _asked(questions: Questions, _left: float) -> Questions:
    return questions


def step(number: int, *arguments: str) -> Answer:
    """Ask for what has rounds: the agent knows no method of that name, and says so each time."""
    return Answer("step", timeout=60, arguments={"method": "none", "argv": list(arguments)}, round=number)


def test_acts_go_on_as_long_as_more_are_made_of_what_came_before_on_the_connections_that_are_kept() -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []

    def more() -> Iterator[Phase]:
        for number in (1, 2, 3):
            assert len(seen) == 2 * number, "all of the act before was yielded"
            questions: Questions = dict.fromkeys("ab", (step(number),))
            yield phase(f"round {number}", "ab", partial(_asked, questions), seconds=60)

    ways = Ways()
    for evidence in asked(nodes("a", "b"), [first("ab", [HELLO])], Settings(), lambda _: ways, Told(), more=more()):
        seen += [(evidence.node, tuple(evidence.replies))]
    assert sorted(seen) == sorted(
        (name, (key,)) for name in "ab" for key in (HELLO.key, *(step(number).key for number in (1, 2, 3)))
    )
    assert ways.connected == 2


def test_what_a_turn_was_asked_is_the_heads_own_word() -> None:
    acts = iter([phase("round", "a", lambda _: {"a": (step(1, "x"), HELLO)}, seconds=60)])
    *_, evidence = asked(nodes("a"), [first("a", [])], Settings(), lambda _: Ways(), Told(), more=acts)
    assert evidence.replies[step(1).key].asked == {"method": "none", "argv": ["x"]}
    assert evidence.replies[HELLO.key].asked is None


def test_what_the_head_found_out_itself_is_told_as_if_the_node_had() -> None:
    said = Reply(Status.OK, value={"rows": []}, asked={"round": 1})
    acts = iter([phase("round", "a", lambda _: {"a": (Answered(step(1), said),)}, seconds=60)])
    *_, evidence = asked(nodes("a"), [first("a", [])], Settings(), lambda _: Ways(), Told(), more=acts)
    assert evidence.replies == {step(1).key: said}


@pytest.mark.slow
def test_who_takes_part_in_an_act_is_told_before_it_is_asked_which_may_take_long() -> None:
    observer, seen = Told(), list[dict[str, str]]()

    def ask(_left: float) -> Questions:
        seen.append(dict(observer.last))
        return {"a": (ALSO,)}

    acts = iter([phase("measuring all", "ab", ask, seconds=60)])
    ways = Ways(failing={"down": Cause.REFUSED})
    list(
        asked(
            nodes("a", "b", "down"),
            [first(["a", "b", "down"], [HELLO])],
            Settings(),
            lambda _: ways,
            observer,
            more=acts,
        )
    )
    assert seen == [{"a": "measuring all", "b": "measuring all", "down": "done"}]
    assert observer.last == dict.fromkeys(["a", "b", "down"], "done")


@pytest.mark.slow
def test_nodes_that_wait_for_one_another_are_asked_at_once_whatever_the_width(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    meet = {
        name: Command(("sh", "-c", f"touch {tmp_path}/{name}; until [ $(ls {tmp_path} | wc -l) = 3 ]; do :; done"), 60)
        for name in names
    }
    acts = iter([phase("round", names, lambda _: {name: (meet[name],) for name in names}, seconds=60)])
    run = asked(nodes(*names), [first(names, [])], Settings(width=1), lambda _: Ways(), Told(), more=acts)
    ended = {e.node: e.replies[meet[e.node].key].exit_status for e in run if e.replies}
    assert ended == dict.fromkeys(names, 0)


@pytest.mark.slow
def test_nodes_that_need_not_wait_for_one_another_get_no_worker_each_beyond_the_deadline() -> None:
    names = [f"n{number}" for number in range(6)]
    before, workers = set(threading.enumerate()), set[threading.Thread]()

    def more() -> Iterator[Phase]:
        yield replace(phase("looking again", names, lambda _: dict.fromkeys(names, (ALSO,)), seconds=60), meeting=False)
        workers.update(thread for thread in threading.enumerate() if "_work" in thread.name)

    run = asked(nodes(*names), [first(names, [])], Settings(width=2), lambda _: Ways(), Told(), more=more())
    assert len([evidence for evidence in run if ALSO.key in evidence.replies]) == len(names)
    assert len(workers - before) == 2


def test_who_is_late_in_one_round_has_no_part_in_the_next_and_holds_up_no_other(tmp_path: Path) -> None:
    over = tmp_path / "over"
    slow = Command(("sh", "-c", f"until [ -e {over} ]; do sleep 0.02; done"), timeout=120)
    seen: list[str] = []

    def more() -> Iterator[Phase]:
        yield phase("round 1", "ab", lambda _: {"b": (slow,)}, seconds=0.0)
        yield phase("round 2", "ab", lambda _: {"a": (ALSO,), "b": (ALSO,)}, seconds=60)

    run = asked(nodes("a", "b"), [first("ab", [])], Settings(), lambda _: Ways(), Told(), more=more())
    for evidence in run:
        seen += [f"{evidence.node} {key}" for key in evidence.replies]
        if f"a {ALSO.key}" in seen:
            over.touch()
    assert f"b {ALSO.key}" not in seen
    assert f"a {ALSO.key}" in seen


def test_an_act_has_its_seconds_and_no_more_than_are_left_of_all() -> None:
    given: list[float] = []

    def more() -> Iterator[Phase]:
        for seconds in (5.0, 1000.0):
            yield phase("round", "a", lambda left: given.append(left) or {}, seconds=seconds)  # type: ignore[func-returns-value]

    settings = Settings(deadline=100.0, probe_time=20.0)
    list(asked(nodes("a"), [first("a", [])], settings, lambda _: Ways(), Told(), more=more()))
    assert given[0] <= 5.0
    assert 5.0 < given[1] <= 120.0


def test_an_interrupt_in_a_round_yields_what_is_known_and_then_raises(tmp_path: Path) -> None:
    forever = Command(("sh", "-c", f"touch {tmp_path}/begun; exec sleep 600"), timeout=600)
    acts = iter([phase("round", "a", lambda _: {"a": (forever,)}, seconds=600)])

    def press() -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    found: list[tuple[str, Cause | None]] = []
    run = asked(nodes("a"), [first("a", [HELLO])], Settings(), lambda _: Ways(), Told(), more=acts)
    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        found.extend((evidence.node, evidence.login.cause) for evidence in run)
    assert found == [("a", None), ("a", Cause.DEADLINE)]
