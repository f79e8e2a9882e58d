"""NC221: one release, two builds."""

from __future__ import annotations

from ncheck.facts.mpi_daemon import MpiDaemonFacts, MpiProgram
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.mpi_build_differs import mpi_build_differs as check


def node(options: tuple[str, ...] | None, version: str = "4.1.4") -> Facts:
    mpirun = MpiProgram(
        "/usr/bin/mpirun", "/opt/ompi/bin/orterun", ("plain login",), "Open MPI", version, built_with=options
    )
    return {MpiDaemonFacts: MpiDaemonFacts(mpirun, ())}


def test_a_build_without_cuda_among_builds_with_it_is_named() -> None:
    nodes = {"n1": node(("cuda", "ucx")), "n2": node(("cuda", "ucx")), "n3": node(("ucx",))}
    assert judge([check], nodes).findings == [
        Finding("NC221", "mpi-build-differs", Severity.WARNING, ("n3",),
                "Open MPI 4.1 was built with other options: cuda+ucx on n[1-2], ucx on n3 (2 to 1)",
                ("/opt/ompi/bin/orterun on n3",), "ompi_info --parsable | grep config:cli", kind="look",
                summary="another build of Open MPI"),
    ]  # fmt: skip


def test_it_is_silent_about_equal_builds_other_releases_and_builds_that_do_not_say() -> None:
    nodes = {"n1": node(("cuda",)), "n2": node(("cuda",), "4.1.6"), "n3": node((), "5.0.3"), "n4": node(None)}
    assert judge([check], nodes).findings == []


def test_it_is_skipped_where_no_build_says_how_it_was_made() -> None:
    nodes: dict[str, Facts] = {"n1": node(None), "n2": {MpiDaemonFacts: MpiDaemonFacts(None, ())}}
    assert {one.outcome for one in judge([check], nodes).verdicts} == {Outcome.SKIPPED}
