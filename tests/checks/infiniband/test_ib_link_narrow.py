"""NC421: one lane, or SDR, on a card that can do far more."""

from __future__ import annotations

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_link_narrow import ib_link_narrow

from .fabric import PASSED, SKIPPED, node, outcomes, port


def test_one_lane_is_named_even_alone() -> None:
    assert judge([ib_link_narrow], {"n1": node(port(), port("mlx5_1", lanes=1, rate=100))}).findings == [
        Finding("NC421", "ib-link-narrow", Severity.ERROR, ("n1",), "mlx5_1 port 1: 1 of 4 lanes at NDR", (),
                "sudo iblinkinfo", kind="look", summary="mlx5_1 has a slow link"),
    ]  # fmt: skip


def test_where_other_nodes_are_faster_another_check_reports_it() -> None:
    slow = node(port(lanes=4, speed="SDR", rate=10))
    assert outcomes(judge, ib_link_narrow, node(port()), node(port()), slow) == [PASSED, PASSED, PASSED]
    assert outcomes(judge, ib_link_narrow, slow, slow) == [Outcome.FAILED, Outcome.FAILED]


def test_it_is_silent_about_links_that_are_sold_like_that_and_about_what_it_does_not_know() -> None:
    two_lanes, old_switch = port(lanes=2, rate=200), port(lanes=4, speed="QDR", rate=40)
    assert outcomes(judge, ib_link_narrow, node(two_lanes)) == [PASSED]
    assert outcomes(judge, ib_link_narrow, node(old_switch)) == [PASSED]
    for other in (
        port(layer="Ethernet", lanes=1),
        *(port(kind=old, lanes=1) for old in ("MT4126", "MT26428", "MT4099")),
    ):
        assert outcomes(judge, ib_link_narrow, node(other)) == [SKIPPED]


def test_a_link_whose_lanes_are_not_shown_is_unknown() -> None:
    hidden = node(port())
    blind = node((port()[0], port("mlx5_9")[1]))
    assert outcomes(judge, ib_link_narrow, hidden, blind) == [PASSED, Outcome.UNKNOWN]
