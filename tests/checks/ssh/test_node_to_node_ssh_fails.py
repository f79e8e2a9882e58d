"""NC131: what a node's own ssh to the others says, and whose fault it is not."""

from __future__ import annotations

import pytest
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.ssh.node_to_node_ssh_fails import node_to_node_ssh_fails

UNKNOWN_KEY = "No ED25519 host key is known for n2 and you have requested strict checking."


def node(*peers: PeerSsh) -> Facts:
    return {PeerSshFacts: PeerSshFacts(peers), JobFacts: JobFacts()}


def test_a_node_that_cannot_get_into_another_is_named_with_the_cause_and_a_line_to_type() -> None:
    nodes = {
        "n1": node(PeerSsh("n2", Cause.HOST_KEY_UNKNOWN, UNKNOWN_KEY), PeerSsh("n3", None)),
        "n2": node(PeerSsh("n1", None), PeerSsh("n3", None)),
        "n3": node(PeerSsh("n1", None), PeerSsh("n2", Cause.HOST_KEY_UNKNOWN, UNKNOWN_KEY)),
    }
    judgement = judge([node_to_node_ssh_fails], nodes)
    assert judgement.findings == [
        Finding("NC131", "node-to-node-ssh-fails", Severity.ERROR, ("n1", "n3"),
                "ssh from n[1,3] to n2 fails: host-key-unknown",
                (f"n1 to n2: {UNKNOWN_KEY}", f"n3 to n2: {UNKNOWN_KEY}"),
                "ssh-keyscan n2 >> ~/.ssh/known_hosts", where="n1",
                summary="ssh to other nodes fails (host-key-unknown)"),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.FAILED, Outcome.PASSED, Outcome.FAILED]


def test_logins_that_all_work_are_no_finding() -> None:
    assert judge([node_to_node_ssh_fails], {"n1": node(PeerSsh("n2", None)), "n2": node()}).findings == []


def test_a_server_that_had_no_room_and_a_run_that_had_no_time_are_unknown_and_nobodys_fault() -> None:
    nodes = {"n1": node(PeerSsh("n2", Cause.OVERLOADED)), "n2": node(PeerSsh("n1", Cause.DEADLINE))}
    judgement = judge([node_to_node_ssh_fails], nodes)
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.UNKNOWN, Outcome.UNKNOWN]


def test_a_node_from_which_no_launch_opens_ssh_is_skipped() -> None:
    untried = {**node(), PeerSshFacts: Absent("no ssh to other nodes to test from here")}
    nodes = {"n1": node(PeerSsh("n2", None)), "n2": untried}
    outcomes = [verdict.outcome for verdict in judge([node_to_node_ssh_fails], nodes).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED]


def test_many_edges_are_shown_by_a_few() -> None:
    nodes = {f"n{number}": node(PeerSsh("n99", Cause.REFUSED, "refused")) for number in range(20)}
    (finding,) = judge([node_to_node_ssh_fails], nodes).findings
    assert finding.evidence[-1] == "and 12 more"
    assert len(finding.evidence) == 9


@pytest.mark.parametrize(("cause", "kind", "fix"), [
    (Cause.HOST_KEY_UNKNOWN, "fix", "ssh-keyscan -p 10001 n2 >> ~/.ssh/known_hosts"),
    (Cause.HOST_KEY_CHANGED, "fix", "ssh-keygen -R '[n2]:10001'"),
    (Cause.AUTH_REFUSED, "fix", "ssh-copy-id -p 10001 train@n2"),
    (Cause.NAME_UNKNOWN, "look", "getent hosts n2"),
    (Cause.REFUSED, "look", "ssh -v -o BatchMode=yes -p 10001 train@n2 true"),
])  # fmt: skip
def test_the_fix_is_typed_on_the_node_with_the_port_and_the_user_of_this_run(cause: Cause, kind: str, fix: str) -> None:
    job = JobFacts(port=10001, user="train")
    nodes: dict[str, Facts] = {
        "n1": {PeerSshFacts: PeerSshFacts((PeerSsh("n2", cause, "no"),)), JobFacts: job},
        "n2": {PeerSshFacts: PeerSshFacts((PeerSsh("n1", None),)), JobFacts: job},
    }
    (finding,) = judge([node_to_node_ssh_fails], nodes).findings
    assert (finding.where, finding.kind, finding.fix) == ("n1", kind, fix)
