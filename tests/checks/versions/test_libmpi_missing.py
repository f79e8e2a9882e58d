"""NC214: the daemon without the library."""

from __future__ import annotations

from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.libmpi_missing import libmpi_missing

LOST = "libmpi.so.40: cannot open shared object file: No such file or directory"


def node(mpi: str | Absent) -> Facts:
    return {LibraryFacts: LibraryFacts(Absent("no HCA"), mpi), MpiDaemonFacts: MpiDaemonFacts(None, ())}


def test_a_node_without_the_library_is_named() -> None:
    assert judge([libmpi_missing], {"n1": node(LOST), "n2": node("")}).findings == [
        Finding("NC214", "libmpi-missing", Severity.ERROR, ("n1",),
                f"Open MPI's daemon is there, and its library is not: {LOST}", (), "ldconfig -p | grep libmpi",
                kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_it_is_there_and_where_there_is_no_open_mpi() -> None:
    verdicts = judge([libmpi_missing], {"n1": node(""), "n2": node(Absent("no daemon of Open MPI"))}).verdicts
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED, Outcome.SKIPPED]
