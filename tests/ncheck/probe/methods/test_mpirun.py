"""mpirun lines, and what ranks print under mpirun, put together by node."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.learning import facts_of
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.fleet.recording import load
from ncheck.model.cluster import Cluster
from ncheck.model.node import Node
from ncheck.plan.plan import propose
from ncheck.probe.facts import PROBE_NEEDS
from ncheck.probe.methods.context import ProbeContext, context_of
from ncheck.probe.methods.driver import NodeTask
from ncheck.probe.methods.mpirun import (
    UnderMpirun,
    answers_by_node,
    first_words,
    launch_of,
    line_for,
    started_by,
)
from ncheck.probe.node_result import Method, Stage, Step
from ncheck.settings import Settings
from ncheck.steps.phases import with_needs
from ncheck.this_machine.process import Ended

FIXTURES = Path(__file__).parents[4] / "fixtures"
SETTINGS = Settings(launcher="mpirun")
SIZES = (1 << 20,)


@pytest.fixture
def context() -> ProbeContext:
    """Return recorded nodes, under the plan that is made for a head of which nothing is known."""
    evidence = load(FIXTURES / "healthy-4x8-h100")
    known = {one.node: facts_of(one, with_needs(PROBE_NEEDS)) for one in evidence}
    nodes = tuple(Node(one.node) for one in evidence)
    plan = propose(Cluster(nodes, known), SETTINGS, user_is_root=False)
    return context_of(Cluster(nodes, known), SETTINGS, plan, ())


def step(context: ProbeContext, *nodes: str, ranks: int = 8) -> Step:
    group = nodes or context.nodes
    return Step(7, Stage.ALL, Method.NCCL, group, (ranks,) * len(group), SIZES, "mpirun", repeats=9)


def test_with_the_plans_program_and_all_nodes_it_is_the_plans_line_word_for_word(context: ProbeContext) -> None:
    line = line_for(context, launch_of(context, None), step(context), ("python", "train.py"), {})
    assert context.plan.command
    assert line == context.plan.command.argv


def test_a_step_of_two_nodes_has_their_ranks_and_all_else_alike(context: ProbeContext) -> None:
    line = line_for(
        context, launch_of(context, None), step(context, "gpu03", "gpu01", ranks=1), ("python", "train.py"), {}
    )
    hosts = ",".join(f"{node}:8" for node in context.nodes)
    changed = {hosts: "gpu03:1,gpu01:1", "32": "2"}
    assert context.plan.command
    assert line == tuple(changed.get(word, word) for word in context.plan.command.argv)


def spec_in(line: tuple[str, ...]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(line[-1])
    return told


def test_the_ranks_are_told_all_but_who_they_are(context: ProbeContext) -> None:
    tasks = [NodeTask(step(context), node, 30.0, id="ab" * 128) for node in context.nodes]
    line = UnderMpirun().line(context, tasks, 30.0)
    told = spec_in(line)
    library = context.cluster.facts(LoadedNcclFacts)["gpu01"].path
    assert {name: told[name] for name in ("id", "world", "op", "sizes", "repeats", "library", "counters")} == {
        "id": "ab" * 128, "world": 32, "op": "all-reduce", "sizes": [1 << 20], "repeats": 9, "library": library,
        "counters": True,
    }  # fmt: skip
    assert not {"rank", "local"} & told.keys()
    assert line[0] == "mpirun"
    python = context.cluster.facts(InterpreterFacts)["gpu01"].path
    assert shlex.join((python, "-B", "-S", "-c")) in shlex.join(line)
    assert "env -u NCCL_COMM_ID" in shlex.join(line)


def test_nodes_whose_libraries_lie_elsewhere_are_each_told_their_own(context: ProbeContext) -> None:
    known: Any = context.cluster.known
    known["gpu02"][LoadedNcclFacts] = replace(known["gpu02"][LoadedNcclFacts], path="/opt/other/libnccl.so.2")
    tasks = [NodeTask(step(context), node, 30.0, id="ab" * 128) for node in context.nodes]
    line = UnderMpirun().line(context, tasks, 30.0)
    assert 'case "$(uname -n)" in' in " ".join(line)
    assert " ".join(line).count("/opt/other/libnccl.so.2") == 1
    assert line[-2] == "-c"  # the spec stands in each node's variable, and not behind the program


def test_a_program_at_several_places_is_started_by_each_nodes_own_variable() -> None:
    assert started_by({"a": "/x", "b": "/x"}, ("-g", "1")) == (("/x", "-g", "1"), {})
    words, own = started_by({"a": "/x", "b": "/y"}, ("-g", "1"))
    assert words == ("sh", "-c", 'exec "$NCHECK_PROGRAM" "$@"', "sh", "-g", "1")
    assert own == {"a": {"NCHECK_PROGRAM": "/x"}, "b": {"NCHECK_PROGRAM": "/y"}}


STEP = Step(3, Stage.ALL, Method.NCCL, ("a", "b"), (2, 1), (1 << 20,), "mpirun")
SSH = "ssh: connect to host b port 22: No route to host\n"
TIMING = {"warm_ups": 2, "repeats": 5, "iterations": 1}
BANNER = "-" * 74 + "\nORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n"


def line(rank: int, kind: str, **fields: Any) -> str:
    return f"\nncheck:{json.dumps({**fields, 'rank': rank, 'is': kind})}\n"


def row(rank: int, seconds: float, wrong: int | None = 0) -> str:
    times = {"seconds": seconds, "fastest": seconds / 2, "slowest": seconds * 2}
    return line(rank, "row", size=1 << 20, in_place=False, wrong=wrong, timing=TIMING, **times)


def through(rank: int, seconds: float) -> str:
    return line(rank, "first", seconds=1.0 + rank) + row(rank, seconds) + line(rank, "done")


def ended(stdout: str, stderr: str = "", *, code: int | None = 0, late: bool = False) -> Ended:
    return Ended(stdout, stderr, code, late, 5.0)


def test_each_node_has_the_mean_of_its_own_ranks_whoever_spoke_in_between() -> None:
    said = line(0, "library", version="2.21.5", path="/lib/libnccl.so.2") + through(2, 4.0) + "a banner\n"
    said += through(1, 3.0) + line(0, "carried", moved={"eth0": {"sent": 7, "received": 9}}) + through(0, 1.0)
    log = "a:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
    told = answers_by_node(STEP, ended(said, log))
    mine = {"size": 1 << 20, "in_place": False, "wrong": 0, "timing": TIMING}
    assert told["a"] == {
        "rows": [{**mine, "seconds": 2.0, "fastest": 1.0, "slowest": 4.0}],
        "carried": {"eth0": {"sent": 7, "received": 9}}, "version": "2.21.5", "library": "/lib/libnccl.so.2",
        "used": [log.strip()], "log": [], "failure": None, "start": 2.0, "left": [], "held": {},
    }  # fmt: skip
    assert (told["b"]["rows"], told["b"]["start"], told["b"]["failure"]) == (
        [{**mine, "seconds": 4.0, "fastest": 2.0, "slowest": 8.0}],
        3.0,
        None,
    )


def test_a_failure_is_the_ranks_own_and_the_others_end_with_the_launchers_words() -> None:
    said = through(0, 1.0) + through(1, 1.0)
    said += line(2, "failure", step="init", words="unhandled system error", code=2, late=False)
    told = answers_by_node(STEP, ended(said, code=1))
    assert (told["a"]["failure"], len(told["a"]["rows"])) == (None, 1)  # type: ignore[arg-type]
    assert told["b"]["failure"] == {
        "step": "init", "words": "unhandled system error", "code": 2, "late": False, "rank": 2,
    }  # fmt: skip


def test_a_line_that_starts_no_rank_is_every_nodes_failure_in_its_own_words() -> None:
    told = answers_by_node(STEP, ended("", SSH + BANNER, code=255))
    words = "ssh: connect to host b port 22: No route to host; ORTE was unable to reliably start one or more daemons."
    for node in ("a", "b"):
        failure: Any = told[node]["failure"]
        assert (failure["step"], failure["code"], failure["late"]) == ("mpirun", 255, False)
        assert failure["words"].startswith(words)
        assert SSH.strip() in told[node]["log"]  # type: ignore[operator]


def test_ranks_that_hang_are_late_where_they_stand() -> None:
    told = answers_by_node(STEP, ended(line(0, "step", step="init"), code=None, late=True))
    failure: Any = told["a"]["failure"]
    assert (failure["step"], failure["rank"], failure["late"], failure["words"]) == (
        "init", 0, True, "it ran out of time",
    )  # fmt: skip


def test_a_rank_that_told_all_its_rows_and_no_end_was_not_through() -> None:
    told = answers_by_node(STEP, ended(through(0, 1.0) + row(1, 1.0) + through(2, 1.0), code=137))
    failure: Any = told["a"]["failure"]
    assert (told["a"]["rows"], failure["words"]) == ([], "it ended with exit status 137")
    assert told["b"]["failure"] is None


def test_a_hostile_rank_is_bounded_and_only_what_was_started_counts() -> None:
    said = row(99, 1.0) + line(-1, "done") + "\nncheck:[1]\nncheck:{\nncheck:" + "[" * 3000 + "\n"
    said += line(0, "row", size="1", in_place=False, seconds=True, fastest=1, slowest=1)
    said += line(0, "exec", words="x") + line(0, "carried", moved=[1]) + line(0, "done") + line(1, "done")
    told = answers_by_node(STEP, ended(said))
    assert (told["a"]["rows"], told["a"]["carried"], told["a"]["failure"]) == ([], {}, None)


def test_a_launcher_without_a_word_has_its_exit_status() -> None:
    assert first_words(ended("", code=213)) == "it ended with exit status 213"
    assert first_words(ended("", code=None, late=True)) == "it ran out of time"


def test_times_and_counts_that_cannot_be_are_no_row() -> None:
    for times in ({"seconds": 10**400}, {"slowest": -1.0}, {"fastest": float("nan")}, {"seconds": True}):
        said = "".join(through(rank, 1.0).replace('"row"', '"none"') for rank in range(3))
        fields = {"size": 1 << 20, "in_place": False, "seconds": 1.0, "fastest": 1.0, "slowest": 1.0, **times}
        said += "".join(line(rank, "row", wrong=0, **fields) for rank in range(3))
        assert [task["rows"] for task in answers_by_node(STEP, ended(said)).values()] == [[], []]


def test_what_ranks_removed_is_told_and_what_nobody_says_is_gone_is_for_the_agent_to_sweep() -> None:
    a, b, c = (f"/dev/shm/nccl-{letter}" for letter in "abc")  # noqa: S108  they are only named
    said = line(0, "held", segments={a: 1, b: 2}) + line(1, "held", segments={b: 2, c: 3}) + through(2, 1.0)
    said += line(2, "held", segments={f"{a}d": 4, f"{b}d": "5"})
    said += line(0, "removed", gone=[a, b]) + line(0, "removed", words=[f"{a} (5 bytes) was removed"])
    told = answers_by_node(STEP, ended(said + line(0, "removed", gone=7, words=[8]), code=1))
    assert (told["a"]["left"], told["b"]["left"]) == ([f"{a} (5 bytes) was removed"], [])
    assert (told["a"]["held"], told["b"]["held"]) == ({c: 3}, {f"{a}d": 4})
