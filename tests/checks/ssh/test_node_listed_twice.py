"""NC101: a host that stands in the list more than once."""

from __future__ import annotations

from ncheck.facts.login import ListingFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.node_listed_twice import node_listed_twice


def listed(**places: tuple[str, ...]) -> dict[str, Facts]:
    return {node: {ListingFacts: ListingFacts(where, 8)} for node, where in places.items()}


def test_a_node_on_two_lines_is_told_with_its_places_and_how_to_take_the_later_one_out() -> None:
    nodes = listed(a=("my nodes.txt:3", "my nodes.txt:9"), b=("my nodes.txt:4",))
    judgement = judge([node_listed_twice], nodes)
    assert judgement.findings == [
        Finding(
            "NC101", "node-listed-twice", Severity.WARNING, ("a",), "a is listed twice",
            ("a: my nodes.txt:3, my nodes.txt:9",), "sed -i 9d 'my nodes.txt'", where="here", summary="listed twice",
        ),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.FAILED, Outcome.PASSED]


def test_nodes_that_are_listed_equally_often_are_told_in_one_finding() -> None:
    nodes = listed(n1=("n:1", "n:2", "n:3"), n2=("n:4", "n:5", "n:6"))
    judgement = judge([node_listed_twice], nodes)
    assert [(f.nodes, f.message, f.fix) for f in judgement.findings] == [
        (("n1", "n2"), "n[1-2] are each listed 3 times", "sed -i '2d;3d;5d;6d' n")
    ]


def test_a_list_of_one_line_a_slot_is_cut_to_one_line_a_node() -> None:
    nodes = listed(n1=tuple(f"n:{line}" for line in range(1, 17)))
    assert [f.fix for f in judge([node_listed_twice], nodes).findings] == ["awk '!seen[$1]++' n > once.txt"]


def test_a_list_that_is_no_file_is_written_anew() -> None:
    for places in (("-H", "-H"), ("standard input:1", "standard input:2")):
        findings = judge([node_listed_twice], listed(n1=places, n2=places)).findings
        assert [finding.fix for finding in findings] == ["ncheck -H 'n[1-2]'"]


def test_nodes_that_are_listed_once_are_fine_on_one_line_and_on_many() -> None:
    judgement = judge([node_listed_twice], listed(n1=("n:1",), n2=("n:1",), n3=("n:2",)))
    assert judgement.findings == []
    assert {verdict.outcome for verdict in judgement.verdicts} == {Outcome.PASSED}
