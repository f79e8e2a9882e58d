"""NC210: the daemon that mpirun's ssh starts must be of mpirun's own release."""

from __future__ import annotations

from ncheck.facts.mpi_daemon import BESIDE, PLAIN, MpiDaemonFacts, MpiProgram
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.mpi_daemon_differs import mpi_daemon_differs


def program(path: str, version: str, *ways: str) -> MpiProgram:
    return MpiProgram(path, path, ways, "Open MPI", version)


def node(version: str = "4.1.4", *more: MpiProgram, ways: tuple[str, ...] = (PLAIN, BESIDE)) -> Facts:
    mpirun = program("/opt/openmpi/bin/mpirun", "4.1.4", PLAIN)
    folder = "/opt/openmpi/bin" if version.startswith("4.1") else "/usr/bin"
    return {MpiDaemonFacts: MpiDaemonFacts(mpirun, (program(f"{folder}/orted", version, *ways), *more))}


def test_a_plain_login_that_finds_another_release_is_named_with_what_helps() -> None:
    own = program("/opt/openmpi/bin/orted", "4.1.4", BESIDE)
    judgement = judge([mpi_daemon_differs], {"n1": node(), "n2": node("4.0.3", own)})
    assert judgement.findings == [
        Finding("NC210", "mpi-daemon-differs", Severity.ERROR, ("n2",),
                "mpirun of n1 is Open MPI 4.1.4, but /usr/bin/orted is Open MPI 4.0.3",
                ("mpirun --prefix /opt/openmpi starts mpirun's own daemon; the launch plan does this",),
                "which -a orted mpirun", kind="look", summary="another orted"),
    ]  # fmt: skip


def test_the_last_number_of_a_release_does_not_count() -> None:
    judgement = judge([mpi_daemon_differs], {"n1": node(), "n2": node("4.1.6")})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED]


def test_a_daemon_that_does_not_tell_its_release_is_not_blamed() -> None:
    judgement = judge([mpi_daemon_differs], {"n1": node(), "n2": node("")})
    assert (judgement.findings, [verdict.outcome for verdict in judgement.verdicts]) == (
        [], [Outcome.PASSED, Outcome.UNKNOWN]
    )  # fmt: skip


def test_a_node_without_a_daemon_is_left_to_the_check_of_that() -> None:
    bare: Facts = {MpiDaemonFacts: MpiDaemonFacts(None, ())}
    judgement = judge([mpi_daemon_differs], {"n1": node(), "n2": bare})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.SKIPPED]
