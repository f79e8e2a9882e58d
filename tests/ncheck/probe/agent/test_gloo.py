"""Two agents let gloo sum over loopback, by a real torch where one is installed beside the tests."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from ncheck.model.evidence import Answer, JsonValue, Status
from ncheck.probe.agent import gloo_rank
from ncheck.probe.agent.gloo_rank import ladder

from tests.ncheck.agent.agents import Agent, at_once
from tests.skips import cannot

pytestmark = pytest.mark.slow

NODES = ("node01", "node02")
KIB = 1024
Said = dict[str, Any]


@contextmanager
def two_agents() -> Iterator[tuple[Agent, Agent]]:
    """Run two agents; skip where no torch is."""
    if not find_spec("torch"):
        cannot("torch is not installed beside the tests: make test TORCH=1")
    both = Agent(python=sys.executable), Agent(python=sys.executable)
    yield both
    for agent in both:
        agent.bye()


@pytest.fixture
def agents() -> Iterator[tuple[Agent, Agent]]:
    with two_agents() as both:
        yield both


@dataclass(frozen=True)
class Met:
    """Two agents whose children have torch, and a store of the first."""

    agents: tuple[Agent, Agent]
    meeting: Said
    rounds: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def steps(self, **changed: JsonValue) -> list[Said]:
        return steps(self.agents, self.meeting, round=next(self.rounds), **changed)


@pytest.fixture(scope="module")
def met() -> Iterator[Met]:
    with two_agents() as both:
        yield Met(both, meet(both[0]))


def meet(agent: Agent) -> Said:
    asked: JsonValue = {"method": "gloo", "count": 3, "variables": {}, "address": "127.0.0.1"}
    reply = agent.ask(Answer("meeting", 120.0, asked))
    assert isinstance(reply.value, dict), reply
    return reply.value


def asked(rank: int, meeting: Said, **changed: JsonValue) -> Answer:
    arguments: dict[str, JsonValue] = {
        "round": 1, "stage": "all", "method": "gloo", "group": list(NODES), "ranks": [1, 1],
        "sizes": [8, 256 * KIB], "repeats": 5, "launcher": "agents", "net": "", "op": "all-reduce", "expect": None,
        "node": NODES[rank], "planned": ["lo"], "timeout": 120.0, "variables": {"GLOO_SOCKET_IFNAME": "lo"},
        "first": rank, "meeting": {"address": meeting["address"], "port": meeting["port"]}, "seconds": 60.0,
    }  # fmt: skip
    return Answer("step", 120.0, {**arguments, **changed}, round=1)


def test_no_step_of_a_ladder_is_so_large_that_nobody_can_tell_how_long_it_takes() -> None:
    assert [*ladder([8, KIB, 2**30])] == [(8, True), (KIB, True), (2**22, False), (2**28, False), (2**30, True)]
    assert [*ladder([2**20, 2**24])] == [(2**20, True), (2**24, True)]


def steps(agents: tuple[Agent, Agent], meeting: Said, **changed: JsonValue) -> list[Said]:
    replies = at_once(agents, [asked(rank, meeting, **changed) for rank in (0, 1)])
    assert all(reply.succeeded for reply in replies), replies
    return [reply.value for reply in replies]  # type: ignore[misc]


def test_two_ranks_sum_and_verify_every_size_and_meet_again_at_the_same_store(met: Met) -> None:
    for _ in range(2):
        for said in met.steps():
            assert [(row["size"], row["in_place"], row["wrong"]) for row in said["rows"]] == [
                (8, True, 0), (256 * KIB, True, 0),
            ]  # fmt: skip
            assert all(0 < row["fastest"] <= row["seconds"] <= row["slowest"] for row in said["rows"])
            assert [row["timing"] for row in said["rows"]] == [{"warm_ups": 1, "repeats": 5, "iterations": 1}] * 2
            assert (said["failure"], said["log"], said["left"], said["used"]) == (None, [], [], [])
            assert said["version"].startswith("2.")
            assert said["library"].endswith("/torch/__init__.py")
            assert said["carried"]["lo"]["sent"] > 256 * KIB
            assert said["start"] > 0


def test_other_operations_move_and_verify_every_element(met: Met) -> None:
    for op, in_place in (("all-gather", False), ("all-to-all", False), ("broadcast", True), ("send-recv", False)):
        for said in met.steps(op=op, repeats=2):
            assert [(row["size"], row["in_place"], row["wrong"]) for row in said["rows"]] == [
                (8, in_place, 0), (256 * KIB, in_place, 0),
            ]  # fmt: skip
            assert said["failure"] is None


def test_sizes_that_there_is_no_time_or_memory_for_are_left_out_by_both(met: Met) -> None:
    for said in met.steps(sizes=[8, KIB], seconds=0.0):
        told = [(row["size"], row["timing"]["repeats"]) for row in said["rows"]]
        assert (told, said["failure"]) == ([(8, 3)], None), "three of five repeats"
        assert said["log"] == ["left out from 1024 bytes on: there is no time for it"]
    for said in met.steps(sizes=[8, 2**50], seconds=1e6):
        assert ([row["size"] for row in said["rows"]], said["failure"]) == ([8], None)
        assert said["log"] == [f"left out from {2**50} bytes on: there is no memory for it"]


def test_a_rank_that_waits_in_vain_is_ended_with_its_time(met: Met) -> None:
    before = processes()
    said: Any = met.agents[0].ask(asked(0, met.meeting, round=next(met.rounds), timeout=10.0)).value
    assert said["rows"] == []
    assert (said["failure"]["rank"], said["failure"]["step"], said["failure"]["late"]) == (0, "init", True)
    assert processes() == before
    assert [len(said["rows"]) for said in met.steps()] == [2, 2]


def test_only_the_store_listens_on_the_address_of_the_jobs_network_until_the_agent_ends(
    agents: tuple[Agent, Agent],
) -> None:
    before = {one.laddr for one in listening()}
    meeting = meet(agents[0])
    store = {("127.0.0.1", meeting["port"])}
    assert {one.laddr for one in listening()} - before == store
    assert [said["failure"] for said in steps(agents, meeting)] == [None, None]
    assert {one.laddr for one in listening()} - before == store, "a turn leaves nothing that listens"
    agents[0].bye()
    await_that(lambda: not {one.laddr for one in listening()} & store)


def test_an_interpreter_without_torch_says_so(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    agent = Agent(python=str(bare))
    said: Any = agent.ask(asked(0, {"address": "127.0.0.1", "port": 9})).value
    assert said["failure"] == {
        "step": "importing torch", "words": "ModuleNotFoundError: No module named 'torch'", "rank": 0, "code": None,
        "late": False,
    }  # fmt: skip
    assert said["log"][-1] == "ModuleNotFoundError: No module named 'torch'"
    meeting: JsonValue = {"method": "gloo", "count": 1, "variables": {}, "address": "127.0.0.1"}
    reply = agent.ask(Answer("meeting", 60.0, meeting))
    assert (reply.status, reply.reason) == (Status.MISSING, "ModuleNotFoundError: No module named 'torch'")
    agent.bye()


def test_a_torch_that_is_still_imported_when_the_time_is_over_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import sys; sys.stdin.read()")
    slow = tmp_path / "python3"
    slow.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n')
    slow.chmod(0o755)
    agent = Agent(python=str(slow))
    meeting: JsonValue = {"method": "gloo", "count": 1, "variables": {}, "address": "127.0.0.1"}
    said: Any = agent.ask(Answer("meeting", 1.5, meeting)).value
    assert 0 < said.pop("importing") <= 3.0
    assert said == {}
    agent.bye()


def listening() -> list[Any]:
    """Return the sockets on which what this test started listens; neighbours have their own."""
    started = {child.pid for child in psutil.Process().children(recursive=True)}
    sockets = psutil.net_connections("tcp")
    return [one for one in sockets if one.status == psutil.CONN_LISTEN and one.pid in started]


def processes() -> int:
    """Count what runs the program here: the child that has torch, its store, and ranks."""
    lines = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            lines.append(child.cmdline())
    return sum(any("the store at which such ranks meet" in word for word in line) for line in lines)


def await_that(happens: Any) -> None:
    """Wait for it, a minute at most."""
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end


def test_a_store_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("__version__ = '2.6'")
    (tmp_path / "torch" / "distributed.py").write_text("class TCPStore:\n    def __init__(*_, **__): ...\n    port = 1")
    text = inspect.getsource(gloo_rank)
    line = [sys.executable, "-c", text, json.dumps({"store": "127.0.0.1"})]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as parent:
        assert parent.stdout
        assert any('"port"' in said for said in iter(parent.stdout.readline, ""))
        (store,) = psutil.Process(parent.pid).children()
        parent.kill()
    store.wait(10)
