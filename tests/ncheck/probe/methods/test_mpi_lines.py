"""The line that the probe runs is the plan's own: what differs is the program, and which hosts a step has."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.parsing import facts_of
from ncheck.facts.probe import Method, Stage, Step
from ncheck.fleet.recording import load
from ncheck.model.cluster import Cluster
from ncheck.model.node import Node
from ncheck.phases import with_needs
from ncheck.plan.plan import propose
from ncheck.probe.methods.context import ProbeContext, context_of
from ncheck.probe.methods.driver import NodeTask
from ncheck.probe.methods.mpirun import UnderMpirun, launch_of, line_for, started_by, starter_in, words_of
from ncheck.probe.steps import PROBE_FACTS
from ncheck.settings import Settings

FIXTURES = Path(__file__).parents[4] / "fixtures"
SETTINGS = Settings(launcher="mpirun")
SIZES = (1 << 20,)


@pytest.fixture
def context() -> ProbeContext:
    """Return recorded nodes, under the plan that is made for a head of which nothing is known."""
    evidence = load(FIXTURES / "healthy-4x8-h100")
    known = {one.node: facts_of(one, with_needs(PROBE_FACTS)) for one in evidence}
    nodes = tuple(Node(one.node) for one in evidence)
    plan = propose(nodes, known, SETTINGS, user_is_root=False)
    return context_of(Cluster(nodes, known, SETTINGS), plan, ())


def step(context: ProbeContext, *nodes: str, ranks: int = 8) -> Step:
    group = nodes or context.nodes
    return Step(7, Stage.ALL, Method.NCCL, group, (ranks,) * len(group), SIZES, "mpirun")


def test_with_the_plans_program_and_all_nodes_it_is_the_plans_line_word_for_word(context: ProbeContext) -> None:
    line = line_for(context, launch_of(context, None), step(context), ("python", "train.py"), {})
    assert line == context.plan.lines["mpirun"]


def test_a_step_of_two_nodes_has_their_ranks_and_all_else_alike(context: ProbeContext) -> None:
    line = line_for(
        context, launch_of(context, None), step(context, "gpu03", "gpu01", ranks=1), ("python", "train.py"), {}
    )
    hosts = ",".join(f"{node}:8" for node in context.nodes)
    assert line == context.plan.lines["mpirun"].replace(hosts, "gpu03:1,gpu01:1").replace("-np 32", "-np 2")


def spec_in(line: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(words_of(line)[-1])
    return told


def test_the_ranks_are_told_all_but_who_they_are(context: ProbeContext) -> None:
    tasks = [NodeTask(step(context), node, 30.0, id="ab" * 128) for node in context.nodes]
    line = UnderMpirun().line(context, tasks, 30.0)
    told = spec_in(line)
    library = context.cluster.facts(LoadedNcclFacts)["gpu01"].path
    assert {name: told[name] for name in ("id", "world", "sizes", "library", "counters")} == {
        "id": "ab" * 128, "world": 32, "sizes": [1 << 20], "library": library, "counters": True,
    }  # fmt: skip
    assert not {"rank", "local"} & told.keys()
    assert starter_in(words_of(line)) == "mpirun"
    python = context.cluster.facts(InterpreterFacts)["gpu01"].path
    assert shlex.join((python, "-B", "-S", "-c")) in line
    assert "env -u NCCL_COMM_ID" in line


def test_nodes_whose_libraries_lie_elsewhere_are_each_told_their_own(context: ProbeContext) -> None:
    known: Any = context.cluster.known
    known["gpu02"][LoadedNcclFacts] = replace(known["gpu02"][LoadedNcclFacts], path="/opt/other/libnccl.so.2")
    tasks = [NodeTask(step(context), node, 30.0, id="ab" * 128) for node in context.nodes]
    line = UnderMpirun().line(context, tasks, 30.0)
    assert 'case "$(uname -n)" in' in line
    assert line.count("/opt/other/libnccl.so.2") == 1
    assert words_of(line)[-2] == "-c"  # the spec stands in each node's variable, and not behind the program


def test_a_program_at_several_places_is_started_by_each_nodes_own_variable() -> None:
    assert started_by({"a": "/x", "b": "/x"}, ("-g", "1")) == (("/x", "-g", "1"), {})
    words, own = started_by({"a": "/x", "b": "/y"}, ("-g", "1"))
    assert words == ("sh", "-c", 'exec "$NCHECK_PROGRAM" "$@"', "sh", "-g", "1")
    assert own == {"a": {"NCHECK_PROGRAM": "/x"}, "b": {"NCHECK_PROGRAM": "/y"}}
