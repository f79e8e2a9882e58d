"""What the search found, in words: the node with its witnesses, and where in it to look; the way between two nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from ncheck.facts.probe import ProbeFacts, Stage, Turn
from ncheck.hostlist import fold
from ncheck.model.check import Inconclusive, NotApplicable, Problem
from ncheck.probe.collectives import Collective, collectives
from ncheck.probe.expected import expectation
from ncheck.probe.search import BOUNDS, Meeting, Search, SlowLink, Suspect, searched
from ncheck.probe.shortfalls import inside_share
from ncheck.probe.wires import FABRIC, busiest, by_infiniband, idle_rails, seen_of
from ncheck.topology.hardware import Hardware

_BARE = Hardware()


_MANY = 4  # slow ways that are told one by one


ALL_WAYS = "ncheck nodes.txt --mesh all --probe none"


@dataclass(frozen=True)
class Scene:
    """All that the pairs and the nodes by themselves told."""

    probed: Mapping[str, ProbeFacts]
    hardware: Mapping[str, Hardware]
    ran: tuple[Collective, ...]
    found: Search

    def turns(self, node: str) -> tuple[Turn, ...]:
        """Return a node's part in everything."""
        held = self.probed.get(node)
        return held.turns if held else ()


def scene(probed: Mapping[str, ProbeFacts], hardware: Mapping[str, Hardware]) -> Scene:
    """Return what was measured, with what the search makes of it."""
    ran = collectives(probed)
    return Scene(probed, hardware, ran, searched(ran, expectation(hardware)))


def slow_nodes(seen: Scene, *, on_cpus: bool) -> Iterator[Problem | Inconclusive | NotApplicable]:
    """Yield the nodes to blame; `on_cpus` asks for pairs measured without GPUs, which another check judges."""
    if why := _nothing_to_tell(seen, on_cpus=on_cpus):
        yield NotApplicable(why)
        return
    found = seen.found
    if found.together:
        yield _group(seen)
    else:
        yield from (_node(seen, suspect) for suspect in found.slow)
    if found.unresolved and not on_cpus:
        nodes = tuple(one.node for one in found.unresolved)
        reason = "slow or failed with each partner, and too few of these are fast with others to tell whose fault it is"
        yield Inconclusive(reason, nodes)


def slow_links(seen: Scene) -> Iterator[Problem | NotApplicable]:
    """Yield the ways that are slow between nodes that are fast with others."""
    links = seen.found.links
    if not seen.found.meetings:
        yield NotApplicable("no pair of nodes was measured")
    elif parts := _parted(seen.found):
        yield _crossing(seen, *parts)
    elif len(links) > _MANY:
        named = tuple(dict.fromkeys(node for link in links for node in link.nodes))
        message = f"{len(links)} ways between nodes that are fast with others are slow: {_pairs(links)}"
        yield Problem(message, _way_fix(seen, links[0]), _lines(seen.found, links), named)
    else:
        yield from (_link(seen, link) for link in links)


def _nothing_to_tell(seen: Scene, *, on_cpus: bool) -> str:
    found = seen.found
    if not found.meetings:
        return "no pair of nodes was measured"
    if found.means.on_cpus != on_cpus:
        return f"the pairs were measured by {found.means.value}" if not on_cpus else "the pairs were measured on GPUs"
    if len({node for meeting in found.meetings for node in meeting.nodes}) == 2 and not found.expected:  # noqa: PLR2004
        return "two nodes have no third one to be compared with"
    return ""


def _node(seen: Scene, suspect: Suspect) -> Problem:
    partners = fold(suspect.partners)
    if suspect.failed:
        message = f"nothing that {suspect.node} does with another node comes to its end, neither with {partners}"
    else:
        message = f"{suspect.node} is slow with each of its partners{_by(seen, suspect)}: {_figures(suspect.meetings)}"
    evidence = (*map(_line, suspect.meetings), *_where(seen, suspect.node))
    fix = ALL_WAYS if suspect.failed else _node_fix(seen, suspect.node)
    return Problem(f"{message}; fast with others: {fold(suspect.witnesses)}", fix, evidence, (suspect.node,))


def _group(seen: Scene) -> Problem:
    """Tell many as one: what they share is likelier to blame than each of them."""
    nodes = tuple(one.node for one in seen.found.slow)
    count = len(nodes) + len(seen.found.fast) + len(seen.found.unresolved)
    meetings = tuple(dict.fromkeys(one for suspect in seen.found.slow for one in suspect.meetings))
    message = (
        f"{len(nodes)} of {count} nodes, {fold(nodes)}, are slow with all others, which are fast with one another: "
        f"look for what they share, a switch, a cable run, a setting, before any of them"
    )
    return Problem(message, _node_fix(seen, nodes[0]), tuple(map(_line, meetings)), nodes)


def _link(seen: Scene, link: SlowLink) -> Problem:
    one, other = link.nodes
    message = f"the way between {one} and {other} is slow: {_figures(link.meetings)}; both are fast with others"
    if all(meeting.busbw is None for meeting in link.meetings):
        message = f"nothing between {one} and {other} comes to its end; both are fast with others"
    return Problem(message, _way_fix(seen, link), _lines(seen.found, (link,)), link.nodes)


def _crossing(seen: Scene, one: tuple[str, ...], other: tuple[str, ...]) -> Problem:
    links = seen.found.links
    message = (
        f"the ways between {fold(one)} and {fold(other)} are slow, and those within each of the two are not: "
        f"{_figures([meeting for link in links for meeting in link.meetings])}"
    )
    named = tuple(dict.fromkeys(node for link in links for node in link.nodes))
    return Problem(message, _way_fix(seen, links[0]), _lines(seen.found, links), named)


def _parted(found: Search) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the two groups between which all slow ways lie, where fast ones hold each together; None otherwise."""
    groups: list[set[str]] = []
    for meeting in found.meetings:
        if meeting.fast:
            touched = [group for group in groups if group.intersection(meeting.nodes)]
            groups = [group for group in groups if group not in touched]
            groups.append(set(meeting.nodes).union(*touched))
    if len(found.links) < 2 or len(groups) != 2:  # noqa: PLR2004  two ways between two groups
        return None
    one, other = (tuple(sorted(group)) for group in groups)
    return one, other


def _figures(meetings: Sequence[Meeting]) -> str:
    """Say what was reached and what is usual: "11.9 to 12.1 GB/s where 24 is usual (0.5)"."""
    reached = [one for one in meetings if one.busbw is not None and one.usual]
    if not reached:
        return "all tries failed"
    low, high = (f"{pick(one.busbw or 0.0 for one in reached):.3g}" for pick in (min, max))
    usual = max(one.usual or 0.0 for one in reached)
    best = max(one.share or 0.0 for one in reached)
    return f"{low if low == high else f'{low} to {high}'} GB/s where {usual:.3g} is usual ({best:.2f})"


def _line(meeting: Meeting) -> str:
    reached = "failed" if meeting.busbw is None else f"{meeting.busbw:.3g} GB/s"
    share = f", {meeting.share:.2f} of what is usual" if meeting.share is not None else ""
    return f"round {meeting.round}: {meeting.nodes[0]} with {meeting.nodes[1]}: {reached}{share}"


def _lines(found: Search, links: Sequence[SlowLink]) -> tuple[str, ...]:
    """Return the slow meetings, and the fast ones that clear the nodes at both ends."""
    ends = {node for link in links for node in link.nodes}
    slow = [meeting for link in links for meeting in link.meetings]
    clear = [meeting for meeting in found.meetings if meeting.fast and ends.intersection(meeting.nodes)]
    return tuple(map(_line, (*slow, *clear)))


def _pairs(links: Sequence[SlowLink]) -> str:
    return ", ".join(f"{one} with {other}" for one, other in (link.nodes for link in links))


def _by(seen: Scene, suspect: Suspect) -> str:
    places = _places(seen, suspect.node)
    return f" by {places[0]}" if len(places) == 1 else ""


def _places(seen: Scene, node: str) -> tuple[str, ...]:
    """Return the rails or interfaces that carried a node's data in its pairs: with one rank a node one at a time."""
    turns = (turn for turn in seen.turns(node) if turn.step.stage is Stage.PAIR)
    return tuple(dict.fromkeys(place for turn in turns if (place := busiest(turn))))


def _where(seen: Scene, node: str) -> Iterator[str]:
    """Yield where in the node to look: within it or at its network, and what is seen there."""
    share = inside_share(node, seen.ran, seen.hardware)
    if share is not None and share < BOUNDS.slow:
        yield f"inside {node} its GPUs reach {share:.2f} of what they should: they are slow by themselves"
    elif share is not None:
        yield f"inside {node} its GPUs reach {share:.2f} of what they should: look at its network"
    yield from seen_of(node, seen.hardware.get(node, _BARE), seen.turns(node))


def _node_fix(seen: Scene, node: str) -> str:
    share = inside_share(node, seen.ran, seen.hardware)
    if share is not None and share < BOUNDS.slow:
        return "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE"
    if idle := idle_rails(seen.turns(node)):
        return _ibstat(idle[0])
    place = next(iter(_places(seen, node)), "")
    if ":" in place:
        return _ibstat(place)
    return f"sudo ethtool -S {quote(place)}" if place else ALL_WAYS


def _ibstat(place: str) -> str:
    hca, _, port = place.partition(":")
    return f"sudo ibstat {quote(hca)} {quote(port)}"


def _way_fix(seen: Scene, link: SlowLink) -> str:
    one, other = link.nodes
    turns = [turn for turn in seen.turns(one) if turn.step.group in (link.nodes, link.nodes[::-1])]
    fabric = any(by_infiniband(turn, seen.hardware.get(one, _BARE)) for turn in turns)
    return FABRIC if fabric else f"tracepath -n {quote(other)}"
