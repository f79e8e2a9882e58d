"""NC702: sums that are not what they should be."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Row
from ncheck.steps.judge import judge
from ncheck_checks.measured.all_reduce_wrong import all_reduce_wrong

from .results import MIB, both, probed, rows, step, well


def wrong(result: NodeResult, count: int = 3) -> NodeResult:
    """Return the part with so many wrong elements at its largest size."""
    first, last = rows()
    return replace(result, rows=(first, replace(last, wrong=count)))


def found(nodes: dict[str, Facts]) -> list[Finding]:
    return judge([all_reduce_wrong], nodes).findings


def test_nodes_sizes_and_the_number_of_elements_are_told() -> None:
    one = step(1, "n1", "n2")
    assert found(probed(n1=wrong(well(one)), n2=wrong(well(one), 5))) == [
        Finding("NC702", "all-reduce-wrong", Severity.ERROR, ("n1", "n2"),
                "wrong all-reduce results on n[1-2]: 8 elements in total, at sizes of 67108864 bytes",
                ("n1 with n2: 3 wrong elements in 67108864 bytes, out of place",
                 "n2 with n1: 5 wrong elements in 67108864 bytes, out of place"),
                "nvidia-smi -q -d ECC,ROW_REMAPPER", kind="look", summary="all-reduce gives wrong results"),
    ]  # fmt: skip


def test_the_node_that_is_wrong_by_itself_is_named_and_not_those_that_it_met() -> None:
    inside, pair = step(1, "n1"), step(2, "n1", "n2")
    (finding,) = found(probed(n1=(wrong(well(inside)), wrong(well(pair))), n2=wrong(well(pair))))
    assert finding.nodes == ("n1",)


def test_a_node_that_was_right_with_another_partner_is_not_named() -> None:
    bad, good = step(1, "n1", "n2"), step(2, "n2", "n3")
    (finding,) = found(probed(n1=wrong(well(bad)), n2=(wrong(well(bad)), well(good)), n3=well(good)))
    assert finding.nodes == ("n1",)


def test_on_cpus_nobody_is_sent_to_the_gpus() -> None:
    one = step(1, "n1", "n2", method=Method.GLOO)
    (finding,) = found(probed(n1=wrong(well(one)), n2=well(one)))
    assert finding.fix == "sudo journalctl -k -g 'mce|EDAC'"


def test_it_is_silent_where_all_is_right_and_where_nothing_was_verified() -> None:
    one = step(1, "n1", "n2")
    unverified = replace(well(one), rows=(Row(MIB, in_place=False, seconds=0.1, fastest=0.1, slowest=0.1),))
    assert found(probed(n1=well(one), n2=unverified)) == []
    none: dict[str, Facts] = {"n1": {ProbeFacts: Absent("--probe none")}}
    assert [one.outcome for one in judge([all_reduce_wrong], none).verdicts] == [Outcome.SKIPPED]


def test_operations_that_are_wrong_on_the_same_nodes_are_one_finding_and_on_others_two() -> None:
    sums, parts = step(1, "n1", "n2"), step(2, "n1", "n2", op=Op.ALL_GATHER)
    first = probed(n1=wrong(well(sums)), n2=well(sums))
    (same,) = found(both(first, probed(n1=wrong(well(parts), 4), n2=well(parts))))
    assert (same.nodes, same.message, same.evidence, same.summary) == (
        ("n1",),
        "wrong all-reduce and all-gather results on n1: 7 elements in total, at sizes of 67108864 bytes",
        ("n1 with n2: 3 wrong elements in 67108864 bytes, out of place",
         "n1 with n2, all-gather: 4 wrong elements in 67108864 bytes, out of place"),
        "all-reduce and all-gather give wrong results",
    )  # fmt: skip
    other = found(both(first, probed(n1=well(parts), n2=wrong(well(parts), 4))))
    assert [(one.nodes, one.message.partition(" on ")[0]) for one in other] == [
        (("n1",), "wrong all-reduce results"), (("n2",), "wrong all-gather results"),
    ]  # fmt: skip
