"""The search between groups of nodes, with what the probe measured: whether it is needed, what is next, what it shows.

It goes the same way in the steps of a probe, which measure what it wants, and in the checks, which tell what it found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from ncheck.lazy_dataclass import dataclass
from ncheck.model.report import LEAST_KEPT
from ncheck.probe.boundary import (
    BY_LINKS,
    FEW,
    LEAST_GUESSED,
    OVER_SOCKETS,
    Found,
    Limits,
    as_shares,
    blocks,
    find,
    find_by_pairs,
)
from ncheck.probe.expected import expectation
from ncheck.probe.facts import GroupFacts, Groups, ProbeFacts
from ncheck.probe.links.domains import domain_of
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.node_result import Stage
from ncheck.probe.results import Collective, by_op, collectives, failure_report, group_tests
from ncheck.probe.search import Expect, SlowSearch, over_sockets, searched
from ncheck.probe.shortfalls import scaled

NO_NVLINK = "NCCL_MNNVL_ENABLE"  # what is 0 where NCCL is to use no NVLink between nodes
DOMAINS, NEIGHBOURS = "NVLink domains", "neighbours in the list of nodes"
_MOST_TRIES = 6  # of one set of nodes, of which some came to no result

# What sets of nodes reached each time, in GB/s, 0 where it hung.
Reached = Mapping[frozenset[str], Sequence[float]]


@dataclass(frozen=True)
class Grouping:
    """The groups of the nodes that are searched, and `source`: who names them. `guessed`: nobody does."""

    groups: Groups
    source: str
    guessed: bool = False


@dataclass(frozen=True)
class GroupSearch:
    """How far the search is. `by_pairs`: only pairs can be measured. `reached`: what sets of nodes reached. `off`: as
    Step has it. `stopped`: why it ended before its end, "" if it did not.
    """

    grouping: Grouping
    found: Found
    reached: Reached
    by_pairs: bool = False
    off: str = ""
    stopped: str = ""

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """The sets to measure next, all at once."""
        return () if self.stopped else self.found.wanted

    def crosses(self, nodes: Collection[str]) -> bool:
        """Return whether a boundary that was found lies between these nodes."""
        return any(one.crossed_by(nodes, self.grouping.groups) for one in self.found.boundaries)


def fell_short(ran: Sequence[Collective], pairs: SlowSearch, expect: Expect, *, named: bool) -> bool:
    """Return whether nodes are slow together, or hang, and pairs do not show why: only then anything is searched.

    Where only pairs can be measured it is searched if links are slow, and groups are `named` or the links part the
    nodes: a single slow link may be a busy machine.
    """
    if pairs.method.on_cpus:
        return bool(pairs.links if named else parted(pairs))
    shown = {suspect.node for suspect in pairs.slow}  # by pairs: that all are slow together with it is explained
    return _slow_together([one for one in ran if shown.isdisjoint(one.step.group)], pairs, expect)


def _ran(probed: Mapping[str, ProbeFacts]) -> Sequence[Collective]:
    """Return the steps of the first operation: groups are searched by it."""
    return next(iter(by_op(collectives(probed)).values()), ())


def _slow_together(ran: Sequence[Collective], pairs: SlowSearch, expect: Expect) -> bool:
    """Return whether all nodes keep too little of what fewer reach, or hung although fewer did not.

    It is too little where the search would call it slow, and where pairs are not as far below their expectation.
    """
    together = [one for one in ran if one.step.method.by_nccl and one.step.stage in (Stage.SCALING, Stage.ALL)]
    if not together:
        return False
    if any(_hung(one) for one in together):
        return any(one.whole for one in ran if len(one.step.group) >= FEW)
    limits = _limits(together, expected=all(map(expect, together)))
    least, usual = min(LEAST_KEPT, limits.clear), pairs.usual if pairs.expected else None
    return any(
        one.efficiency is not None and one.efficiency < least
        and not (one.share is not None and usual and one.share >= least * usual)
        for one in scaled(ran, expect)
    )  # fmt: skip


def _limits(ran: Iterable[Collective], *, expected: bool) -> Limits:
    """Return from where on a set is slow: over sockets, a busy machine easily halves what nodes reach."""
    return OVER_SOCKETS if not expected and any(over_sockets(one.step) for one in ran) else BY_LINKS


def _hung(one: Collective) -> bool:
    """Return whether a step made no progress, and no node says why."""
    reports = [failure_report(node, one.results[node], failure) for node, failure in one.failures.items()]
    return any(report.hung for report in reports) and not any(report.names_cause for report in reports)


def search_groups(
    probed: Mapping[str, ProbeFacts], hardware: Mapping[str, NodeHardware], named: Iterable[GroupFacts]
) -> GroupSearch:
    """Return how far the search is, by what was measured so far, without the nodes that pairs show to be slow."""
    ran, tests, expect = _ran(probed), group_tests(probed), expectation(hardware)
    pairs = searched(ran, expect)
    bad = {suspect.node for suspect in (*pairs.slow, *pairs.unresolved)}
    if pairs.method.on_cpus:
        search = _by_pairs(pairs, tests, tuple(node for node in probed if node not in bad), tuple(named))
    else:
        search = _by_sets(ran, tests, bad, hardware, tuple(named))
    skipped = [one.why for facts in probed.values() for one in facts.skipped if one.step.stage is Stage.BOUNDARY]
    tried = Counter(frozenset(one.step.group) for one in tests)
    silent = [node for one in tests for node in one.silent]
    why = next(iter(skipped), "") or (f"{silent[0]} did not answer" if silent else "")
    if not why and any(tried[frozenset(nodes)] >= _MOST_TRIES for nodes in search.wanted):
        why = "its tests came to no result"
    return replace(search, stopped=why if search.found.wanted else "")


def _by_sets(
    ran: Sequence[Collective], tests: Sequence[Collective], bad: set[str],
    hardware: Mapping[str, NodeHardware], named: tuple[GroupFacts, ...],
) -> GroupSearch:  # fmt: skip
    large = [one for one in ran if one.step.method.by_nccl and one.step.stage in (Stage.SCALING, Stage.ALL)]
    whole = max(large, key=lambda one: len(one.step.group), default=None)
    nodes = tuple(node for node in (whole.step.group if whole else ()) if node not in bad)
    groups = grouping(named, hardware, nodes)
    sizes = {max(one.step.sizes, default=0) for one in tests}
    alike = [one for one in large if not sizes or max(one.step.sizes, default=0) in sizes]
    usual = [*alike, *(one for one in tests if not one.step.off)]
    search = _of(usual, groups, expectation(hardware))
    without = [one for one in tests if one.step.off]
    if search.found.wanted or search.found.explained or not _domains(nodes, hardware):
        return search
    return replace(_of(without, groups, lambda _: None), off=NO_NVLINK)


def _of(ran: Sequence[Collective], groups: Grouping, expect: Expect) -> GroupSearch:
    should = {one.step: expect(replace(one, step=replace(one.step, expect=None))) for one in ran}
    expected = bool(should) and all(should.values())
    reached: dict[frozenset[str], list[float]] = {}
    compared: dict[frozenset[str], list[float]] = {}
    among = frozenset(node for members in groups.groups.values() for node in members)
    for one in ran:
        nodes = frozenset(one.step.group)
        if among.issuperset(nodes) and (one.busbw is not None or _hung(one)):
            reached.setdefault(nodes, []).append(one.busbw or 0.0)
            compared.setdefault(nodes, []).append((one.busbw or 0.0) / ((expected and should[one.step]) or 1.0))
    shares = as_shares(compared, groups.groups, expected=expected)
    limits = _limits(ran, expected=expected)
    # A tree between two nodes carries more than one between more: without an expectation the two cannot be compared.
    found = find(groups.groups, shares, limits, guessed=groups.guessed, least=FEW if expected else FEW + 1)
    return GroupSearch(groups, found, reached)


def _by_pairs(
    pairs: SlowSearch, tests: Sequence[Collective], nodes: tuple[str, ...], named: tuple[GroupFacts, ...]
) -> GroupSearch:
    """Search by pairs alone. Where nobody names groups, nodes that are fast with one another are one."""
    groups = grouping(named, {}, nodes)
    if groups.guessed:
        groups = replace(groups, groups={min(group): tuple(sorted(group)) for group in connected(pairs)})
    usual = median([meeting.usual for meeting in pairs.meetings if meeting.usual] or [1.0])
    measured: list[tuple[tuple[str, ...], float | None, float | None]] = [
        (meeting.nodes, meeting.busbw, meeting.share) for meeting in pairs.meetings
    ]
    measured += [(one.step.group, one.busbw, (one.busbw or 0.0) / usual) for one in tests if one.busbw or _hung(one)]
    owner = {node: name for name, members in groups.groups.items() for node in members}
    reached: dict[frozenset[str], list[float]] = {}
    shares: dict[frozenset[str], list[float]] = {}
    for pair, busbw, share in measured:
        if owner.keys() >= set(pair):
            reached.setdefault(frozenset(pair), []).append(busbw or 0.0)
            shares.setdefault(frozenset(pair), []).append(share or 0.0)
    ends = [(owner.get(one, ""), owner.get(other, "")) for one, other in (link.nodes for link in pairs.links)]
    suspects = [(one, other) for one, other in dict.fromkeys(ends) if one and other and one != other]
    few = groups.guessed and len(groups.groups) < LEAST_GUESSED
    found = Found(unsure=True) if few or not suspects else find_by_pairs(groups.groups, suspects, shares)
    return GroupSearch(groups, found, reached, by_pairs=True)


def connected(pairs: SlowSearch) -> list[set[str]]:
    """Return the groups of nodes that fast pairs connect."""
    groups: list[set[str]] = []
    for meeting in pairs.meetings:
        if meeting.fast:
            touched = [group for group in groups if group.intersection(meeting.nodes)]
            groups = [group for group in groups if group not in touched]
            groups.append(set(meeting.nodes).union(*touched))
    return groups


def parted(pairs: SlowSearch) -> list[set[str]]:
    """Return the groups of nodes that fast pairs connect, if two slow links or more all lie between them."""
    groups = connected(pairs)
    inside = any(group.issuperset(link.nodes) for link in pairs.links for group in groups)
    return [] if inside or len(pairs.links) < FEW else groups


# Which groups count


def grouping(named: Iterable[GroupFacts], hardware: Mapping[str, NodeHardware], nodes: tuple[str, ...]) -> Grouping:
    """Return the groups of these nodes, by the first that knows two of them or more."""
    for facts in named:
        if len(groups := _among(facts.groups, nodes)) >= FEW:
            return Grouping(groups, facts.source)
    if len(domains := _domains(nodes, hardware)) >= FEW:
        return Grouping(domains, DOMAINS)
    return Grouping(blocks(nodes), NEIGHBOURS, guessed=True)


def _domains(nodes: tuple[str, ...], hardware: Mapping[str, NodeHardware]) -> Groups:
    """Return the NVLink domains that nodes share; none where a node has none, or where no two share one."""
    domains: dict[object, list[str]] = {}
    for node in nodes:
        domains.setdefault(domain_of(hardware.get(node, NodeHardware())), []).append(node)
    shared = None not in domains and len(domains) < len(nodes)
    return {f"NVLink domain of {of[0]}": tuple(of) for of in domains.values()} if shared else {}


def _among(groups: Groups, nodes: tuple[str, ...]) -> Groups:
    """Return what these groups have of these nodes. Slurm may know a node by its short name; the first group counts."""
    owner: dict[str, str] = {}
    for name, members in groups.items():
        for node in members:
            owner.setdefault(node, name)
    found: dict[str, list[str]] = {}
    for node in nodes:
        if name := owner.get(node) or owner.get(node.partition(".")[0], ""):
            found.setdefault(name, []).append(node)
    return {name: tuple(found[name]) for name in groups if name in found}
