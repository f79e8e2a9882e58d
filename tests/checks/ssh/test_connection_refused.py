"""NC111: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import LoginFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck_checks.ssh.connection_refused import connection_refused

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "nothing listens on port 22: start ssh on the node's console"
    only_its_cause_is_red(judge, connection_refused, "NC111", Cause.REFUSED, message)


def test_where_every_node_refuses_another_port_is_suggested_once() -> None:
    refused = Login(reached=False, cause=Cause.REFUSED, port=22, detail="no", fix="sudo systemctl restart ssh")
    facts: Facts = {LoginFacts: LoginFacts(refused), InterpreterFacts: Absent("not reached")}
    nodes = dict.fromkeys(("a", "b"), facts)
    assert judge([connection_refused], nodes).findings == [
        Finding(
            "NC111", "connection-refused", Severity.ERROR, ("a", "b"),
            "every node refuses port 22", ("a: no", "b: no"), "name the port of ssh with -p, or start ssh on the nodes",
            where="here", kind="do", summary="SSH refused on port 22",
        )
    ]  # fmt: skip


def judged(login: Login, container: str | None = "") -> Finding:
    """Return the finding about a node, of two; the other one is reached, and is a container of this kind."""
    nodes: dict[str, Facts] = {
        "a": {LoginFacts: LoginFacts(login), InterpreterFacts: Absent("not reached")},
        "b": {
            LoginFacts: LoginFacts(Login(reached=True, port=login.port)),
            InterpreterFacts: Absent("not asked")
            if container is None
            else InterpreterFacts("/usr/bin/python3", "3.10.12", "python3 on PATH", {}, container),
        },
    }
    (finding,) = judge([connection_refused], nodes).findings
    assert (finding.nodes, finding.where) == (("a",), "")
    return finding


REFUSED = Login(reached=False, cause=Cause.REFUSED, port=10001, fix="sudo systemctl restart ssh")


def test_where_another_node_is_reached_the_server_is_to_be_started() -> None:
    for login in (REFUSED, replace(REFUSED, port=22, fix="")):
        finding = judged(login)
        assert (finding.kind, finding.message) == (
            "fix", f"nothing listens on port {login.port}: start ssh on the node's console"
        )  # fmt: skip
        assert finding.fix.startswith("sudo systemctl restart ssh")


@pytest.mark.parametrize(
    ("port", "container", "engine"), [(22, "docker", "docker"), (10001, "podman", "podman"), (10001, None, "docker")]
)
def test_the_server_of_a_container_is_started_with_it_and_never_on_its_host(
    port: int, container: str | None, engine: str
) -> None:
    start = f"if the node is a container, start it again on its host with {engine} start NAME"
    finding = judged(replace(REFUSED, port=port), container)
    assert (finding.kind, finding.fix) == ("look", f"{engine} ps -a")
    assert finding.message == f"nothing listens on port {port}: {start}; if it is none, start ssh on the node's console"
    host = judged(replace(REFUSED, port=port, other_port=2222), container)
    assert (host.kind, host.fix) == ("look", f"{engine} ps -a")
    assert host.message == (
        f"nothing listens on port {port}, but an SSH server answers on port 2222: that is the host's own if the node "
        f"is a container; {start}. If it is none, list the node with port=2222"
    )


def test_a_node_whose_job_enters_a_container_is_none_itself() -> None:
    assert judged(REFUSED, "docker exec -i train").fix == "sudo systemctl restart ssh"


def test_a_server_on_another_port_is_named() -> None:
    refused = replace(REFUSED, other_port=22)
    finding = judged(refused)
    assert (finding.kind, finding.fix) == ("look", "sudo ss -tlnp")
    assert finding.message == (
        "nothing listens on port 10001, but an SSH server answers on port 22: list the node with port=22, "
        "or let the server listen on port 10001 too"
    )
    alone: Facts = {LoginFacts: LoginFacts(refused), InterpreterFacts: Absent("not reached")}
    (every,) = judge([connection_refused], {"a": alone, "c": alone}).findings
    assert (every.message, every.fix) == (
        "every node refuses port 10001: an SSH server answers on port 22", "ncheck -p 22 nodes.txt"
    )  # fmt: skip
