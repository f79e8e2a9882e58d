"""What a probe left unmeasured although it came to its end: sizes, stages, results that nobody verified.

What was not measured is not passed: where it could hide trouble it is a doubt, and the report tells it anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncheck.facts.probe import Means, ProbeFacts, Stage, Step, Turn
from ncheck.probe.collectives import Collective, collectives

# Those whose results can be verified, and whose ranks agree upon what they leave out.
_SUMS = frozenset({Means.NCCL, Means.NCCL_TESTS, Means.GLOO})


def missing_sizes(ran: Sequence[Collective]) -> dict[Stage, tuple[int, ...]]:
    """Return by stage the sizes that were asked for and that some step came through without."""
    found: dict[Stage, set[int]] = {}
    for one in ran:
        if one.whole and one.step.means in _SUMS:
            lacking = set(one.step.sizes) - {row.size for row in one.rows}
            found.setdefault(one.step.stage, set()).update(lacking)
    return {stage: tuple(sorted(sizes)) for stage, sizes in found.items() if sizes}


def unverified(facts: ProbeFacts) -> bool:
    """Tell whether a node has results of which nobody says whether they are right."""
    return any(row.wrong is None for turn in _sums(facts) for row in turn.rows)


def verified(facts: ProbeFacts) -> bool:
    """Tell whether some result of a node was looked at."""
    return any(row.wrong is not None for turn in _sums(facts) for row in turn.rows)


def _sums(facts: ProbeFacts) -> Iterator[Turn]:
    return (turn for turn in facts.turns if turn.step.means in _SUMS)


def gaps(probed: Mapping[str, ProbeFacts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what cannot have been left out by intent, and on which nodes: it was lost."""
    yield from _sizes_that_differ(probed)
    yield from _nobody_together(probed)
    yield from _not_by_themselves(probed)


def _sizes_that_differ(probed: Mapping[str, ProbeFacts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for one in collectives(probed):
        told = {node: {(row.size, row.in_place) for row in turn.rows} for node, turn in one.turns.items()}
        every = set().union(*told.values())
        if one.whole and one.step.means in _SUMS and (less := tuple(node for node in told if told[node] != every)):
            yield "it told of fewer sizes than those that it measured with: what it left out is not known", less


def _nobody_together(probed: Mapping[str, ProbeFacts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    stages = {step.stage for facts in probed.values() for step in _steps(facts)}
    ran = {turn.step.stage for facts in probed.values() for turn in _sums(facts)}
    begun = Stage.SCALING in ran or ran >= {Stage.INSIDE, Stage.PAIR}
    if begun and Stage.ALL not in stages:
        yield "nothing tells of the all-reduce on all nodes together", tuple(probed)


def _not_by_themselves(probed: Mapping[str, ProbeFacts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    alone = {node for node, facts in probed.items() if any(one.stage is Stage.INSIDE for one in _steps(facts))}
    lacking = tuple(node for node, facts in probed.items() if alone and node not in alone and _has_several(node, facts))
    if lacking:
        yield "nothing tells of the all-reduce inside the node, which others had", lacking


def _steps(facts: ProbeFacts) -> Iterator[Step]:
    yield from (turn.step for turn in facts.turns)
    yield from (skipped.step for skipped in facts.skipped)


def _has_several(node: str, facts: ProbeFacts) -> bool:
    """Tell whether a node has several ranks in some step: then it can be measured by itself."""
    return any(dict(zip(one.group, one.ranks, strict=True)).get(node, 0) > 1 for one in _steps(facts))
