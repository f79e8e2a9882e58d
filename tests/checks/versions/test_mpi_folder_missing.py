"""NC238: a variable of Open MPI names a folder that is not there."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.run import UnreadFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ncheck.fact_unread import fact_unread
from ncheck_checks.versions.mpi_folder_missing import mpi_folder_missing

from tests.logins import line_removed, logins

from .test_mpi_daemon_missing import healthy

SET = logins({"OPAL_PREFIX": "/opt/openmpi-5"})
GONE = replace(SET, missing_files=("NCCL_TOPO_FILE", "OPAL_PREFIX"))


def test_the_variable_its_line_and_what_follows_of_it_are_named() -> None:
    unread = UnreadFacts({"MpiFacts": Unread("mpirun --version ended with exit status 1", fix="mpirun --version")})
    nodes: dict[str, Facts] = {"n1": {type(GONE): GONE, MpiDaemonFacts: healthy(), UnreadFacts: unread}}
    cause, effect = judge([mpi_folder_missing, fact_unread], nodes).findings
    assert cause == Finding(
        "NC238", "mpi-folder-missing", Severity.ERROR, ("n1",),
        "OPAL_PREFIX=/opt/openmpi-5: there is no such folder, and Open MPI does not start",
        ("set in ~/.bashrc, line 1",), line_removed("OPAL_PREFIX"),
    )  # fmt: skip
    assert (effect.code, effect.see) == ("NC002", ("NC238",))


def test_a_folder_that_is_there_and_a_node_without_mpi_are_no_trouble() -> None:
    outcomes = [
        judge([mpi_folder_missing], {"n1": {type(GONE): environment, MpiDaemonFacts: mpi}}).verdicts[0].outcome
        for environment, mpi in ((SET, healthy()), (GONE, MpiDaemonFacts(None, ())))
    ]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED]
