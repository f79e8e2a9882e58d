"""NC372: variables of a rank in a start-up file."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.rank_variables_left_over import rank_variables_left_over

from tests.logins import line_removed, logins

LEFT = {"MASTER_ADDR": "localhost", "RANK": "0", "WORLD_SIZE": "1", "PATH": "/usr/bin"}


def nodes(second: dict[str, str], *, running: bool = False) -> dict[str, Facts]:
    job = JobFacts(running=running)
    return {
        name: {EnvironmentFacts: logins(own), JobFacts: job}
        for name, own in (("n1", {"PATH": "/usr/bin"}), ("n2", second))
    }


def test_what_is_left_on_one_node_is_named_with_its_cure() -> None:
    assert judge([rank_variables_left_over], nodes(LEFT)).findings == [
        Finding("NC372", "rank-variables-left-over", Severity.WARNING, ("n2",),
                "every login has RANK=0, WORLD_SIZE=1, MASTER_ADDR=localhost, which a rank takes for its own", (),
                line_removed("RANK", "WORLD_SIZE", "MASTER_ADDR"), summary="variables of a rank are left over"),
    ]  # fmt: skip


def test_it_is_silent_about_a_meeting_place_alone_and_skipped_inside_a_job() -> None:
    meeting = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
    assert judge([rank_variables_left_over], nodes(meeting)).findings == []
    inside = judge([rank_variables_left_over], nodes(LEFT, running=True)).verdicts
    assert [verdict.outcome for verdict in inside] == [Outcome.SKIPPED] * 2
