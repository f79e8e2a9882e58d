"""NC318: other nodes do not reach the port that was named for the job, and reach others there."""

from __future__ import annotations

from ncheck.facts.links import LinkCause, LinkFacts, PortState, Sample
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.job_port_unreachable import job_port_unreachable

from .linked import ALL, Broken, Dialler, link, name, ways


def nodes(
    *networks: int, cause: LinkCause = LinkCause.FILTERED, assumed: bool = False, mesh: Broken | None = None
) -> dict[str, Facts]:
    """Return four nodes with two subnets, in which n3 and n4 do not reach port 10001 of n1 in these networks."""
    free = (PortState(10001, free=True, assumed=assumed),)
    found = {}
    for number in ALL:
        blocked = tuple(link(network, number, 1, cause, 10001) for network in networks) if number > 2 else ()
        held = {1: mesh or {}, 2: mesh or {}}
        found[name(number)] = Dialler(number, 4, held, ports=free if number == 1 else (), blocked=blocked).facts()
    return found


def test_the_nodes_that_do_not_reach_it_are_named_once_a_subnet() -> None:
    found = judge([job_port_unreachable], nodes(1, 2)).findings
    assert found[0] == Finding(
        "NC318", "job-port-unreachable", Severity.ERROR, ("n3", "n4"),
        "port 10001 of n1 cannot be reached on 10.1.0.0/24 from n[3-4], although other ports of that node can: "
        "the ranks would wait for each other",
        ("n3 10.1.0.3 to n1 10.1.0.1 port 10001: filtered (seen by hand)",
         "n4 10.1.0.4 to n1 10.1.0.1 port 10001: filtered (seen by hand)"),
        "sudo nft list ruleset", where="n1", kind="look",
    )  # fmt: skip
    assert len(found) == 2


def test_it_is_silent_where_the_port_is_reached_in_another_subnet_or_nobody_named_it() -> None:
    for facts in (nodes(1), nodes(1, 2, assumed=True)):
        verdicts = judge([job_port_unreachable], facts).verdicts
        assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}


def test_it_is_silent_where_the_node_is_not_reached_at_all() -> None:
    assert judge([job_port_unreachable], nodes(1, 2, mesh=ways(ALL, [1]))).findings == []


def test_a_port_that_there_was_no_time_to_try_is_unknown() -> None:
    outcomes = [
        verdict.outcome for verdict in judge([job_port_unreachable], nodes(1, cause=LinkCause.UNTRIED)).verdicts
    ]
    assert outcomes == [Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN, Outcome.UNKNOWN]


def test_a_node_that_says_nothing_of_the_node_with_the_port_is_unknown() -> None:
    facts = nodes()
    facts["n2"] = {**facts["n2"], LinkFacts: LinkFacts((), (), frozenset({"n3"}))}
    verdicts = judge([job_port_unreachable], facts).verdicts
    assert [verdict.nodes[0] for verdict in verdicts if verdict.outcome is Outcome.UNKNOWN] == ["n2"]
    assert verdicts[1].reason == "n2 tested no port of n1, which the job needs: 10001"


def test_a_node_of_many_that_was_not_to_dial_that_node_is_not_asked_for_its_port() -> None:
    facts = nodes()
    for name_of, dialled in (("n2", {"n3"}), ("n3", {"n1", "n2"})):
        samples = tuple(Sample(f"10.{network}.0.0/24", frozenset(dialled)) for network in (1, 2))
        links = LinkFacts((), (), frozenset({"n2", "n3"}), samples=samples)
        facts[name_of] = {**facts[name_of], LinkFacts: links}
    verdicts = judge([job_port_unreachable], facts).verdicts
    assert [verdict.nodes[0] for verdict in verdicts if verdict.outcome is Outcome.UNKNOWN] == ["n3"]
