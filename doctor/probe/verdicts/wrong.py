"""Results that are not the sum that they should be: on which nodes, at which sizes, in how many elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.hostlist import fold
from doctor.model.facts import ProbeFacts, Turn
from doctor.probe.collectives import collectives

_MOST_EVIDENCE = 9


@dataclass(frozen=True)
class Wrong:
    """Nodes that are wrong alike. A node that is wrong by itself is meant rather than those that it met."""

    nodes: tuple[str, ...]
    told: str
    evidence: tuple[str, ...]
    fix: str


def wrong_sums(probed: Mapping[str, ProbeFacts]) -> tuple[Wrong, ...]:
    """Return who had wrong results: those that had them by themselves, if any had, else all that were never right."""
    steps = [(one, {node: turn for node, turn in one.turns.items() if _count(turn)}) for one in collectives(probed)]
    bad = [(one, turns) for one, turns in steps if turns]
    if not bad:
        return ()
    # A sum goes round: one broken node spoils it for all, so that only a step without others tells whose it is.
    sound = {node for one, turns in steps if not turns and one.whole and len(one.step.group) > 1 for node in one.turns}
    inside = {node for one, turns in bad if len(one.step.group) == 1 for node in turns}
    everywhere = dict.fromkeys(node for _, turns in bad for node in turns)
    nodes = tuple(node for node in everywhere if node in inside) or tuple(n for n in everywhere if n not in sound)
    nodes = nodes or tuple(everywhere)
    evidence = tuple(line for _, turns in bad for node, turn in turns.items() for line in _lines(node, turn))
    count = sum(_count(turn) for _, turns in bad for turn in turns.values())
    sizes = sorted({row.size for _, turns in bad for turn in turns.values() for row in turn.rows if row.wrong})
    at = f"{sizes[0]} bytes" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} bytes"
    told = f"the result was wrong on {fold(nodes)}: {count} elements in all, at sizes of {at}"
    gpus = any(one.step.means.by_nccl for one, _ in bad)
    fix = "nvidia-smi -q -d ECC,ROW_REMAPPER" if gpus else "sudo journalctl -k -g 'mce|EDAC'"
    return (Wrong(nodes, told, evidence[:_MOST_EVIDENCE], fix),)


def _count(turn: Turn) -> int:
    return sum(row.wrong or 0 for row in turn.rows)


def _lines(node: str, turn: Turn) -> list[str]:
    others = [other for other in turn.step.group if other != node]
    who = f"{node} with {fold(others)}" if others else node
    wrong = [row for row in turn.rows if row.wrong]
    return [f"{who}: {row.wrong} wrong of {row.size} bytes, {_WAY[row.in_place]}" for row in wrong]


_WAY = {True: "in place", False: "out of place"}
