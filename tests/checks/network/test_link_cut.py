"""NC315: connections end in the middle or a stranger answers, and no other subnet carries."""

from __future__ import annotations

from ncheck.facts.links import LinkCause
from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.network.link_cut import link_cut

from .linked import ALL, cluster, ways


def test_an_address_at_which_a_stranger_answers_is_named_with_the_line_that_shows_who() -> None:
    (finding,) = judge([link_cut], cluster({1: ways(ALL, [3], LinkCause.STRANGER)})).findings
    assert finding.nodes == ("n3",)
    assert finding.message == (
        "no connection to n3 lasts on 10.1.0.0/24: another host answers; "
        "no other subnet is known to connect all nodes, so a job hangs at its start"
    )
    assert (finding.where, finding.fix) == ("n1", "ip neigh show to 10.1.0.3")


def test_a_connection_that_is_cut_in_the_middle_names_both_ends() -> None:
    (finding,) = judge([link_cut], cluster({1: ways([1], [3], LinkCause.CUT)})).findings
    assert finding.nodes == ("n1", "n3")
    assert finding.message.startswith(
        "connections from n1 to n3 do not last on 10.1.0.0/24, but those from n3 to n1 do"
    )


def test_it_is_silent_where_all_connections_last() -> None:
    assert {verdict.outcome for verdict in judge([link_cut], cluster({1: {}})).verdicts} == {Outcome.PASSED}
