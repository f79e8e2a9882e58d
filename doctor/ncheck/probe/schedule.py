"""Who meets whom next, and which nodes are measured together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, log2

from ncheck.facts.probe import Stage
from ncheck.model.report import FAR_TOO_LOW
from ncheck.probe.collectives import Collective
from ncheck.probe.search import PARTNERS, Expect, Search, Suspect, nobody_knows, searched

Pairs = tuple[tuple[str, str], ...]


FEW = 5  # nodes, among which one pair that noise slows is a good part of all that is known


TRIED = 4  # partners after which a node that is neither fast nor slow is let be


def pair_rounds(names: Sequence[str], done: Sequence[Collective], expect: Expect = nobody_knows) -> Pairs:
    """Return the disjoint pairs of the next round; () when there is nothing more to find.

    `done` is all that was measured so far (of it the pairs count). In the first rounds every node meets two others,
    then only suspects and doubtful links meet again, and few nodes where noise may have decided: fewer rounds than
    2 log2(N) + 2. A round of which no node told anything counts for nothing and is proposed again: the caller ends it
    then.
    """
    names = tuple(dict.fromkeys(names))
    pairs = [one for one in done if one.step.stage is Stage.PAIR]
    rounds = {one.step.round for one in pairs}
    if len(names) < 2 or len(rounds) >= most_rounds(len(names)):  # noqa: PLR2004  one node has nobody to meet
        return ()
    met = {frozenset(one.step.group) for one in pairs}
    if len(rounds) < PARTNERS:
        return _opening(names, met)
    found = searched(pairs, expect)
    return (
        _closer(names, met, found)
        or (_strangers(names, met) if _all_low(pairs, expect) else ())
        or (_once_more(names, pairs) if found.near and len(names) <= FEW else ())
    )


def most_rounds(nodes: int) -> int:
    """Return how many rounds the search may take: fewer than 2 log2(N) + 2."""
    return ceil(2 * log2(nodes) + 2) - 1


def scaling_groups(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the first 2, 4, 8 ... of the nodes, fewer than all, each group within the next."""
    sizes = (2**power for power in range(1, len(names).bit_length()))
    return tuple(tuple(names[:size]) for size in sizes if size < len(names))


def _opening(names: tuple[str, ...], met: set[frozenset[str]]) -> Pairs:
    """Pair neighbours of the listing, in the second round the other ones: neighbours there often share a switch.

    With an odd count one has a bye in each of the two, and the two meet each other in the third.
    """
    ring = names if not met else (*names[1:], *(() if len(names) % 2 else names[:1]))
    pairs = zip(ring[::2], ring[1::2], strict=False)
    return tuple(pair for pair in pairs if frozenset(pair) not in met)


def _all_low(pairs: Sequence[Collective], expect: Expect) -> bool:
    """Tell whether no pair comes near its expectation: fast nodes may be there, each of which met two slow ones."""
    held = [(one.busbw, expect(one)) for one in pairs if one.busbw is not None]
    return bool(held) and all(should and busbw < FAR_TOO_LOW * should for busbw, should in held)


def _strangers(names: tuple[str, ...], met: set[frozenset[str]]) -> Pairs:
    """Pair all by another stride, as long as two rounds by the ring brought nothing: every second one may be slow."""
    if any(names[place + 2 :] and {names[place], names[place + 2]} in met for place in range(len(names))):
        return ()
    pairs = (pair for start in (0, 1) for pair in zip(names[start::4], names[start + 2 :: 4], strict=False))
    return tuple(pair for pair in pairs if frozenset(pair) not in met)


def _closer(names: tuple[str, ...], met: set[frozenset[str]], found: Search) -> Pairs:
    """Pair who has met too few, who is suspected and what link is doubted, each node once."""
    missing = [node for node in names if sum(node in pair for pair in met) < min(PARTNERS, len(names) - 1)]
    suspects = [one.node for one in (*found.unresolved, *found.slow) if _may_tell_more(one)]
    free = dict.fromkeys((*missing, *suspects, *found.fast))
    pairs: list[tuple[str, str]] = []
    for node in (*missing, *suspects):
        willing = (*missing, *found.fast) if node in missing else found.fast
        partner = next((one for one in willing if one in free and {node, one} not in met and one != node), None)
        if node in free and partner:
            pairs.append((node, partner))
            free = {one: None for one in free if one not in pairs[-1]}
    again = (link.nodes for link in found.doubted)
    return (*pairs, *_disjoint(nodes for nodes in again if free.keys() >= set(nodes)))


def _once_more(names: tuple[str, ...], pairs: Sequence[Collective]) -> Pairs:
    """Pair those again that met least often, of these the fastest first: what is usual hangs on them."""
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


def _may_tell_more(suspect: Suspect) -> bool:
    return len(suspect.witnesses) < PARTNERS and len(suspect.partners) < TRIED
