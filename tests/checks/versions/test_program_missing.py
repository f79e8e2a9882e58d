"""NC227: the program or the script of the job's command is not on a node."""

from __future__ import annotations

from ncheck.facts.programs import ProgramFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.program_missing import program_missing

JOB = "/usr/local/bin/my job"


def node(trouble: str | Unread) -> Facts:
    return {ProgramFacts: ProgramFacts({JOB: trouble, "/data/train.py": ""})}


def test_a_program_that_a_node_lacks_is_an_error_there() -> None:
    assert judge([program_missing], {"n1": node(""), "n2": node("does not exist")}).findings == [
        Finding("NC227", "program-missing", Severity.ERROR, ("n2",),
                f"{JOB} of the job's command does not exist", (), "ls -ld '/usr/local/bin/my job'", kind="look",
                summary="the job's program is missing"),
    ]  # fmt: skip


def test_it_is_silent_where_all_is_there_unknown_where_a_disk_hangs_and_skipped_without_a_command() -> None:
    nodes: dict[str, Facts] = {
        "n1": node(""), "n2": node(Unread(f"{JOB}: no answer")), "n3": {ProgramFacts: Absent("no command")}
    }  # fmt: skip
    outcomes = [verdict.outcome for verdict in judge([program_missing], nodes).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.UNKNOWN, Outcome.SKIPPED]
