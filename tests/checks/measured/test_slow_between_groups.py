"""NC736: what is slow between groups of nodes is named by both sides, and no node is blamed for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.probe.facts import SLURM, GroupFacts, ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS, hardware_of
from ncheck.probe.measurements import measured
from ncheck.probe.node_result import Carried, Method, NodeResult, Skipped, Stage, Step
from ncheck.probe.slow_nodes import search_slow
from ncheck.steps.judge import judge
from ncheck_checks.measured.all_reduce_failed import all_reduce_failed
from ncheck_checks.measured.link_slow import link_slow
from ncheck_checks.measured.node_slow import node_slow
from ncheck_checks.measured.scaling_poor import scaling_poor
from ncheck_checks.measured.slow_between_groups import slow_between_groups

from .bandwidths import GIB, board
from .test_node_slow import RINGS, result

RAILS = tuple(f"mlx5_{index}:1" for index in range(8))
CHECKS = [slow_between_groups, node_slow, link_slow]
NAMES = tuple(f"n{number}" for number in range(1, 9))
LEAVES = {"leaf1": NAMES[:4], "leaf2": NAMES[4:]}
THREE = {"a": NAMES[:3], "b": NAMES[3:6], "c": NAMES[6:]}


class Cluster:
    """Eight nodes, of which it is known what sets of them reach; they are measured as the search asks."""

    def __init__(self, groups: Mapping[str, tuple[str, ...]], method: Method = Method.NCCL) -> None:
        self.groups, self.method = groups, method
        self.results: dict[str, list[NodeResult]] = {name: [] for name in NAMES}
        self.skipped: tuple[Skipped, ...] = ()
        self.rounds: Iterator[int] = count(10)

    def step(self, stage: Stage, group: tuple[str, ...], ranks: int, number: int) -> Step:
        return Step(number, stage, self.method, group, (ranks,) * len(group), (GIB,))

    def measure(self, stage: Stage, group: tuple[str, ...], ranks: int, busbw: float, number: int = 0) -> None:
        part = result(
            self.step(stage, group, ranks, number or next(self.rounds)), busbw, planned=RAILS, version="2.23.4"
        )
        for name in group:
            self.results[name].append(part)

    @property
    def facts(self) -> dict[str, Facts]:
        named = {NAMES[0]: GroupFacts(self.groups, SLURM)} if self.groups else {}
        hardware = dict.fromkeys(HARDWARE_FACTS) if self.method.on_cpus else board()
        return {
            name: {
                **hardware,
                ProbeFacts: ProbeFacts(tuple(self.results[name]), self.skipped),
                GroupFacts: named.get(name),
            }
            for name in NAMES
        }

    def pairs(self, slow: Mapping[tuple[str, str], float], busbw: float) -> None:
        for one, other, number in (*RINGS[8], *((*pair, number) for number, pair in enumerate(slow, 4))):
            self.measure(Stage.PAIR, (one, other), 1, busbw * slow.get((one, other), 1.0), number)

    def search(self, reached: Mapping[tuple[str, ...], float], usual: float, ranks: int) -> None:
        """Measure what the search wants to its end; a set that holds one of `reached` gets so much."""
        while wanted := self.wanted():
            for group in wanted:
                low = [share for nodes, share in reached.items() if set(nodes) <= set(group)]
                self.measure(Stage.BOUNDARY, group, ranks, usual * min([1.0, *low]))

    def wanted(self) -> tuple[tuple[str, ...], ...]:
        probed: Any = {name: own[ProbeFacts] for name, own in self.facts.items()}
        hardware = {name: hardware_of(own) for name, own in self.facts.items()}
        groups = search_slow(probed, hardware, [GroupFacts(self.groups, SLURM)] if self.groups else [])[0].groups
        return groups.wanted if groups else ()


def crossing(groups: Mapping[str, tuple[str, ...]], *sides: str) -> dict[tuple[str, ...], float]:
    """Return that all pairs across these two groups reach a third."""
    one, other = (groups[side] for side in sides)
    return {(first, second): 1 / 3 for first in one for second in other}


def large(groups: Mapping[str, tuple[str, ...]], reached: Mapping[tuple[str, ...], float]) -> Cluster:
    """Return nodes whose pairs are well, and all of them together are not."""
    cluster = Cluster(groups)
    cluster.pairs({}, 48.0)
    cluster.measure(Stage.SCALING, NAMES[:2], 8, 380.0)
    cluster.measure(Stage.ALL, NAMES, 8, 380.0 * min([1.0, *reached.values()]))
    cluster.search(reached, 380.0, 8)
    return cluster


def outcomes(cluster: Cluster) -> dict[str, set[Outcome]]:
    found = judge(CHECKS, cluster.facts)
    return {check.code: {one.outcome for one in found.verdicts if one.code == check.code} for check in CHECKS}


def test_a_slow_way_between_two_leaves_is_named_with_the_figures_of_both_and_no_node_is_blamed() -> None:
    assert judge(CHECKS, large(LEAVES, crossing(LEAVES, "leaf1", "leaf2")).facts).findings == [
        Finding("NC736", "slow-between-groups", Severity.WARNING, NAMES,
                "slow between leaf1 (n[1-4]) and leaf2 (n[5-8]): 127 GB/s across, 380 GB/s inside the groups, which "
                "are well by themselves: no node is at fault",
                ("across: n[1,5]: 127 GB/s", "inside: n[1-2]: 380 GB/s", "inside: n[5-8]: 380 GB/s",
                 "across: n[2,6]: 127 GB/s", "across: n[1-8]: 127 GB/s", "inside: n[1-4]: 380 GB/s",
                 "groups by Slurm's topology"),
                "sudo iblinkinfo", where="n1", kind="look", summary="slow between groups of nodes"),
    ]  # fmt: skip


def test_of_three_groups_the_one_behind_the_uplink_is_named_beside_the_two_others() -> None:
    reached = {**crossing(THREE, "a", "c"), **crossing(THREE, "b", "c")}
    (found,) = judge(CHECKS, large(THREE, reached).facts).findings
    assert found.message.startswith("slow between c (n[7-8]) and 2 groups (n[1-6]): 127 GB/s across, 380 GB/s inside")


def test_where_every_group_is_slow_with_each_other_one_all_are_named() -> None:
    reached = {**crossing(THREE, "a", "b"), **crossing(THREE, "a", "c"), **crossing(THREE, "b", "c")}
    (found,) = judge(CHECKS, large(THREE, reached).facts).findings
    assert found.message.startswith("slow between all 3 groups of nodes (n[1-8]): 127 GB/s across, 380 GB/s inside")


def test_a_slow_node_beside_a_boundary_is_in_none_of_its_figures() -> None:
    found = judge(CHECKS, large(LEAVES, {**crossing(LEAVES, "leaf1", "leaf2"), ("n6",): 0.5}).facts).findings
    assert [(one.code, len(one.nodes)) for one in found] == [("NC736", 8), ("NC710", 1)]
    assert "127 GB/s across, 380 GB/s inside the groups" in found[0].message
    assert not any("n6" in line or "n[5-8]" in line for line in found[0].evidence)


def test_a_node_that_only_groups_show_to_be_slow_is_named_by_its_own_check_and_no_boundary() -> None:
    (found,) = judge(CHECKS, large(LEAVES, {("n6",): 0.5}).facts).findings
    assert (found.code, found.nodes, found.fix) == ("NC710", ("n6",), "ncheck nodes.txt --mesh all --probe none")
    assert found.message == (
        "n6 is slow with nodes of its group that are well without it (n[5,7]), with all its ranks: 190 GB/s"
    )


def test_by_pairs_alone_the_boundary_takes_the_place_of_the_links_that_cross_it() -> None:
    cluster = Cluster(LEAVES, Method.TCP)
    cluster.pairs({("n4", "n5"): 0.2, ("n8", "n1"): 0.2}, 2.4)
    assert [one.code for one in judge(CHECKS, cluster.facts).findings] == ["NC711"]
    cluster.search(dict.fromkeys(crossing(LEAVES, "leaf1", "leaf2"), 0.2), 2.4, 1)
    (found,) = judge(CHECKS, cluster.facts).findings
    assert (found.code, found.nodes, found.fix) == ("NC736", NAMES, "tracepath -n n8")
    assert found.message.startswith("slow between leaf1 (n[1-4]) and leaf2 (n[5-8]): 480 MB/s across, 2.4 GB/s inside")


def test_two_slow_links_between_groups_that_are_otherwise_well_stay_two_links() -> None:
    cluster = Cluster(LEAVES, Method.TCP)
    cluster.pairs({("n4", "n5"): 0.2, ("n8", "n1"): 0.2}, 2.4)
    cluster.search({("n4", "n5"): 0.2, ("n8", "n1"): 0.2}, 2.4, 1)
    assert [one.code for one in judge(CHECKS, cluster.facts).findings] == ["NC711"]


def test_a_healthy_cluster_passes_and_is_asked_nothing_more() -> None:
    cluster = large(LEAVES, {})
    assert not any(one.step.stage is Stage.BOUNDARY for held in cluster.results.values() for one in held)
    assert outcomes(cluster) == {code: {Outcome.PASSED} for code in ("NC736", "NC710", "NC711")}


def cluster_without_tests() -> Cluster:
    cluster = Cluster(LEAVES)
    cluster.pairs({}, 48.0)
    cluster.measure(Stage.SCALING, NAMES[:2], 8, 380.0)
    cluster.measure(Stage.ALL, NAMES, 8, 120.0)
    return cluster


def test_what_could_not_be_searched_to_its_end_is_unknown_and_says_so() -> None:
    cluster = cluster_without_tests()
    cluster.skipped = (Skipped(cluster.step(Stage.BOUNDARY, NAMES[:4], 8, 99), "the time for the probe was over"),)
    (verdict, *_) = judge([slow_between_groups], cluster.facts).verdicts
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.reason == (
        "the search between groups of nodes did not end (the time for the probe was over): "
        "ncheck probe nodes.txt --probe-time 300"
    )
    assert {one.outcome for one in judge([all_reduce_failed], cluster.facts).verdicts} == {Outcome.PASSED}
    (never, *_) = judge([slow_between_groups], cluster_without_tests().facts).verdicts
    assert never.outcome is Outcome.SKIPPED, "as in a recording of a version that did not search"
    _, probe = measured(cluster.facts)
    assert probe.notes[0] == "not measured between groups of 4 nodes: the time for the probe was over"


def test_where_nobody_names_groups_and_neighbours_explain_nothing_it_says_what_would_help() -> None:
    (verdict, *_) = judge([slow_between_groups], large({}, crossing(LEAVES, "leaf1", "leaf2")).facts).verdicts
    assert verdict.outcome is Outcome.SKIPPED
    assert verdict.reason == (
        "slow together, and no node or group explains it (groups: neighbours in the list of nodes; name them by "
        "--groups)"
    )


def test_it_is_skipped_where_nothing_was_measured_between_nodes() -> None:
    assert outcomes(Cluster(LEAVES))["NC736"] == {Outcome.SKIPPED}


def test_the_rail_that_carried_nothing_is_what_to_look_at_on_a_node_that_only_groups_show() -> None:
    cluster = large(LEAVES, {("n6",): 0.5})
    carried = {rail: Carried(GIB, GIB) for rail in RAILS} | {"mlx5_3:1": Carried(0, 0)}
    cluster.results["n6"] = [replace(one, carried=carried) for one in cluster.results["n6"]]
    (found,) = judge(CHECKS, cluster.facts).findings
    assert (found.code, found.fix, found.where) == ("NC710", "sudo mlxlink -d mlx5_3 -p 1 -m -c", "n6")
    assert "mlx5_3:1 of n6 carried almost nothing, while its other rails did" in found.evidence


def test_three_groups_that_fast_pairs_connect_need_no_names_and_two_are_not_claimed() -> None:
    borders = {("n3", "n4"): 0.2, ("n6", "n7"): 0.2, ("n8", "n1"): 0.2}
    cluster = Cluster({}, Method.TCP)
    cluster.pairs(borders, 2.4)
    cluster.search({pair: 0.2 for names in ("ab", "ac", "bc") for pair in crossing(THREE, *names)}, 2.4, 1)
    (found,) = judge(CHECKS, cluster.facts).findings
    assert (found.code, found.message.partition(":")[0]) == ("NC736", "slow between all 3 groups of nodes (n[1-8])")

    cluster = Cluster({}, Method.TCP)
    cluster.pairs({("n4", "n5"): 0.2, ("n8", "n1"): 0.2}, 2.4)
    assert cluster.wanted() == ()
    assert [one.code for one in judge(CHECKS, cluster.facts).findings] == ["NC711"]


def test_a_shortfall_that_follows_from_it_refers_to_it() -> None:
    found = judge([*CHECKS, scaling_poor], large(LEAVES, crossing(LEAVES, "leaf1", "leaf2")).facts).findings
    assert {one.code: one.see[:1] for one in found} == {"NC736": (), "NC712": ("NC736",)}
