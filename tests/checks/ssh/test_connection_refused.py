"""NC111: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.connection_refused import connection_refused

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "nothing listens on port 22: start ssh on the node's console"
    only_its_cause_is_red(judge, connection_refused, "NC111", Cause.REFUSED, message)


def test_where_every_node_refuses_another_port_is_suggested_once() -> None:
    refused = Login(reached=False, cause=Cause.REFUSED, port=22, detail="no", fix="sudo systemctl restart ssh")
    facts: Facts = {LoginFacts: LoginFacts(refused)}
    nodes = dict.fromkeys(("a", "b"), facts)
    assert judge([connection_refused], nodes).findings == [
        Finding(
            "NC111", "connection-refused", Severity.ERROR, ("a", "b"),
            "every node refuses port 22", ("a: no", "b: no"), "name the port of ssh with -p, or start ssh on the nodes",
            where="here", kind="do", summary="SSH refused on port 22",
        )
    ]  # fmt: skip


def judged(login: Login) -> Finding:
    """Return the finding about a node, of two; the other one is reached."""
    reached = Login(reached=True, port=login.port)
    nodes: dict[str, Facts] = {"a": {LoginFacts: LoginFacts(login)}, "b": {LoginFacts: LoginFacts(reached)}}
    (finding,) = judge([connection_refused], nodes).findings
    assert (finding.nodes, finding.where) == (("a",), "")
    return finding


REFUSED = Login(reached=False, cause=Cause.REFUSED, port=22)
IN_CONTAINER = replace(REFUSED, port=10001, fix="sudo systemctl restart ssh")
START = "if the node is a container, start it again on its host with docker start NAME"


def test_where_another_node_is_reached_the_server_is_to_be_started() -> None:
    finding = judged(REFUSED)
    assert (finding.kind, finding.message) == ("fix", "nothing listens on port 22: start ssh on the node's console")
    assert finding.fix == "sudo systemctl restart ssh || sudo systemctl restart sshd"


def test_the_server_of_a_container_is_started_with_it_and_never_on_its_host() -> None:
    finding, host = judged(IN_CONTAINER), judged(replace(IN_CONTAINER, other_port=22))
    assert (finding.kind, finding.fix, host.kind, host.fix) == ("look", "docker ps -a", "look", "docker ps -a")
    assert finding.message == f"nothing listens on port 10001: {START}; if not, start ssh on the node's console"
    assert host.message == (
        "nothing listens on port 10001, but an SSH server answers on port 22: that is the host's own if the node is a "
        f"container; {START}. If it is none, list the node with port=22"
    )


def test_a_server_on_another_port_is_named() -> None:
    finding = judged(replace(REFUSED, other_port=10001))
    assert (finding.kind, finding.fix) == ("look", "sudo ss -tlnp")
    assert finding.message == (
        "nothing listens on port 22, but an SSH server answers on port 10001: list the node with port=10001, "
        "or let the server listen on port 22 too"
    )
    alone: Facts = {LoginFacts: LoginFacts(replace(IN_CONTAINER, other_port=22))}
    (every,) = judge([connection_refused], {"a": alone, "c": alone}).findings
    assert (every.message, every.fix) == (
        "every node refuses port 10001: an SSH server answers on port 22", "ncheck -p 22 nodes.txt"
    )  # fmt: skip
