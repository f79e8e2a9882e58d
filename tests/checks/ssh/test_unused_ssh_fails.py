"""NC132: logins that fail and that the launch does not use: information, and no unknown verdict."""

from __future__ import annotations

from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh, SshFromHereFacts
from ncheck.model.evidence import Cause
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.unused_ssh_fails import unused_ssh_fails

from .peers import WORKS, mesh, node

REFUSED = Cause.AUTH_REFUSED
EVERY = {(a, b): REFUSED for a in ("n1", "n2", "n3") for b in ("n1", "n2", "n3")}


def test_keys_on_the_head_alone_are_information() -> None:
    judgement = judge([unused_ssh_fails], mesh("n1", "n2", "n3", failing=EVERY, here=WORKS))
    (finding,) = judgement.findings
    assert (finding.severity, finding.nodes) == (Severity.INFO, ("n1", "n2", "n3"))
    assert finding.message == "ssh from n[1-3] to n[1-3] fails: auth-refused; the planned launch does not use it"


def test_a_fault_that_the_launch_meets_is_not_told_twice() -> None:
    nodes = mesh("n1", "n2", "n3", failing={("n1", "n3"): REFUSED, ("n2", "n3"): REFUSED})
    assert judge([unused_ssh_fails], nodes).findings == []


def test_this_machines_ssh_program_is_information_for_a_launcher_without_ssh() -> None:
    open_key = "Permissions 0644 for '/home/ada/.ssh/id_rsa' are too open."
    here = SshFromHereFacts(PeerSsh("n1", Cause.TRANSPORT, open_key))
    nodes = mesh("n1", "n2", failing={}, here=here, job=JobFacts(launcher="torchrun"))
    said = f"the ssh program of this machine cannot log in to n[1-2], although ncheck could: {open_key}"
    assert judge([unused_ssh_fails], nodes).findings == [
        Finding("NC132", "unused-ssh-fails", Severity.INFO, ("n1", "n2"),
                f"{said}; the planned launch does not use it", (f"ssh to n1: {open_key}",),
                "chmod 600 /home/ada/.ssh/id_rsa", where="here"),
    ]  # fmt: skip
    mpirun = mesh("n1", "n2", failing={}, here=here, job=JobFacts(launcher="mpirun"))
    assert judge([unused_ssh_fails], mpirun).findings == []


def test_what_could_not_be_tried_is_skipped_and_what_works_passes() -> None:
    nodes = {"n1": node(facts=Unread("no ssh program on this node")), "n2": node(PeerSsh("n1", None))}
    judgement = judge([unused_ssh_fails], nodes)
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED, Outcome.PASSED]
