"""Each node's own ssh to the others: asked of the nodes at which edges begin, about those that were reached."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.facts.ssh_peers import PEERS, PeerSsh, SshFromHereFacts, ask_peers, exempt_peers, launch_origin
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Answer, Cause, Login
from ncheck.model.node import Node
from ncheck.model.phase import NotAsked
from ncheck.settings import Settings

SETTINGS = Settings(port=10001, user="me")


def cluster(*names: str, down: tuple[str, ...] = (), settings: Settings = SETTINGS) -> tuple[Cluster, Settings]:
    known: dict[str, Facts] = {
        name: {LoginFacts: LoginFacts(Login(reached=name not in down, cause=Cause.REFUSED if name in down else None))}
        for name in names
    }
    return Cluster(tuple(Node(name) for name in names), known), settings


def test_every_node_is_asked_about_all_others_that_were_reached() -> None:
    questions = ask_peers(*cluster("a", "b", "c", "down", down=("down",)), left=20.0)
    told = {}
    for name, (question,) in questions.items():
        assert isinstance(question, Answer)
        assert question.timeout == 19.0
        assert isinstance(question.arguments, dict)
        told[name] = question.arguments["peers"]
    one, two, three = ({"target": name, "host": name, "port": 10001, "user": "me"} for name in "abc")
    assert told == {"a": [two, three], "b": [three, one], "c": [one, two], "down": [one, two, three]}


def test_a_node_with_no_other_to_reach_is_spared_and_it_is_said_why() -> None:
    reason = "no ssh to other nodes to test from here: none of them is reachable"
    questions = ask_peers(*cluster("a", "down", down=("down",)), left=20.0)
    assert questions["a"] == (NotAsked(PEERS, reason),)


def test_who_has_no_edge_is_spared_from_the_beginning() -> None:
    many = cluster(*(f"n{number}" for number in range(17)))
    assert exempt_peers(*many) == {f"n{number}": "no launch opens ssh from here" for number in range(1, 17)}
    assert exempt_peers(*cluster("a")) == {"a": "one node alone has no peers"}
    assert exempt_peers(*cluster("a", "b", settings=Settings(mesh="none"))) == dict.fromkeys("ab", "--mesh none")


def placed(*tried: PeerSsh | None) -> Cluster:
    return Cluster.of({f"n{number}": {SshFromHereFacts: SshFromHereFacts(one)} for number, one in enumerate(tried)})


def test_a_launch_begins_on_the_node_that_is_this_machine_or_on_none_of_them() -> None:
    other = PeerSsh("n0", None)
    assert launch_origin(placed(other, None, other)) == 1
    assert launch_origin(placed(other, other)) is None


def test_a_launch_is_assumed_to_begin_on_the_first_node_where_nothing_is_known() -> None:
    assert launch_origin(Cluster.of({"n0": {}, "n1": {}})) == 0
