"""NC308: a port that is kept from others in one subnet of several, or that nobody named."""

from __future__ import annotations

from ncheck.facts.links import LinkCause, PortState
from ncheck.model.cluster import Facts
from ncheck.model.finding import Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.job_port_may_be_blocked import job_port_may_be_blocked

from .linked import Dialler, link, name


def nodes(*networks: int, assumed: bool = False) -> dict[str, Facts]:
    """Return two nodes with two subnets, of which the second does not reach port 10001 of the first in these."""
    free = (PortState(10001, free=True, assumed=assumed),)
    blocked = tuple(link(network, 2, 1, LinkCause.REFUSED, 10001) for network in networks)
    return {
        name(1): Dialler(1, 2, {1: {}, 2: {}}, ports=free).facts(),
        name(2): Dialler(2, 2, {1: {}, 2: {}}, blocked=blocked).facts(),
    }


def test_a_port_that_is_open_in_another_subnet_is_a_warning() -> None:
    (finding,) = judge([job_port_may_be_blocked], nodes(2)).findings
    assert (finding.severity, finding.nodes) == (Severity.WARNING, ("n2",))
    assert finding.message == (
        "port 10001 of n1 cannot be reached on 10.2.0.0/24 from n2, although other ports of that node can: "
        "it can be reached in another subnet"
    )


def test_a_default_port_that_is_blocked_everywhere_is_a_warning() -> None:
    messages = [finding.message for finding in judge([job_port_may_be_blocked], nodes(1, 2, assumed=True)).findings]
    assert [message.partition(": ")[2] for message in messages] == ["the ranks would wait for each other"] * 2


def test_it_is_silent_where_the_port_is_reached_or_surely_blocked() -> None:
    for facts in (nodes(), nodes(1, 2)):
        verdicts = judge([job_port_may_be_blocked], facts).verdicts
        assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}
