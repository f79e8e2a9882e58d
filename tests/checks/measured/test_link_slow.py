"""NC711: a way is blamed where both of its ends are fast with others, each time that they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Stage, Step
from ncheck.steps.judge import judge
from ncheck_checks.measured.link_slow import link_slow

from .results import both, of
from .test_node_slow import GIB, RINGS, cluster, facts, result

Met = tuple[str, str, int]


def met(
    count: int, slow: Mapping[tuple[str, str], float | None], again: Sequence[Met] = (), *, op: Op = Op.ALL_REDUCE
) -> dict[str, Facts]:
    results: dict[str, list[NodeResult]] = {f"n{number + 1}": [] for number in range(count)}
    for one, other, number in (*RINGS[count], *again):
        share = slow.get((one, other), 1.0)
        step = Step(number, Stage.PAIR, Method.NCCL, (one, other), (1, 1), (GIB,), op=op)
        part = result(step, share and 24.0 * share)
        results[one].append(part)
        results[other].append(part)
    return {node: facts(ProbeFacts(tuple(held))) for node, held in results.items()}


def test_a_way_that_is_slow_each_time_is_named_with_both_of_its_ends() -> None:
    assert judge([link_slow], met(4, {("n1", "n2"): 0.5}, [("n1", "n2", 3)])).findings == [
        Finding("NC711", "link-slow", Severity.WARNING, ("n1", "n2"),
                "the link between n1 and n2 is slow: 12 GB/s of 24 usual (0.50); both are fast with other nodes",
                ("round 1: n1 with n2: 12 GB/s, 0.50 of the usual",
                 "round 3: n1 with n2: 12 GB/s, 0.50 of the usual",
                 "round 2: n2 with n3: 24 GB/s, 1.00 of the usual",
                 "round 2: n4 with n1: 24 GB/s, 1.00 of the usual"),
                "tracepath -n n2", where="n1", kind="look", summary="slow link"),
    ]  # fmt: skip


def test_a_way_that_fails_each_time_is_named() -> None:
    found = judge([link_slow], met(4, {("n1", "n2"): None}, [("n1", "n2", 3)])).findings
    assert [one.message for one in found] == [
        "every test between n1 and n2 fails; both are fast with other nodes"
    ]  # fmt: skip


def test_ways_between_two_groups_are_one_finding() -> None:
    again = [("n4", "n5", 4), ("n8", "n1", 4)]
    drivers: dict[tuple[str, str], float | None] = {("n4", "n5"): 0.4, ("n8", "n1"): 0.5}
    found = judge([link_slow], met(8, drivers, again)).findings
    assert [one.nodes for one in found] == [("n4", "n5", "n8", "n1")]
    assert found[0].message == (
        "the links between n[1-4] and n[5-8] are slow, but not those inside each of the two groups: 9.6 to 12 GB/s of "
        "24 usual (0.50)"
    )


def test_slow_ways_that_are_not_all_between_two_groups_do_not_part_them() -> None:
    """What parts n[1-6] from n[7-8] are two ways; two more are slow among n[1-6]."""
    slow: dict[tuple[str, str], float | None] = dict.fromkeys(
        [("n2", "n3"), ("n6", "n7"), ("n8", "n1"), ("n4", "n5")], 0.5
    )
    again = [(*pair, number) for number in (3, 4) for pair in slow] + [("n1", "n3", 3), ("n4", "n6", 4)]
    found = judge([link_slow], met(8, slow, again)).findings
    assert all("two groups" not in one.message for one in found)
    assert sorted(one.nodes for one in found) == [("n2", "n3"), ("n4", "n5"), ("n6", "n7"), ("n8", "n1")]


def test_it_is_silent_about_a_way_that_was_slow_once() -> None:
    for again in ([], [("n2", "n1", 3)]):
        judgement = judge([link_slow], met(4, {("n1", "n2"): 0.5}, again))
        assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED] * 4


def test_it_is_silent_about_the_ways_of_a_slow_node() -> None:
    assert judge([link_slow], cluster(4, {"n2": 0.5})).findings == []


def test_it_is_skipped_where_no_pair_was_measured() -> None:
    judgement = judge([link_slow], {"n1": facts(ProbeFacts(())), "n2": facts(ProbeFacts(()))})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED] * 2


def test_a_way_that_is_slow_in_one_operation_alone_is_named_as_such_and_in_both_once() -> None:
    slow: dict[tuple[str, str], float | None] = {("n1", "n2"): 0.5}
    again = [("n1", "n2", 3)]
    link = "the link between n1 and n2 is slow: 12 GB/s of 24 usual (0.50); both are fast with other nodes"
    alone = both(met(4, {}, again), met(4, slow, again, op=Op.ALL_TO_ALL))
    assert [one.message for one in judge([link_slow], alone).findings] == [
        f"all-to-all: {link}; only all-to-all shows it: all-reduce between the same nodes is fine"
    ]  # fmt: skip
    everywhere = both(met(4, slow, again), met(4, slow, again, op=Op.ALL_TO_ALL))
    assert [one.message for one in judge([link_slow], everywhere).findings] == [
        f"all-reduce: {link}; all-to-all: {link}"
    ]  # fmt: skip
    assert judge([link_slow], both(met(4, {}, again), met(4, {}, again, op=Op.ALL_TO_ALL))).findings == []


def test_an_operation_in_which_the_two_never_met_says_nothing_of_their_way() -> None:
    slow = met(4, {("n2", "n3"): 0.5}, [("n2", "n3", 3)])
    once: dict[str, Facts] = {
        node: {ProbeFacts: ProbeFacts(of(own)[:1])} for node, own in met(4, {}, op=Op.ALL_TO_ALL).items()
    }
    (finding,) = judge([link_slow], both(slow, once)).findings
    assert finding.message == (
        "all-reduce: the link between n2 and n3 is slow: 12 GB/s of 24 usual (0.50); both are fast with other nodes"
    )
