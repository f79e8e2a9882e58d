"""Which pairs of nodes are measured next, and which larger groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from math import ceil, log2

from ncheck.probe.node_result import Stage
from ncheck.probe.results import Collective
from ncheck.probe.search import PARTNERS, Expect, SlowSearch, no_expectation, searched
from ncheck.probe.standing import FAR_TOO_LOW

Pairs = tuple[tuple[str, str], ...]
FEW = 5  # nodes, among which a single noisy pair is a large part of all measurements
TRIED = 8  # measurements after which a node or a link that is neither fast nor slow is not measured again
SMALL = 12  # rounds that are allowed among few nodes, where a pair is measured again because there is no other


def pair_rounds(names: Sequence[str], done: Sequence[Collective], expect: Expect = no_expectation) -> Pairs:
    """Return the disjoint pairs of the next round; () when there is nothing more to find.

    `done` is all that was measured so far; only its pairs count. In the first rounds every node is paired with two
    others. Then only suspects and doubtful links are measured again, and small clusters where noise may have decided;
    and over CPUs each node that would be called slow, alone:
    SMALL rounds in all, or fewer than 2 log2(N) + 2 where that is more. A round without any result does not count and
    is returned again; the caller must stop then.
    """
    names = tuple(dict.fromkeys(names))
    pairs = [one for one in done if one.step.stage is Stage.PAIR]
    rounds = {one.step.round for one in pairs}
    if len(names) < 2 or len(rounds) >= most_rounds(len(names)):  # noqa: PLR2004  a pair
        return ()
    met = Counter(frozenset(one.step.group) for one in pairs)
    if len(rounds) < PARTNERS:
        return _opening(names, met)
    found = searched(pairs, expect)
    partners = Counter(node for pair in met for node in pair)
    missing = [node for node in names if partners[node] < min(PARTNERS, len(names) - 1)]
    few = len(names) <= FEW
    doubtful = found.near or found.unresolved or found.doubted
    return (
        _closer(missing, met, found, strangers=few)
        or _strangers(names, met, pairs, expect)
        or _accused(names, met, found)
        or (_once_more(names, pairs) if few and doubtful else ())
    )


def most_rounds(nodes: int) -> int:
    """Return how many rounds the search may take: SMALL, or fewer than 2 log2(N) + 2 where that is more."""
    return max(SMALL, ceil(2 * log2(nodes) + 2) - 1)


def scaling_groups(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the first 2, 4, 8 ... of the nodes, fewer than all, each group within the next."""
    sizes = (2**power for power in range(1, len(names).bit_length()))
    return tuple(tuple(names[:size]) for size in sizes if size < len(names))


def _opening(names: tuple[str, ...], met: Container[frozenset[str]]) -> Pairs:
    """Pair neighbours of the inventory, which often share a switch; then the neighbours on the other side.

    With an odd number one node is left over in each round; these two are paired in the third.
    """
    ring = names if not met else (*names[1:], *(() if len(names) % 2 else names[:1]))
    pairs = zip(ring[::2], ring[1::2], strict=False)
    return tuple(pair for pair in pairs if frozenset(pair) not in met)


def _strangers(
    names: tuple[str, ...], met: Container[frozenset[str]], pairs: Sequence[Collective], expect: Expect
) -> Pairs:
    """Pair every node with the next but one, once, if all pairs are far below their expectation.

    Every second node may be slow, so that each fast node was paired with slow ones.
    """
    known = [(one.busbw, expect(one)) for one in pairs if one.busbw is not None]
    if not known or not all(should and busbw < FAR_TOO_LOW * should for busbw, should in known):
        return ()
    if any(names[place + 2 :] and frozenset((names[place], names[place + 2])) in met for place in range(len(names))):
        return ()
    others = (pair for start in (0, 1) for pair in zip(names[start::4], names[start + 2 :: 4], strict=False))
    return tuple(pair for pair in others if frozenset(pair) not in met)


def _closer(missing: Sequence[str], met: Mapping[frozenset[str], int], found: SlowSearch, *, strangers: bool) -> Pairs:
    """Pair nodes with too few partners, suspects and doubtful links, each node once.

    A suspect is paired with the fast node that it met least often; `strangers`: only with one that it never met.
    """
    proofs = Counter(node for one in found.meetings for node in one.nodes)
    accused = (one for one in found.slow if len(one.witnesses) < PARTNERS)
    unsure = (*(one.node for one in (*found.unresolved, *accused)), *found.uncleared)
    suspects = [node for node in unsure if proofs[node] < TRIED]
    suspects.sort(key=proofs.__getitem__)
    free = dict.fromkeys((*missing, *suspects, *found.fast))
    lacking = set(missing)
    pairs: list[tuple[str, str]] = []
    for node in (*missing, *suspects):
        if node not in free:
            continue
        alone = node in lacking
        willing = (one for one in ((*missing, *found.fast) if alone else found.fast) if one in free and one != node)
        partner, times = _least_met(node, willing, met)
        if partner and not (times and (strangers or alone)):
            pairs.append((node, partner))
            del free[node], free[partner]
    again = () if strangers else (link.nodes for link in found.doubted if len(link.meetings) < TRIED)
    return (*pairs, *_disjoint(nodes for nodes in again if free.keys() >= set(nodes)))


def _accused(names: Container[str], met: Mapping[frozenset[str], int], found: SlowSearch) -> Pairs:
    """Pair a node that would be called slow with a fast one, alone: nothing else is measured. Of many, all at once."""
    free, pairs = [node for node in found.fast if node in names], list[tuple[str, str]]()
    for suspect in (one for one in found.accused if one.node in names):
        partner, _ = _least_met(suspect.node, free, met)
        if partner:
            pairs.append((suspect.node, partner))
            free.remove(partner)
    return tuple(pairs if len(pairs) > FEW else pairs[:1])


def _least_met(node: str, others: Iterable[str], met: Mapping[frozenset[str], int]) -> tuple[str | None, int]:
    """Return the first of these that the node met least often, and how often it did. Most often that is never."""
    best, least = None, 0
    for one in others:
        times = met.get(frozenset((node, one)), 0)
        if not times:
            return one, 0
        if best is None or times < least:
            best, least = one, times
    return best, least


def _once_more(names: tuple[str, ...], pairs: Sequence[Collective]) -> Pairs:
    """Repeat the pairs that were measured least often, the fastest first: they decide what is usual."""
    reached: dict[tuple[str, ...], list[float]] = {}
    for one in pairs:
        if one.busbw is not None and set(names).issuperset(one.step.group):
            reached.setdefault(tuple(sorted(one.step.group)), []).append(one.busbw)
    order = sorted(reached, key=lambda pair: (len(reached[pair]), -max(reached[pair])))
    return tuple(_disjoint((one, other) for one, other in order))


def _disjoint(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    taken: set[str] = set()
    for pair in pairs:
        if taken.isdisjoint(pair):
            taken.update(pair)
            yield pair
