"""NC139: an error on the nodes on which Slurm starts no task; not a word where srun was not used."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.slurm_step_not_started import slurm_step_not_started

NODE = Login(reached=True, transport="srun")


def test_a_node_on_which_no_task_starts_is_an_error_with_slurms_own_words() -> None:
    lost = Login(reached=False, cause=Cause.STEP_NOT_STARTED, detail="Slurm says down* (fan)", transport="srun")
    judgement = judge(
        [slurm_step_not_started], {"a": {LoginFacts: LoginFacts(NODE)}, "b": {LoginFacts: LoginFacts(lost)}}
    )
    assert judgement.findings == [
        Finding("NC139", "slurm-step-not-started", Severity.ERROR, ("b",), "Slurm starts no task there",
                ("Slurm says down* (fan)",), "scontrol show node b", where="here", kind="look")
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.FAILED]


def test_what_is_no_fault_of_the_node_is_unknown_and_ssh_is_skipped() -> None:
    trouble = Login(reached=False, cause=Cause.TRANSPORT, detail="slurmctld", transport="srun")
    later = Login(reached=True, cause=Cause.CLOSED, transport="srun")
    by_ssh = Login(reached=False, cause=Cause.REFUSED, transport="paramiko")
    logins = {"a": trouble, "b": later, "c": by_ssh}
    judgement = judge([slurm_step_not_started], {name: {LoginFacts: LoginFacts(one)} for name, one in logins.items()})
    assert judgement.findings == []
    assert [(verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [
        (Outcome.UNKNOWN, "not reached (transport)"), (Outcome.PASSED, ""), (Outcome.SKIPPED, "--via srun is not used"),
    ]  # fmt: skip
