"""NC133: logins that fail on the machine that runs ncheck are one finding about it."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.ssh_fails_on_this_machine import ssh_fails_on_this_machine

OPEN = "ssh configuration: Bad owner or permissions on /root/.ssh/config"


def lost(cause: Cause, detail: str, address: str = "") -> Facts:
    return {LoginFacts: LoginFacts(Login(reached=False, cause=cause, detail=detail, address=address))}


def test_a_configuration_that_ssh_refuses_is_one_finding_with_a_line_that_mends_it() -> None:
    nodes = {name: lost(Cause.TRANSPORT, OPEN) for name in ("n1", "n2")}
    assert judge([ssh_fails_on_this_machine], nodes).findings == [
        Finding("NC133", "ssh-fails-on-this-machine", Severity.ERROR, ("n1", "n2"),
                f"the login fails on this machine: {OPEN}", (), "chmod go-w /root/.ssh/config", where="here"),
    ]  # fmt: skip


def test_slurm_that_does_not_answer_is_named() -> None:
    words = "squeue: Unable to contact slurm controller"
    login = Login(reached=False, cause=Cause.TRANSPORT, detail=words, transport="srun", fix="scontrol ping")
    (finding,) = judge([ssh_fails_on_this_machine], {"n1": {LoginFacts: LoginFacts(login)}}).findings
    assert (finding.message, finding.fix) == (f"the Slurm step fails on this machine: {words}", "scontrol ping")


def test_messages_that_differ_by_the_node_alone_are_one_finding() -> None:
    text = "Unable to negotiate with {} port 22: no matching MAC found."
    nodes = {
        f"n{number}": lost(Cause.TRANSPORT, text.format(address), address)
        for number, address in enumerate(("10.0.0.1", "10.0.0.2"), start=1)
    }
    (finding,) = judge([ssh_fails_on_this_machine], nodes).findings
    assert (finding.nodes, finding.fix, finding.kind) == (("n1", "n2"), "ssh -v n1 true", "look")
    assert finding.evidence == (text.format("10.0.0.2"),)


def test_a_node_that_was_reached_or_refused_passes_and_one_whose_time_was_over_is_unknown() -> None:
    nodes: dict[str, Facts] = {
        "n1": {LoginFacts: LoginFacts(Login(reached=True))},
        "n2": lost(Cause.REFUSED, "refused"),
        "n3": lost(Cause.DEADLINE, "too late"),
    }
    judgement = judge([ssh_fails_on_this_machine], nodes)
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN]
