"""NC209: mpirun's ssh gets a shell that is neither interactive nor a login shell, and orted must be found there."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import ListingFacts
from ncheck.facts.mpi_daemon import BESIDE, INTERACTIVE, LOGIN, PLAIN, USUAL, EarlyReturn, MpiDaemonFacts, MpiProgram
from ncheck.facts.os_release import OsFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.mpi_daemon_missing import mpi_daemon_missing

LISTED = ListingFacts(("nodes.txt:1",))
HELPS = ("mpirun --prefix /opt/openmpi starts it; the launch plan does this",)


def program(path: str, *ways: str, implementation: str = "Open MPI", version: str = "4.1.4") -> MpiProgram:
    return MpiProgram(path, path, ways, implementation, version)


def healthy(folder: str = "/usr/bin", version: str = "4.1.4", name: str = "orted") -> MpiDaemonFacts:
    mpirun = program(f"{folder}/mpirun", PLAIN, version=version)
    return MpiDaemonFacts(mpirun, (program(f"{folder}/{name}", PLAIN, BESIDE, version=version),))


def unseen(*ways: str, early: EarlyReturn | None = None) -> MpiDaemonFacts:
    """Make a node whose plain login sees nothing of /opt/openmpi, and a person's shell does."""
    mpirun, orted = program("/opt/openmpi/bin/mpirun", *ways), program("/opt/openmpi/bin/orted", *ways)
    return MpiDaemonFacts(mpirun, (orted,), early_return=early)


UBUNTU = OsFacts(("ubuntu", "debian"))


def nodes(*facts: MpiDaemonFacts, listed: ListingFacts = LISTED) -> dict[str, Facts]:
    every: Facts = {ListingFacts: listed, OsFacts: UBUNTU}
    return {f"n{number}": {**every, MpiDaemonFacts: one} for number, one in enumerate(facts, 1)}


def told(*facts: MpiDaemonFacts) -> list[tuple[tuple[str, ...], str, str]]:
    findings = judge([mpi_daemon_missing], nodes(*facts)).findings
    return [(found.nodes, found.message.partition(": ")[2], found.fix) for found in findings]


def test_a_bashrc_that_returns_before_its_exports_is_named_with_its_line() -> None:
    early = EarlyReturn("~/.bashrc", 6, '[ -z "$PS1" ] && return')
    judgement = judge([mpi_daemon_missing], nodes(healthy("/opt/openmpi/bin"), unseen(INTERACTIVE, early=early)))
    assert judgement.findings == [
        Finding("NC209", "mpi-daemon-missing", Severity.ERROR, ("n2",),
                'mpirun of n1 (Open MPI 4.1.4) cannot start orted over ssh: ~/.bashrc line 6 ([ -z "$PS1" ] && '
                "return) returns before the exports in non-interactive shells; an interactive shell finds "
                "/opt/openmpi/bin/orted", HELPS,
                'sed -i --follow-symlinks "1i export PATH=/opt/openmpi/bin:\\$PATH" ~/.bashrc',
                summary="mpirun cannot start orted"),
    ]  # fmt: skip


def test_what_only_a_login_shell_loads_is_put_at_the_end_of_bashrc() -> None:
    assert told(healthy("/opt/openmpi/bin"), unseen(LOGIN)) == [
        (("n2",), "only a login shell finds /opt/openmpi/bin/orted (a module or a profile sets its PATH)",
         'echo "export PATH=/opt/openmpi/bin:\\$PATH" >> ~/.bashrc')
    ]  # fmt: skip


def test_a_folder_outside_path_is_reported() -> None:
    lying = MpiDaemonFacts(None, (program("/opt/openmpi/bin/orted", USUAL),))
    assert told(healthy("/opt/openmpi/bin"), lying) == [
        (("n2",), "it is at /opt/openmpi/bin/orted, which is on no shell's PATH",
         'echo "export PATH=/opt/openmpi/bin:\\$PATH" >> ~/.bashrc')
    ]  # fmt: skip


def test_a_node_without_open_mpi_is_named_with_the_line_that_installs_it() -> None:
    none = MpiDaemonFacts(None, (), shells={LOGIN: "/bin/bash -lc: it was ended: its time was over"})
    cause = (
        "it is neither on the PATH of any shell there nor in the usual folders; "
        "/bin/bash -lc: it was ended: its time was over"
    )
    assert told(healthy(), none) == [(("n2",), cause, "sudo apt-get install openmpi-bin")]
    assert [fix for _, _, fix in told(healthy("/opt/ompi/bin"), none)] == ["rsync -a /opt/ompi/ n2:/opt/ompi/"]


def test_missing_libraries_of_a_daemon_are_reported_in_the_loaders_words() -> None:
    lost = "error while loading shared libraries: libopen-rte.so.40: cannot open shared object file"
    broken = healthy()
    broken = replace(broken, daemons=(replace(broken.daemons[0], trouble=lost),))
    assert told(healthy(), broken) == [
        (("n2",), f"/usr/bin/orted exists but does not run: {lost}", "ldd /usr/bin/orted")
    ]


def test_open_mpi_5_and_hydra_ask_for_mpiruns_own_folder() -> None:
    five = [healthy("/opt/ompi5/bin", "5.0.11", "prted"), healthy("/usr/bin", "5.0.11", "prted")]
    assert told(*five) == [
        (("n2",), "it is at /usr/bin/prted", "rsync -a /opt/ompi5/ n2:/opt/ompi5/")
    ]  # fmt: skip
    mpich = MpiDaemonFacts(program("/usr/bin/mpirun", PLAIN, implementation="MPICH", version="5.0.2"), ())
    assert [nodes for nodes, _, _ in told(mpich, mpich)] == [("n1",), ("n2",)]


def test_it_is_silent_if_every_non_interactive_login_finds_it() -> None:
    judgement = judge([mpi_daemon_missing], nodes(healthy(), healthy()))
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED]


def test_an_open_mpi_5_outside_path_is_not_reported() -> None:
    five = healthy("/opt/ompi5/bin", "5.0.11", "prted")
    unseen_five = replace(five, daemons=(replace(five.daemons[0], found_by=(USUAL,)),))
    assert told(five, unseen_five) == []


def test_an_mpirun_with_a_built_in_prefix_is_not_reported() -> None:
    own = unseen(INTERACTIVE)
    assert own.starter
    assert told(*[replace(own, starter=replace(own.starter, prefix_by_default=True))] * 2) == []


def test_it_is_silent_without_mpi_and_under_slurm() -> None:
    none = judge([mpi_daemon_missing], nodes(*[MpiDaemonFacts(None, ())] * 2))
    slurm = ListingFacts(("SLURM_JOB_NODELIST",))
    allocated = judge([mpi_daemon_missing], nodes(*[unseen(LOGIN)] * 2, listed=slurm))
    assert {verdict.outcome for one in (none, allocated) for verdict in one.verdicts} == {Outcome.SKIPPED}
