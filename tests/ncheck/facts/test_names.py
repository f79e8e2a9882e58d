"""Whose names each node is asked to look up."""

from __future__ import annotations

from ncheck.facts.definition import exempt_without_peers
from ncheck.facts.names import NAMES, ask_names
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Answer
from ncheck.model.node import Node
from ncheck.model.phase import NotAsked
from ncheck.settings import Settings


def cluster(*names: str, mesh: str = "auto") -> tuple[Cluster, Settings]:
    return Cluster(tuple(Node(name) for name in names), {name: {} for name in names}), Settings(mesh=mesh)


def asked(cluster: tuple[Cluster, Settings]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, (question,) in ask_names(*cluster, 20.0).items():
        assert isinstance(question, Answer)
        assert (question.name, question.timeout) == ("names", 10.0)
        assert isinstance(question.arguments, dict)
        found[name] = question.arguments["names"]
    return found


def test_up_to_16_nodes_look_up_one_another_and_themselves() -> None:
    assert asked(cluster("a", "b", "c")) == {"a": ["a", "b", "c"], "b": ["b", "a", "c"], "c": ["c", "a", "b"]}


def test_beyond_that_all_look_up_the_first_node_and_the_first_looks_up_all() -> None:
    names = [f"n{number}" for number in range(40)]
    found = asked(cluster(*names))
    assert found["n0"] == names
    assert found["n7"] == ["n7", "n0"]


def test_addresses_are_not_looked_up() -> None:
    assert asked(cluster("10.1.0.1", "b"))["10.1.0.1"] == ["b"]
    question = ask_names(*cluster("10.1.0.1", "fe80::2%eth0"), 20.0)["10.1.0.1"]
    assert question == (NotAsked(NAMES, "the nodes are listed by address: no name to look up"),)


def test_nobody_is_asked_where_there_is_one_node_or_no_mesh() -> None:
    assert exempt_without_peers(*cluster("a")) == {"a": "one node alone has no peers"}
    assert exempt_without_peers(*cluster("a", "b", mesh="none")) == dict.fromkeys("ab", "--mesh none")
    assert exempt_without_peers(*cluster("a", "b")) == {}
