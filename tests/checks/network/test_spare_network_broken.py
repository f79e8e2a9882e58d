"""NC319: what is broken in a network that no job needs is a warning, with the network that carries."""

from __future__ import annotations

from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.finding import Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.spare_network_broken import spare_network_broken

from .linked import ALL, Dialler, cluster, name, ways


def test_a_second_network_that_leads_nowhere_is_a_warning_that_names_the_first() -> None:
    (finding,) = judge([spare_network_broken], cluster({1: {}, 2: ways(ALL, ALL, LinkCause.UNROUTABLE)})).findings
    assert finding.severity is Severity.WARNING
    assert finding.nodes == ("n1", "n2", "n3", "n4")
    assert finding.message == (
        "no node reaches another one on 10.2.0.0/24: no route; 10.1.0.0/24 connects all nodes: use it for the job"
    )
    assert (finding.where, finding.fix) == ("n1", "ip route get 10.2.0.2 from 10.2.0.1")


def test_a_network_that_only_some_nodes_have_is_a_warning_even_where_the_shared_one_is_broken() -> None:
    nodes = cluster({1: ways(ALL, [4])})
    storage = {1: ways(ALL, [4]), 2: ways([1], [2])}
    for number in (1, 2):
        dialler = Dialler(number, 4, storage)
        links = dialler.links()
        reaches = (links.reaches[0], *(reach for reach in links.reaches[1:] if number == 1))
        nodes[name(number)] = {**nodes[name(number)], NicFacts: dialler.facts()[NicFacts],
                               LinkFacts: LinkFacts(reaches, links.broken, links.tried_to)}  # fmt: skip
    (finding,) = judge([spare_network_broken], nodes).findings
    assert finding.message.partition(" on ")[0] == "n1 cannot reach n2"


def test_it_is_silent_where_everything_carries() -> None:
    verdicts = judge([spare_network_broken], cluster({1: {}, 2: {}})).verdicts
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}


def test_it_is_silent_where_the_only_network_is_broken() -> None:
    assert judge([spare_network_broken], cluster({1: ways(ALL, [3])})).findings == []
