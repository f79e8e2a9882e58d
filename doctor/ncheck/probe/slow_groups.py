"""Problems about what is slow between groups of nodes: both sides are named, and no node is blamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from shlex import quote
from statistics import mean

from ncheck.hostlist import fold
from ncheck.model.check import Inconclusive, NotApplicable, Problem, Said
from ncheck.probe.boundary import LEAST_NODES, Boundary
from ncheck.probe.group_search import GroupSearch
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.results import group_tests
from ncheck.probe.shortfalls import FABRIC, by_infiniband
from ncheck.probe.slow_nodes import Measured
from ncheck.text import rates

_SHOWN = 6  # tests in the evidence that cross the boundary, and of each side; the smallest say most
_MORE_TIME = "ncheck probe nodes.txt --probe-time 300"


def slow_groups(seen: Measured) -> Iterator[Said]:
    """Yield what is slow between groups of nodes. That nodes are slow together at all is for other checks to say."""
    search = seen.groups
    if search is None:
        if not any(len(one.step.group) > 1 and one.busbw is not None for one in seen.ran):
            yield NotApplicable("nothing was measured between nodes")
        return
    yield from (_between(seen, search, boundary) for boundary in search.found.boundaries)
    if search.found.wanted:
        if search.stopped:
            yield Inconclusive(f"the search between groups of nodes did not end ({search.stopped}): {_MORE_TIME}")
        else:
            yield NotApplicable(f"the search between groups of nodes could not go on: {_MORE_TIME}")
    elif not search.found.explained and not search.by_pairs:
        nodes = sum(map(len, search.grouping.groups.values()))
        more = "; name them by --groups" if search.grouping.guessed and nodes >= LEAST_NODES else ""
        yield NotApplicable(f"slow together, and no node or group explains it (groups: {search.grouping.source}{more})")


def _between(seen: Measured, search: GroupSearch, boundary: Boundary) -> Problem:
    groups = search.grouping.groups
    sides = sorted(filter(None, (boundary.one, boundary.other)), key=len)
    nodes = [tuple(node for name in side for node in groups[name]) for side in sides]
    of_boundary = {name: groups[name] for side in sides for name in side}
    bad = {one.node for one in search.found.nodes}
    measured = sorted((tuple(sorted(one)) for one in search.reached if len(one) > 1 and bad.isdisjoint(one)), key=len)
    across = [one for one in measured if boundary.crossed_by(one, of_boundary)]
    inside = [[one for one in measured if any(set(one) <= {*groups[name]} for name in side)] for side in sides]
    guessed = search.grouping.guessed
    place = f"between {' and '.join(map(fold, nodes) if guessed else map(_side, sides, nodes))}"
    if not boundary.other:
        place = f"between all {len(boundary.one)} groups of nodes ({fold(nodes[0])})"
    message = (
        f"slow {place}: {_figures(search, across)} across, {_figures(search, [*chain(*inside)])} inside the groups, "
        "which are well by themselves: no node is at fault"
    )
    off = f", without NVLink between nodes ({search.off}=0)" if search.off else ""
    first = across[:1], *(own[:1] for own in inside)
    rest = across[1:_SHOWN], *(own[1:_SHOWN] for own in inside)
    lines = [
        f"{'across' if one in across else 'inside'}: {fold(one)}: {rates([_reached(search, one)])}"
        for one in chain(*first, *rest)
    ]
    named = tuple(node for side in nodes for node in side)
    return Problem(
        message, _fix(seen, named), (*lines, f"groups by {search.grouping.source}{off}"), named, where=nodes[0][0],
        look=True, summary="slow between groups of nodes",
    )  # fmt: skip


def _side(names: tuple[str, ...], nodes: tuple[str, ...]) -> str:
    """Return "leaf1 (node[01-16])", or of many groups "2 groups (node[01-32])"."""
    return f"{names[0] if len(names) == 1 else f'{len(names)} groups'} ({fold(nodes)})"


def _reached(search: GroupSearch, nodes: Sequence[str]) -> float:
    return mean(search.reached[frozenset(nodes)])


def _figures(search: GroupSearch, sets: Sequence[tuple[str, ...]]) -> str:
    """Return what these sets reached: "118 to 121 GB/s"."""
    return rates(_reached(search, nodes) for nodes in sets) if sets else "nothing was measured"


def _fix(seen: Measured, nodes: tuple[str, ...]) -> str:
    """Return what shows the links between switches, or at least the way from the first node to the last."""
    tests = [one for one in (*group_tests(seen.probed), *seen.ran) if nodes[0] in one.results]
    hardware = seen.hardware.get(nodes[0], NodeHardware())
    if any(by_infiniband(one.results[nodes[0]], hardware) for one in tests):
        return FABRIC
    return f"tracepath -n {quote(nodes[-1])}"
