"""NC102: two names that lead to one machine."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.one_machine_twice import one_machine_twice


def machine(boot_id: str, namespace: str = "net:[4026531840]", host_name: str = "h") -> Facts:
    return {IdentityFacts: IdentityFacts(host_name, boot_id, namespace, 0)}


def test_two_names_of_one_machine_are_named_both() -> None:
    judgement = judge([one_machine_twice], {"a": machine("b1"), "n1": machine("b1"), "c": machine("b2")})
    assert judgement.findings == [
        Finding(
            "NC102", "one-machine-twice", Severity.ERROR, ("a", "n1"), "a,n1 are the same machine under 2 names",
            ("boot id b1 and network namespace net:[4026531840] on each",), "getent hosts a n1",
            where="here", kind="look", summary="the same machine",
        ),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.FAILED, Outcome.FAILED, Outcome.PASSED]


def test_containers_with_networks_of_their_own_on_one_host_are_two_nodes() -> None:
    nodes = {"a": machine("b1", "net:[1]"), "b": machine("b1", "net:[2]")}
    assert judge([one_machine_twice], nodes).findings == []


def test_machines_of_one_image_have_the_same_first_namespace_and_are_two_nodes() -> None:
    assert judge([one_machine_twice], {"a": machine("b1"), "b": machine("b2")}).findings == []


def test_a_node_that_does_not_tell_who_it_is_is_unknown() -> None:
    judgement = judge([one_machine_twice], {"a": machine(""), "b": machine("b1", ""), "c": machine("b1")})
    assert judgement.findings == []
    assert [(verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [
        (Outcome.UNKNOWN, "its boot id could not be read, so it cannot be distinguished from the other nodes"),
        (
            Outcome.UNKNOWN,
            "its network namespace could not be read, so it cannot be distinguished from the other nodes",
        ),
        (Outcome.PASSED, ""),
    ]


def test_a_node_that_was_not_reached_is_unknown_and_harms_no_other() -> None:
    unreached: Facts = {IdentityFacts: Unread("not reached (refused)")}
    judgement = judge([one_machine_twice], {"a": unreached, "b": machine("b1"), "c": machine("c1")})
    assert [one.outcome for one in judgement.verdicts] == [Outcome.UNKNOWN, Outcome.PASSED, Outcome.PASSED]
