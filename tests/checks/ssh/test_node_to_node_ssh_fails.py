"""NC131: the logins between nodes that the launch uses, and which node is at fault where they fail."""

from __future__ import annotations

import pytest
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh
from ncheck.model.evidence import Cause
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.node_to_node_ssh_fails import node_to_node_ssh_fails

from .peers import ITSELF, WORKS, mesh, node

UNKNOWN_KEY = "No ED25519 host key is known for n2 and you have requested strict checking."
CHANGED, UNKNOWN, REFUSED = Cause.HOST_KEY_CHANGED, Cause.HOST_KEY_UNKNOWN, Cause.AUTH_REFUSED


def outcomes(nodes: dict[str, object]) -> dict[str, Outcome]:
    return {verdict.nodes[0]: verdict.outcome for verdict in judge([node_to_node_ssh_fails], nodes).verdicts}  # type: ignore[arg-type]


def test_a_login_that_mpirun_on_the_first_node_needs_is_named_with_the_cause_and_a_line_to_type_there() -> None:
    nodes = {
        "n1": node(PeerSsh("n2", Cause.HOST_KEY_UNKNOWN, UNKNOWN_KEY, 10001), PeerSsh("n3", None)),
        "n2": node(PeerSsh("n1", None), PeerSsh("n3", None)),
        "n3": node(PeerSsh("n1", None), PeerSsh("n2", None)),
    }
    judgement = judge([node_to_node_ssh_fails], nodes)
    assert judgement.findings == [
        Finding("NC131", "node-to-node-ssh-fails", Severity.ERROR, ("n1",),
                "ssh from n1 to n2 fails: host-key-unknown", (f"n1 to n2: {UNKNOWN_KEY}",),
                "ssh-keyscan -p 10001 n2 >> ~/.ssh/known_hosts"),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.FAILED, Outcome.SKIPPED, Outcome.SKIPPED]


def test_one_re_imaged_node_is_one_finding_about_that_node() -> None:
    nodes = mesh("n1", "n2", "n3", "n4", failing={(name, "n3"): CHANGED for name in ("n1", "n2", "n4")})
    (finding,) = judge([node_to_node_ssh_fails], nodes).findings
    assert (finding.nodes, finding.where, finding.kind) == (("n3",), "n[1-2,4]", "look")
    known = "the host key of n3 is not the one in known_hosts of n[1-2,4]"
    assert finding.message == f"{known}: it was re-imaged, or another machine has its name"
    assert finding.fix == "ssh-keygen -l -F n3; ssh-keyscan n3 | ssh-keygen -lf -"


def test_of_two_nodes_the_one_whose_key_changed_is_named() -> None:
    (finding,) = judge([node_to_node_ssh_fails], mesh("n1", "n2", failing={("n1", "n2"): CHANGED})).findings
    assert (finding.nodes, finding.where) == (("n2",), "n1")


def test_a_node_that_lets_no_other_in_is_named_and_not_those_that_tried() -> None:
    nodes = mesh("n1", "n2", "n3", failing={("n1", "n3"): REFUSED, ("n2", "n3"): REFUSED})
    (finding,) = judge([node_to_node_ssh_fails], nodes).findings
    assert (finding.nodes, finding.where, finding.fix) == (("n3",), "n[1-2]", "ssh-copy-id n3")


def test_a_node_from_which_no_login_works_is_named_and_not_its_targets() -> None:
    nodes = mesh("n1", "n2", "n3", failing={("n1", "n2"): CHANGED, ("n1", "n3"): CHANGED})
    (finding,) = judge([node_to_node_ssh_fails], nodes).findings
    assert (finding.nodes, finding.where) == (("n1",), "")
    assert finding.message == "ssh from n1 to n[2-3] fails: host-key-changed"


def test_keys_on_no_node_are_an_error_for_the_node_that_starts_the_job_alone() -> None:
    every = {(a, b): REFUSED for a in ("n1", "n2", "n3") for b in ("n1", "n2", "n3")}
    (finding,) = judge([node_to_node_ssh_fails], mesh("n1", "n2", "n3", failing=every)).findings
    assert finding.nodes == ("n1",)


@pytest.mark.parametrize(
    ("here", "job"),
    [
        (WORKS, JobFacts(launcher="mpirun")),  # from this machine, which is no node
        (None, JobFacts(launcher="torchrun")),
        (None, JobFacts(launcher="srun")),
        (None, JobFacts(launcher="env")),
    ],
)
def test_a_login_that_the_launch_does_not_use_is_no_error(here: object, job: JobFacts) -> None:
    every = {(a, b): REFUSED for a in ("n1", "n2", "n3") for b in ("n1", "n2", "n3")}
    nodes = mesh("n1", "n2", "n3", failing=every, here=here or Absent("not tried"), job=job)
    judgement = judge([node_to_node_ssh_fails], nodes)
    assert judgement.findings == []
    assert {verdict.outcome for verdict in judgement.verdicts} == {Outcome.SKIPPED}


def test_mpirun_on_the_first_node_where_ncheck_runs_needs_no_ssh_of_that_nodes_agent() -> None:
    nodes = mesh("n1", "n2", "n3", failing={("n1", "n2"): REFUSED}, here=WORKS)
    nodes["n1"] = {**nodes["n1"], type(ITSELF): ITSELF}
    assert set(outcomes({**nodes}).values()) == {Outcome.SKIPPED}


def many(here: object, job: JobFacts | None = None) -> list[Finding]:
    """Return what is found of 70 nodes whose first seven cannot log in to the last."""
    names = [f"n{number}" for number in range(1, 71)]
    tried = {name: node(PeerSsh("n70", REFUSED, "no"), here=here, job=job) for name in names[:7]}
    return judge([node_to_node_ssh_fails], {**{name: node(here=here, job=job) for name in names}, **tried}).findings


def test_beyond_64_nodes_the_tree_of_open_mpi_counts_from_where_mpirun_runs() -> None:
    # n6, which this machine starts, starts n70.
    assert [finding.nodes for finding in many(WORKS)] == [("n70",)]
    assert [finding.message for finding in many(WORKS, JobFacts(tree=False))] == []


def test_logins_that_all_work_are_no_finding() -> None:
    assert outcomes({**mesh("n1", "n2", failing={})}) == {"n1": Outcome.PASSED, "n2": Outcome.SKIPPED}


def test_a_server_that_had_no_room_and_a_run_that_had_no_time_are_unknown_and_nobodys_fault() -> None:
    nodes = mesh("n1", "n2", "n3", failing={("n1", "n2"): Cause.OVERLOADED, ("n2", "n1"): Cause.DEADLINE})
    judgement = judge([node_to_node_ssh_fails], nodes)
    assert judgement.findings == []
    assert outcomes({**nodes}) == {"n1": Outcome.UNKNOWN, "n2": Outcome.SKIPPED, "n3": Outcome.SKIPPED}


def test_a_node_that_could_not_be_asked_is_unknown_only_if_the_launch_needs_its_ssh() -> None:
    unread = node(facts=Unread("no ssh program on this node"))
    assert outcomes({"n1": unread, "n2": unread}) == {"n1": Outcome.UNKNOWN, "n2": Outcome.SKIPPED}


def test_a_login_that_the_node_says_nothing_of_is_unknown_where_the_target_was_there() -> None:
    nodes = {"n1": node(PeerSsh("n2", None)), "n2": node(PeerSsh("n1", None)), "n3": node(PeerSsh("n1", None))}
    assert outcomes({**nodes})["n1"] is Outcome.UNKNOWN
    nodes["n3"] = node(facts=Unread("not reached (refused)"))
    assert outcomes({**nodes})["n1"] is Outcome.PASSED


def test_a_node_that_had_none_to_try_is_skipped() -> None:
    untried = node(facts=Absent("--mesh none"))
    assert outcomes({"n1": untried, "n2": untried}) == {"n1": Outcome.SKIPPED, "n2": Outcome.SKIPPED}


def test_many_edges_are_shown_by_a_few() -> None:
    names = tuple(f"n{number}" for number in range(20))
    (finding,) = judge(
        [node_to_node_ssh_fails], mesh(*names, failing={(name, "n19"): Cause.REFUSED for name in names})
    ).findings
    assert finding.evidence[-1] == "and 11 more"
    assert len(finding.evidence) == 9
