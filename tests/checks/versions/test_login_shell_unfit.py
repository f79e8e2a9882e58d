"""NC229: the shells that were tried with Open MPI 4.1.4 in the lab: which ones read the line that it sends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.login import ListingFacts
from ncheck.facts.mpi_daemon import BESIDE, INTERACTIVE, PLAIN, MpiDaemonFacts, MpiProgram
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh, SshFromHereFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.login_shell_unfit import login_shell_unfit

from .test_mpi_daemon_missing import healthy, program


def unseen() -> MpiDaemonFacts:
    """Make a node that the plan reaches by --prefix."""
    mpirun, orted = (program(f"/opt/openmpi/bin/{name}", INTERACTIVE, BESIDE) for name in ("mpirun", "orted"))
    return MpiDaemonFacts(mpirun, (orted,))


def nodes(
    shell: str, here: str, one: MpiDaemonFacts | None = None, listed: str = "nodes.txt:1", *, itself: bool = False
) -> dict[str, Facts]:
    facts, job = one or healthy(), JobFacts(launcher="mpirun", local_shell=here)
    shared: Facts = {ListingFacts: ListingFacts((listed,)), JobFacts: job}
    tried, own = SshFromHereFacts(PeerSsh("n2", None)), SshFromHereFacts(None)
    return {
        "n1": {**shared, MpiDaemonFacts: replace(facts, login_shell="/bin/bash"), SshFromHereFacts: tried},
        "n2": {**shared, MpiDaemonFacts: replace(facts, login_shell=shell), SshFromHereFacts: own if itself else tried},
    }


def test_fish_does_not_read_what_mpirun_sends_from_a_machine_with_fish() -> None:
    assert judge([login_shell_unfit], nodes("/usr/bin/fish", "/usr/bin/fish")).findings == [
        Finding("NC229", "login-shell-unfit", Severity.ERROR, ("n2",),
                "mpirun cannot start its daemon: its login shell, fish, does not read the line that mpirun sends", (),
                "chsh -s /bin/bash", summary="mpirun does not work with fish"),
    ]  # fmt: skip


@pytest.mark.parametrize(("shell", "here", "prefix", "fails"), [
    ("fish", "bash", False, False), ("fish", "zsh", False, False), ("fish", "tcsh", False, False),
    ("fish", "", False, False), ("fish", "dash", False, True), ("fish", "sh", False, True),
    ("fish", "ksh", False, True), ("dash", "fish", False, False), ("tcsh", "bash", False, False),
    ("fish", "bash", True, True), ("tcsh", "bash", True, True), ("dash", "tcsh", True, True),
    ("tcsh", "tcsh", True, False), ("zsh", "bash", True, False),
])  # fmt: skip
def test_a_node_whose_shell_reads_the_line_is_healthy(shell: str, here: str, prefix: bool, fails: bool) -> None:  # noqa: FBT001
    found = judge([login_shell_unfit], nodes(f"/bin/{shell}", here and f"/bin/{here}", unseen() if prefix else None))
    assert any(finding.nodes == ("n2",) for finding in found.findings) == fails


def test_it_is_skipped_in_slurm_with_another_mpi_on_this_machine_itself_and_where_no_shell_is_known() -> None:
    mpich = MpiDaemonFacts(program("/usr/bin/mpirun", PLAIN, implementation="MPICH", version="4.1.2"), ())
    cases = (
        nodes("/bin/fish", "/bin/fish", listed="SLURM_JOB_NODELIST"), nodes("/bin/fish", "/bin/fish", mpich),
        nodes("/bin/fish", "/bin/fish", itself=True), nodes("", "/bin/fish"),
    )  # fmt: skip
    verdicts = [judge([login_shell_unfit], case).verdicts for case in cases]
    assert [one.outcome for own in verdicts for one in own if one.nodes[0] == "n2"] == [Outcome.SKIPPED] * 4


def test_the_mpirun_of_a_distribution_that_always_names_its_prefix_counts_as_prefixed() -> None:
    mpirun: MpiProgram = replace(program("/usr/bin/mpirun", PLAIN), prefix_by_default=True)
    own = replace(healthy(), starter=mpirun)
    assert [one.nodes for one in judge([login_shell_unfit], nodes("/bin/fish", "/bin/bash", own)).findings] == [("n2",)]
