"""A collective operation gave wrong results

## What it finds
Nodes on which elements of the result of an all-reduce, or of another operation of --op, were not what they must be, and
the message sizes at which this happened. Operations that are wrong on the same nodes are one finding. Results that were
not verified (plain sockets) are skipped.

## Why it matters
Nothing fails and nothing is slow, but the model is trained with wrong gradients. Causes are a broken GPU, HCA or cable,
memory without ECC, or a bug in a library. Many hours of training are lost before anyone notices.

## What to type
`nvidia-smi -q -d ECC,ROW_REMAPPER` on the named nodes. Then measure without them: `ncheck probe nodes.txt --good-nodes
good.txt` writes the list of the other nodes, and `ncheck probe good.txt` measures these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.gpu_test import WRONG_SUMS
from ncheck.probe.node_result import NodeResult
from ncheck.probe.results import Collective, by_op, collectives, named, unverified, verified

_MOST_EVIDENCE = 9


@dataclass(frozen=True)
class Wrong:
    """Nodes with wrong results. A node that is wrong by itself is named, not the nodes measured with it."""

    nodes: tuple[str, ...]
    message: str
    evidence: tuple[str, ...]
    fix: str
    summary: str


def wrong_sums(probed: Mapping[str, ProbeFacts]) -> tuple[Wrong, ...]:
    """Return the nodes with wrong results: those that are wrong by themselves, otherwise all that were never right."""
    steps = [
        (one, {node: result for node, result in one.results.items() if _count(result)}) for one in collectives(probed)
    ]
    same: dict[tuple[str, ...], list[Steps]] = {}
    for own in by_op(one for one, _ in steps).values():
        of_op = [(one, results) for one, results in steps if one in own]
        if any(results for _, results in of_op):
            same.setdefault(_wrong_nodes(of_op), []).append(of_op)
    return tuple(_wrong(nodes, found) for nodes, found in same.items())


Steps = Sequence[tuple[Collective, Mapping[str, NodeResult]]]  # of one operation; each with its wrong results


def _wrong_nodes(steps: Steps) -> tuple[str, ...]:
    bad = [(one, results) for one, results in steps if results]
    # A sum goes round: one broken node spoils it for all, so that only a step without others tells whose it is.
    sound = {
        node for one, results in steps if not results and one.whole and len(one.step.group) > 1 for node in one.results
    }
    inside = {node for one, results in bad if len(one.step.group) == 1 for node in results}
    everywhere = dict.fromkeys(node for _, results in bad for node in results)
    nodes = tuple(node for node in everywhere if node in inside) or tuple(n for n in everywhere if n not in sound)
    return nodes or tuple(everywhere)


def _wrong(nodes: tuple[str, ...], found: Sequence[Steps]) -> Wrong:
    """Return what these operations have wrong on the same nodes."""
    bad = [(one, results) for steps in found for one, results in steps if results]
    ops = named(dict.fromkeys(one.step.op for one, _ in bad))
    evidence = tuple(line for _, results in bad for node, result in results.items() for line in _lines(node, result))
    count = sum(_count(result) for _, results in bad for result in results.values())
    sizes = sorted({row.size for _, results in bad for result in results.values() for row in result.rows if row.wrong})
    at = f"{sizes[0]} bytes" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} bytes"
    message = f"wrong {ops} results on {fold(nodes)}: {count} elements in total, at sizes of {at}"
    gpus = any(one.step.method.by_nccl for one, _ in bad)
    fix = "nvidia-smi -q -d ECC,ROW_REMAPPER" if gpus else "sudo journalctl -k -g 'mce|EDAC'"
    summary = f"{ops} {'gives' if len(found) == 1 else 'give'} wrong results"
    return Wrong(nodes, message, evidence[:_MOST_EVIDENCE], fix, summary)


def _count(result: NodeResult) -> int:
    return sum(row.wrong or 0 for row in result.rows)


def _lines(node: str, result: NodeResult) -> list[str]:
    others = [other for other in result.step.group if other != node]
    nodes = f"{node} with {fold(others)}" if others else node
    nodes += "" if result.step.op is Op.ALL_REDUCE else f", {result.step.op.value}"
    wrong = [row for row in result.rows if row.wrong]
    return [f"{nodes}: {row.wrong} wrong elements in {row.size} bytes, {_PLACE[row.in_place]}" for row in wrong]


_PLACE = {True: "in place", False: "out of place"}


@cluster_check("NC702", Severity.ERROR, ProbeFacts, alone=True)
def all_reduce_wrong(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    probed = cluster.facts(ProbeFacts)
    for found in wrong_sums(probed):
        yield Problem(
            found.message, found.fix, found.evidence, found.nodes, look=True, summary=found.summary, follows=WRONG_SUMS
        )  # fmt: skip
    unseen = tuple(node for node, facts in probed.items() if unverified(facts) or not verified(facts))
    if unseen:
        yield NotApplicable("not all of its results were verified", unseen)
