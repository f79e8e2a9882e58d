"""NC134: the ssh program of this machine refuses what ncheck's own client accepts."""

from __future__ import annotations

from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh, SshFromHereFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.launcher_ssh_fails import launcher_ssh_fails

from .peers import ELSEWHERE, ITSELF, WORKS, node

NO_METHOD = "Unable to negotiate with 10.0.0.1 port 22: no matching key exchange method found."


def nodes(*here: object, launcher: str | None = None) -> dict[str, Facts]:
    return {f"n{number}": node(here=one, job=JobFacts(launcher=launcher)) for number, one in enumerate(here, start=1)}


def failing(cause: Cause, detail: str, target: str = "n1") -> SshFromHereFacts:
    return SshFromHereFacts(PeerSsh(target, cause, detail))


def test_what_the_ssh_program_refuses_is_one_finding_about_this_machine() -> None:
    refused = failing(Cause.TRANSPORT, NO_METHOD)
    assert judge([launcher_ssh_fails], nodes(refused, refused)).findings == [
        Finding("NC134", "launcher-ssh-fails", Severity.ERROR, ("n1", "n2"),
                f"the ssh program of this machine cannot log in to n[1-2], although ncheck could: {NO_METHOD}",
                (f"ssh to n1: {NO_METHOD}",), "ssh -v -o BatchMode=yes n1 true", where="here", kind="look"),
    ]  # fmt: skip


def test_a_key_that_others_may_read_has_a_line_that_mends_it_however_its_path_is_written() -> None:
    open_key = "Permissions 0644 for '/home/a b/$(reboot)/id' are too open."
    (finding,) = judge([launcher_ssh_fails], nodes(failing(Cause.TRANSPORT, open_key))).findings
    assert (finding.fix, finding.kind) == ("chmod 600 '/home/a b/$(reboot)/id'", "fix")


def test_a_launcher_that_uses_no_ssh_has_no_such_fault() -> None:
    refused = failing(Cause.TRANSPORT, NO_METHOD)
    judgement = judge([launcher_ssh_fails], nodes(refused, launcher="torchrun"))
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED]


def test_trouble_of_the_network_or_of_a_node_is_unknown_and_nobodys_fault() -> None:
    judgement = judge([launcher_ssh_fails], nodes(failing(Cause.STALLED, "no end"), failing(Cause.NO_SHELL, "zsh")))
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.UNKNOWN, Outcome.UNKNOWN]


def test_a_login_that_works_passes_and_this_machine_itself_and_what_was_not_tried_are_skipped() -> None:
    judgement = judge([launcher_ssh_fails], nodes(WORKS, ITSELF, ELSEWHERE, launcher="mpirun"))
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.SKIPPED, Outcome.SKIPPED]
