"""The all-reduce gave wrong sums

## What it finds
Nodes on which elements of the result were not the sum that they should be, with the sizes at which it happened. What
nobody verified (sockets alone sum up nothing) is told as skipped.

## Why it matters
Nothing fails and nothing is slow: the model is trained with wrong gradients. A broken GPU, HCA or cable, memory
without ECC, or a bug of a library does this; a run of many hours is lost before anybody looks.

## What to type
`nvidia-smi -q -d ECC,ROW_REMAPPER` on the nodes that are named, and the probe again without the suspects:
`ncheck probe nodes.txt --good-nodes good.txt` writes down the others, and `ncheck probe good.txt` measures these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.facts.probe import ProbeFacts, Turn
from ncheck.probe.collectives import collectives
from ncheck.probe.gaps import unverified, verified

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


@cluster_check("NC702", Severity.ERROR, ProbeFacts, alone=True)
def all_reduce_wrong(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    probed = cluster.facts(ProbeFacts)
    for found in wrong_sums(probed):
        yield Problem(found.told, found.fix, found.evidence, found.nodes)
    unseen = tuple(node for node, facts in probed.items() if unverified(facts) or not verified(facts))
    if unseen:
        yield NotApplicable("not every result was verified there, or none", unseen)
