"""NC101: a host that stands in the list more than once."""

from __future__ import annotations

from checks.ssh.node_listed_twice import node_listed_twice
from doctor.engine import Facts, judge
from doctor.model.facts import ListingFacts
from doctor.model.finding import Finding, Outcome, Severity


def test_a_node_on_two_lines_is_told_with_its_places_and_how_to_take_the_later_one_out() -> None:
    listed: dict[str, Facts] = {"a": {ListingFacts: ListingFacts(("my nodes.txt:3", "my nodes.txt:9"), 8)},
                                "b": {ListingFacts: ListingFacts(("my nodes.txt:4",), 8)}}  # fmt: skip
    judgement = judge([node_listed_twice], listed)
    assert judgement.findings == [
        Finding(
            "NC101", "node-listed-twice", Severity.WARNING, ("a",),
            "a is listed twice: my nodes.txt:3, my nodes.txt:9",
            ("my nodes.txt:3", "my nodes.txt:9"), "sed -i 9d 'my nodes.txt'",
        ),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.FAILED, Outcome.PASSED]


def test_three_lines_are_told_as_three() -> None:
    judgement = judge([node_listed_twice], {"a": {ListingFacts: ListingFacts(("n:1", "n:2", "n:3"))}})
    assert [(f.message, f.fix) for f in judgement.findings] == [
        ("a is listed 3 times: n:1, n:2, n:3", "sed -i '2d;3d' n")
    ]


def test_a_list_that_is_no_file_is_written_anew() -> None:
    for places in (("-H", "-H"), ("standard input:1", "standard input:2")):
        judgement = judge([node_listed_twice], {"a": {ListingFacts: ListingFacts(places)}})
        assert [finding.fix for finding in judgement.findings] == ["ncheck -H a"]


def test_nodes_that_are_listed_once_are_fine_on_one_line_and_on_many() -> None:
    listed: dict[str, Facts] = {name: {ListingFacts: ListingFacts(("n:1",))} for name in ("n1", "n2")}
    assert judge([node_listed_twice], listed).findings == []
