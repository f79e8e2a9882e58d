"""NC111: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Severity
from ncheck_checks.ssh.connection_refused import connection_refused

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "nothing listens on port 22: start ssh on the node's console"
    only_its_cause_is_red(judge, connection_refused, "NC111", Cause.REFUSED, message)


def test_where_every_node_refuses_another_port_is_suggested_once() -> None:
    refused = Login(reached=False, cause=Cause.REFUSED, port=22, detail="no", fix="sudo systemctl restart ssh")
    nodes: dict[str, Facts] = {name: {LoginFacts: LoginFacts(refused)} for name in ("a", "b")}
    assert judge([connection_refused], nodes).findings == [
        Finding(
            "NC111", "connection-refused", Severity.ERROR, ("a", "b"),
            "every node refuses port 22", ("a: no", "b: no"), "name the port of ssh with -p, or start ssh on the nodes",
            where="here", kind="do", summary="SSH refused on port 22",
        )
    ]  # fmt: skip


def test_where_another_node_is_reached_the_server_is_to_be_started() -> None:
    refused = Login(reached=False, cause=Cause.REFUSED, port=22)
    nodes: dict[str, Facts] = {
        "a": {LoginFacts: LoginFacts(refused)},
        "b": {LoginFacts: LoginFacts(Login(reached=True))},
    }
    (finding,) = judge([connection_refused], nodes).findings
    assert (finding.nodes, finding.where) == (("a",), "")
    assert finding.fix == "sudo systemctl restart ssh || sudo systemctl restart sshd"


def test_a_server_on_another_port_is_named_and_how_a_container_starts_one_on_the_right_port() -> None:
    refused = Login(reached=False, cause=Cause.REFUSED, port=10001, other_port=22, fix="sudo systemctl restart ssh")
    nodes: dict[str, Facts] = {
        "a": {LoginFacts: LoginFacts(refused)},
        "b": {LoginFacts: LoginFacts(Login(reached=True, port=10001))},
    }
    (finding,) = judge([connection_refused], nodes).findings
    assert (finding.nodes, finding.fix, finding.where) == (("a",), "sudo /usr/sbin/sshd -p 10001", "")
    assert finding.message == (
        "nothing listens on port 10001, but an SSH server answers on port 22: list the node with port=22, "
        "or start the server, or its container, on port 10001"
    )
    (every,) = judge([connection_refused], dict.fromkeys(("a", "c"), nodes["a"])).findings
    assert (every.message, every.fix) == (
        "every node refuses port 10001: an SSH server answers on port 22", "ncheck -p 22 nodes.txt"
    )  # fmt: skip
