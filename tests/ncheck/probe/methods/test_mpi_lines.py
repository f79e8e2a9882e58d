"""The line that the probe runs is the plan's own: what differs is the program, and which hosts a step has."""

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
from ncheck.facts.probe import PROBE_NEEDS, Means, Stage, Step
from ncheck.fleet.recording import load
from ncheck.model.cluster import Cluster
from ncheck.model.node import Node
from ncheck.phases import with_needs
from ncheck.plan.plan import propose
from ncheck.probe.methods.ground import ground_of
from ncheck.probe.methods.method import Ground, Part
from ncheck.probe.methods.mpi_lines import launch_of, line_for, started_by
from ncheck.probe.methods.under_mpirun import UnderMpirun
from ncheck.settings import Settings

FIXTURES = Path(__file__).parents[4] / "fixtures"
SETTINGS = Settings(launcher="mpirun")
SIZES = (1 << 20,)


@pytest.fixture
def ground() -> Ground:
    """Return recorded nodes, under the plan that is made for a head of which nothing is known."""
    evidence = load(FIXTURES / "healthy-4x8-h100")
    known = {one.node: facts_of(one, with_needs(PROBE_NEEDS)) for one in evidence}
    nodes = tuple(Node(one.node) for one in evidence)
    plan = propose(Cluster(nodes, known), SETTINGS, user_is_root=False)
    return ground_of(Cluster(nodes, known), SETTINGS, plan, ())


def step(ground: Ground, *nodes: str, ranks: int = 8) -> Step:
    group = nodes or ground.nodes
    return Step(7, Stage.ALL, Means.NCCL, group, (ranks,) * len(group), SIZES, "mpirun")


def test_with_the_plans_program_and_all_nodes_it_is_the_plans_line_word_for_word(ground: Ground) -> None:
    line = line_for(ground, launch_of(ground, None), step(ground), ("python", "train.py"), {})
    assert ground.plan.command
    assert line == ground.plan.command.argv


def test_a_step_of_two_nodes_has_their_ranks_and_all_else_alike(ground: Ground) -> None:
    line = line_for(
        ground, launch_of(ground, None), step(ground, "gpu03", "gpu01", ranks=1), ("python", "train.py"), {}
    )
    hosts = ",".join(f"{node}:8" for node in ground.nodes)
    changed = {hosts: "gpu03:1,gpu01:1", "32": "2"}
    assert ground.plan.command
    assert line == tuple(changed.get(word, word) for word in ground.plan.command.argv)


def spec_in(line: tuple[str, ...]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(line[-1])
    return told


def test_the_ranks_are_told_all_but_who_they_are(ground: Ground) -> None:
    parts = [Part(step(ground), node, 30.0, id="ab" * 128) for node in ground.nodes]
    line = UnderMpirun().line(ground, parts, 30.0)
    told = spec_in(line)
    library = ground.cluster.facts(LoadedNcclFacts)["gpu01"].path
    assert {name: told[name] for name in ("id", "world", "sizes", "library", "counters")} == {
        "id": "ab" * 128, "world": 32, "sizes": [1 << 20], "library": library, "counters": True,
    }  # fmt: skip
    assert not {"rank", "local"} & told.keys()
    assert line[0] == "mpirun"
    python = ground.cluster.facts(InterpreterFacts)["gpu01"].path
    assert shlex.join((python, "-B", "-S", "-c")) in shlex.join(line)
    assert "env -u NCCL_COMM_ID" in shlex.join(line)


def test_nodes_whose_libraries_lie_elsewhere_are_each_told_their_own(ground: Ground) -> None:
    known: Any = ground.cluster.known
    known["gpu02"][LoadedNcclFacts] = replace(known["gpu02"][LoadedNcclFacts], path="/opt/other/libnccl.so.2")
    parts = [Part(step(ground), node, 30.0, id="ab" * 128) for node in ground.nodes]
    line = UnderMpirun().line(ground, parts, 30.0)
    assert 'case "$(uname -n)" in' in " ".join(line)
    assert " ".join(line).count("/opt/other/libnccl.so.2") == 1
    assert line[-2] == "-c"  # the spec stands in each node's variable, and not behind the program


def test_a_program_at_several_places_is_started_by_each_nodes_own_variable() -> None:
    assert started_by({"a": "/x", "b": "/x"}, ("-g", "1")) == (("/x", "-g", "1"), {})
    words, own = started_by({"a": "/x", "b": "/y"}, ("-g", "1"))
    assert words == ("sh", "-c", 'exec "$NCHECK_PROGRAM" "$@"', "sh", "-g", "1")
    assert own == {"a": {"NCHECK_PROGRAM": "/x"}, "b": {"NCHECK_PROGRAM": "/y"}}
