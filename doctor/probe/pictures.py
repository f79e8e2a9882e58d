"""What the report draws of the probe: node by node, and what each device carried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from doctor.model.facts import ProbeFacts, Stage, Turn
from doctor.model.report import Pair, Traffic
from doctor.probe.collectives import Collective

_FIGURES = 6  # of a number that is written down


def figures(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.{_FIGURES}g}")


def pairs(ran: Sequence[Collective]) -> Iterator[Pair]:
    """Yield each pair once. What was measured again stands as it was measured last."""
    last: dict[frozenset[str], Pair] = {}
    for one in ran:
        if one.step.stage is Stage.PAIR and len(one.step.group) == 2:  # noqa: PLR2004  a pair
            first, second = one.step.group
            last[frozenset(one.step.group)] = Pair((first, second), figures(one.busbw))
    yield from last.values()


def traffic(probed: Mapping[str, ProbeFacts]) -> Iterator[Traffic]:
    """Yield what each device carried while all nodes ran, for then all carry alike; in every step where that never was.

    Those of the plan that carried nothing are told, too.
    """
    every = [turn for facts in probed.values() for turn in facts.turns]
    together = {turn.step for turn in every if turn.step.stage is Stage.ALL}
    for node, facts in probed.items():
        turns = [turn for turn in facts.turns if not together or turn.step in together]
        yield from _carried(node, turns)


def _carried(node: str, turns: Sequence[Turn]) -> Iterator[Traffic]:
    sums: dict[str, tuple[int, int]] = {}
    planned = {device for turn in turns for device in _meant(turn)}
    for turn in turns:
        for device, moved in turn.carried.items():
            sent, received = sums.get(device, (0, 0))
            sums[device] = sent + moved.sent, received + moved.received
    for device, (sent, received) in sums.items():
        if sent or received or device in planned:
            yield Traffic(node, device, sent, received, device in planned)


def _meant(turn: Turn) -> tuple[str, ...]:
    """Return the plan's devices for data: by its interfaces the ranks only meet, where there are HCA ports."""
    return tuple(device for device in turn.planned if ":" in device) or turn.planned
