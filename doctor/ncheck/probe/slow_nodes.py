"""Problems about slow nodes and slow links: the node with its witnesses, or the link between two nodes.

Each operation has its own search. What several of them find is one problem; what one finds and another does not is
named as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from statistics import mean

from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import HERE, Inconclusive, NotApplicable, Problem, Said
from ncheck.probe.boundary import BadNode
from ncheck.probe.expected import expectation
from ncheck.probe.facts import GroupFacts, ProbeFacts
from ncheck.probe.gpu_test import SLOW_NODE
from ncheck.probe.group_search import GroupSearch, fell_short, parted, search_groups
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.node_result import NodeResult, Stage
from ncheck.probe.results import Collective, by_op, collectives
from ncheck.probe.search import BOUNDS, PairResult, SlowLink, SlowSearch, Suspect, searched
from ncheck.probe.shortfalls import FABRIC, busiest, by_infiniband, idle_rails, inside_share, observations, only_in
from ncheck.text import rates

_BARE = NodeHardware()
_MANY = 4  # slow links that get a problem each
TEST_ALL_LINKS = "ncheck nodes.txt --mesh all --probe none"


@dataclass(frozen=True)
class Measured:
    """What was measured of one operation, with the result of the search for slow nodes and links; and of that between
    groups of nodes, None where nodes did not fall short together.
    """

    probed: Mapping[str, ProbeFacts]
    hardware: Mapping[str, NodeHardware]
    ran: tuple[Collective, ...]
    search: SlowSearch
    groups: GroupSearch | None = None

    def results(self, node: str) -> tuple[NodeResult, ...]:
        """Return all results of a node."""
        facts = self.probed.get(node)
        return tuple(one for one in facts.results if one.step.op is self.search.op) if facts else ()

    def clears(self, nodes: Sequence[str], links: Sequence[tuple[str, str]]) -> bool:
        """Return whether all these nodes are fast here, and these links were measured and are fast, too."""
        fast = {frozenset(one.nodes) for one in self.search.meetings if one.fast}
        return set(nodes) <= set(self.search.fast) and fast.issuperset(map(frozenset, links))


def search_slow(
    probed: Mapping[str, ProbeFacts], hardware: Mapping[str, NodeHardware], named: Iterable[GroupFacts] = ()
) -> tuple[Measured, ...]:
    """Search the measured pairs of each operation for slow nodes and links; for groups, what was measured after those
    of the first one. There is one search at least.
    """
    expect, named = expectation(hardware), tuple(named)
    every = [Measured(probed, hardware, own, searched(own, expect)) for own in by_op(collectives(probed)).values()] or [
        Measured(probed, hardware, (), SlowSearch())
    ]
    if fell_short(every[0].ran, every[0].search, expect, named=bool(named)):
        every[0] = replace(every[0], groups=search_groups(probed, hardware, named))
    return tuple(one for one in every if one.search.meetings or one.groups) or (every[0],)


def slow_nodes(seen: Sequence[Measured], *, on_cpus: bool) -> Iterator[Said]:
    """Yield the slow nodes. `on_cpus` selects pairs that were measured without GPUs, for a check of their own."""
    reasons = [_not_applicable(one, on_cpus=on_cpus) for one in seen]
    judged = [one for one, reason in zip(seen, reasons, strict=True) if not reason]
    if not judged:
        yield NotApplicable(reasons[0])
    yield from _of_each(judged, lambda one: _slow_nodes(one, on_cpus=on_cpus))


def slow_links(seen: Sequence[Measured]) -> Iterator[Said]:
    """Yield the slow links between nodes that are fast with others."""
    if not seen[0].search.meetings:
        yield NotApplicable("no pair of nodes was measured")
    else:
        yield from _of_each(seen, _slow_links)


def _of_each(seen: Sequence[Measured], judge: Callable[[Measured], Iterator[Said]]) -> Iterator[Said]:
    """Yield what is found in each operation, once what several of them show on the same nodes."""
    same: dict[tuple[tuple[str, ...], str], list[tuple[Measured, Problem]]] = {}
    for one in seen:
        for said in judge(one):
            if isinstance(said, Problem):
                same.setdefault((said.nodes, said.summary), []).append((one, said))
            else:
                yield said if len(seen) == 1 else replace(said, reason=f"{one.search.op.value}: {said.reason}")
    for found in same.values():
        yield _joined(found, seen) if len(seen) > 1 else found[0][1]


def _joined(found: Sequence[tuple[Measured, Problem]], seen: Sequence[Measured]) -> Problem:
    """Return one problem for what these operations show, and say which others do not show it."""
    slow, first = [one.search.op for one, _ in found], found[0][1]
    links = [link.nodes for one, _ in found for link in one.search.links if set(link.nodes) <= set(first.nodes)]
    fine = [one.search.op for one in seen if one.search.op not in slow and one.clears(first.nodes, links)]
    also = "".join(f"; {one.search.op.value}: {problem.message}" for one, problem in found[1:])
    evidence = tuple(f"{one.search.op.value}, {line}" for one, problem in found for line in problem.evidence)
    message = f"{slow[0].value}: {first.message}{also}{only_in(slow, fine, 'between the same nodes')}"
    return replace(first, message=message, evidence=evidence)


def _slow_nodes(seen: Measured, *, on_cpus: bool) -> Iterator[Said]:
    search = seen.search
    if search.together:
        yield _group(seen)
    else:
        yield from (_node(seen, suspect) for suspect in search.slow)
    if seen.groups and not on_cpus:
        yield from (_among_its_group(seen, seen.groups, bad) for bad in seen.groups.found.nodes)
    if search.accused:
        once = "slow with its partners, and there was no time to measure it once more: a busy machine may be the reason"
        yield NotApplicable(once, tuple(suspect.node for suspect in search.accused))
    if search.unresolved and not on_cpus:
        nodes = tuple(suspect.node for suspect in search.unresolved)
        yield Inconclusive(
            "slow or failed with every partner, but not surely: too few partners are fast with others, or results vary",
            nodes,
        )


def _slow_links(seen: Measured) -> Iterator[Said]:
    links = tuple(link for link in seen.search.links if not (seen.groups and seen.groups.crosses(link.nodes)))
    if len(links) == len(seen.search.links) and len(groups := parted(seen.search)) == 2:  # noqa: PLR2004  two sides
        yield _crossing(seen, *(tuple(sorted(group)) for group in groups))
    elif len(links) > _MANY:
        named = tuple(dict.fromkeys(node for link in links for node in link.nodes))
        message = f"{len(links)} links between nodes that are fast with others are slow: {_pairs(links)}"
        yield _slow_link(message, seen, links, named)
    else:
        yield from (_link(seen, link) for link in links)


def _not_applicable(seen: Measured, *, on_cpus: bool) -> str:
    search = seen.search
    if not search.meetings:
        return "no pair of nodes was measured"
    if search.method.on_cpus != on_cpus:
        return "the pairs were measured on GPUs" if on_cpus else f"the pairs were measured by {search.method.value}"
    nodes = {node for meeting in search.meetings for node in meeting.nodes}
    if len(nodes) == 2 and not search.expected:  # noqa: PLR2004  a pair
        return "there is no third node to compare with"
    return ""


def _node(seen: Measured, suspect: Suspect) -> Problem:
    partners = fold(suspect.partners)
    if suspect.failed:
        message = f"{suspect.node} fails with every partner ({partners})"
    else:
        message = f"{suspect.node} is slow with every partner{_by(seen, suspect)}: {_figures(suspect.meetings)}"
    evidence = (*map(_line, suspect.meetings), *_where(seen, suspect.node))
    fix = TEST_ALL_LINKS if suspect.failed else _node_fix(seen, suspect.node)
    brief = "fails with every partner" if suspect.failed else "slow with every partner"
    looked = _looked(f"{message}; {_fast_with_others(suspect.witnesses)}", fix, evidence, (suspect.node,), brief)
    return looked if suspect.failed or seen.search.method.on_cpus else replace(looked, follows=SLOW_NODE)


def _among_its_group(seen: Measured, groups: GroupSearch, bad: BadNode) -> Problem:
    """Return the problem of a node whose pairs are well: they use one rank, and so one of its NICs."""
    tests = {nodes: reached for nodes, reached in groups.reached.items() if {*bad.witnesses, bad.node} >= nodes}
    lines = [f"{fold(nodes)}: {', '.join(rates([one]) for one in reached)}" for nodes, reached in tests.items()]
    figures = rates(mean(reached) for nodes, reached in tests.items() if bad.node in nodes)
    off = f", without NVLink between nodes ({groups.off}=0)" if groups.off else ""
    message = (
        f"{bad.node} is slow with nodes of its group that are well without it ({fold(bad.witnesses)}), with all its "
        f"ranks{off}: {figures}"
    )
    evidence = (*lines, *_where(seen, bad.node))
    return _looked(message, _node_fix(seen, bad.node), evidence, (bad.node,), "slow with others of its group")


def _looked(message: str, fix: str, evidence: tuple[str, ...], nodes: tuple[str, ...], brief: str) -> Problem:
    """Return a problem whose fix shows more: tests of all links are started here, others typed on the first node."""
    where = HERE if fix == TEST_ALL_LINKS else nodes[0]
    return Problem(message, fix, evidence, nodes, where=where, look=True, summary=brief)


def _fast_with_others(nodes: Sequence[str]) -> str:
    return f"{fold(nodes)} {'is' if len(nodes) == 1 else 'are'} fast with other nodes"


def _group(seen: Measured) -> Problem:
    """Return one problem for many slow nodes: something that they share is the likely cause."""
    nodes = tuple(suspect.node for suspect in seen.search.slow)
    count = len(nodes) + len(seen.search.fast) + len(seen.search.unresolved)
    meetings = tuple(dict.fromkeys(meeting for suspect in seen.search.slow for meeting in suspect.meetings))
    message = (
        f"{len(nodes)} of {count} nodes ({fold(nodes)}) are slow with the others, which are fast with each other: "
        "first check what the slow nodes share, such as a switch, a cable run or a setting"
    )
    return _looked(message, _node_fix(seen, nodes[0]), tuple(map(_line, meetings)), nodes, "slow with the others")


def _link(seen: Measured, link: SlowLink) -> Problem:
    one, other = link.nodes
    message = f"the link between {one} and {other} is slow: {_figures(link.meetings)}; both are fast with other nodes"
    if all(meeting.busbw is None for meeting in link.meetings):
        message = f"every test between {one} and {other} fails; both are fast with other nodes"
    return _slow_link(message, seen, (link,), link.nodes)


def _slow_link(message: str, seen: Measured, links: Sequence[SlowLink], nodes: tuple[str, ...]) -> Problem:
    fix, evidence = _link_fix(seen, links[0]), _lines(seen.search, links)
    return _looked(message, fix, evidence, nodes, "slow link" if len(links) == 1 else "slow links")


def _crossing(seen: Measured, one: tuple[str, ...], other: tuple[str, ...]) -> Problem:
    links = seen.search.links
    message = (
        f"the links between {fold(one)} and {fold(other)} are slow, but not those inside each of the two groups: "
        f"{_figures([meeting for link in links for meeting in link.meetings])}"
    )
    named = tuple(dict.fromkeys(node for link in links for node in link.nodes))
    return _slow_link(message, seen, links, named)


def _figures(meetings: Sequence[PairResult]) -> str:
    """Return what was measured and what is usual: "11.9 to 12.1 GB/s of 24 usual (0.50)"."""
    reached = [one for one in meetings if one.busbw is not None and one.usual]
    if not reached:
        return "all tests failed"
    usual = max(one.usual or 0.0 for one in reached)
    best = max(one.share or 0.0 for one in reached)
    return f"{rates((one.busbw or 0.0 for one in reached), of=usual)} usual ({best:.2f})"


def _line(meeting: PairResult) -> str:
    reached = "failed" if meeting.busbw is None else rates([meeting.busbw])
    share = f", {meeting.share:.2f} of the usual" if meeting.share is not None else ""
    return f"round {meeting.round}: {meeting.nodes[0]} with {meeting.nodes[1]}: {reached}{share}"


def _lines(search: SlowSearch, links: Sequence[SlowLink]) -> tuple[str, ...]:
    """Return the slow measurements, and the fast ones that clear the nodes at both ends."""
    ends = {node for link in links for node in link.nodes}
    slow = [meeting for link in links for meeting in link.meetings]
    clear = [meeting for meeting in search.meetings if meeting.fast and ends.intersection(meeting.nodes)]
    return tuple(map(_line, (*slow, *clear)))


def _pairs(links: Sequence[SlowLink]) -> str:
    return ", ".join(f"{one} with {other}" for one, other in (link.nodes for link in links))


def _by(seen: Measured, suspect: Suspect) -> str:
    devices = _devices(seen, suspect.node)
    return f" through {devices[0]}" if len(devices) == 1 else ""


def _devices(seen: Measured, node: str) -> tuple[str, ...]:
    """Return the HCA ports or interfaces that carried a node's data in its pairs, one in each."""
    results = (result for result in seen.results(node) if result.step.stage is Stage.PAIR)
    return tuple(dict.fromkeys(device for result in results if (device := busiest(result))))


def _where(seen: Measured, node: str) -> Iterator[str]:
    """Yield where in the node to look, its GPUs or its network, and what the run shows there."""
    share = inside_share(node, seen.ran, seen.hardware)
    if share is not None and share < BOUNDS.slow:
        yield f"inside {node} the GPUs reach {share:.2f} of what they should: they are slow without the network, too"
    elif share is not None:
        yield f"inside {node} the GPUs reach {share:.2f} of what they should: check its network"
    yield from (one.text for one in observations(node, seen.hardware.get(node, _BARE), seen.results(node)))


def _node_fix(seen: Measured, node: str) -> str:
    share = inside_share(node, seen.ran, seen.hardware)
    if share is not None and share < BOUNDS.slow:
        return "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE"
    if idle := idle_rails(seen.results(node)):
        return _cable(idle[0])
    device = next(iter(_devices(seen, node)), "")
    if ":" in device:
        return _cable(device)
    return f"sudo ethtool -S {quote(device)}" if device else TEST_ALL_LINKS


def _cable(device: str) -> str:
    hca, _, port = device.partition(":")
    return f"sudo mlxlink -d {quote(hca)} -p {quote(port)} -m -c"


def _link_fix(seen: Measured, link: SlowLink) -> str:
    one, other = link.nodes
    results = [result for result in seen.results(one) if result.step.group in (link.nodes, link.nodes[::-1])]
    fabric = any(by_infiniband(result, seen.hardware.get(one, _BARE)) for result in results)
    return FABRIC if fabric else f"tracepath -n {quote(other)}"
