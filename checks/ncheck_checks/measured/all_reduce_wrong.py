"""The all-reduce gave wrong sums

## What it finds
Nodes on which elements of the result were not the correct sum, and the message sizes at which this happened. Results
that were not verified (plain sockets compute no sums) are skipped.

## Why it matters
Nothing fails and nothing is slow, but the model is trained with wrong gradients. Causes are a broken GPU, HCA or cable,
memory without ECC, or a bug in a library. Many hours of training are lost before anyone notices.

## What to type
`nvidia-smi -q -d ECC,ROW_REMAPPER` on the named nodes. Then measure without them: `ncheck probe nodes.txt --good-nodes
good.txt` writes the list of the other nodes, and `ncheck probe good.txt` measures these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.lazy_dataclass import dataclass
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.gpu_test import WRONG_SUMS
from ncheck.probe.node_result import NodeResult
from ncheck.probe.results import collectives, unverified, verified

_MOST_EVIDENCE = 9


@dataclass(frozen=True)
class Wrong:
    """Nodes with wrong results. A node that is wrong by itself is named, not the nodes measured with it."""

    nodes: tuple[str, ...]
    message: str
    evidence: tuple[str, ...]
    fix: str


def wrong_sums(probed: Mapping[str, ProbeFacts]) -> tuple[Wrong, ...]:
    """Return the nodes with wrong results: those that are wrong by themselves, otherwise all that were never right."""
    steps = [
        (one, {node: result for node, result in one.results.items() if _count(result)}) for one in collectives(probed)
    ]
    bad = [(one, results) for one, results in steps if results]
    if not bad:
        return ()
    # A sum goes round: one broken node spoils it for all, so that only a step without others tells whose it is.
    sound = {
        node for one, results in steps if not results and one.whole and len(one.step.group) > 1 for node in one.results
    }
    inside = {node for one, results in bad if len(one.step.group) == 1 for node in results}
    everywhere = dict.fromkeys(node for _, results in bad for node in results)
    nodes = tuple(node for node in everywhere if node in inside) or tuple(n for n in everywhere if n not in sound)
    nodes = nodes or tuple(everywhere)
    evidence = tuple(line for _, results in bad for node, result in results.items() for line in _lines(node, result))
    count = sum(_count(result) for _, results in bad for result in results.values())
    sizes = sorted({row.size for _, results in bad for result in results.values() for row in result.rows if row.wrong})
    at = f"{sizes[0]} bytes" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} bytes"
    message = f"wrong all-reduce results on {fold(nodes)}: {count} elements in total, at sizes of {at}"
    gpus = any(one.step.method.by_nccl for one, _ in bad)
    fix = "nvidia-smi -q -d ECC,ROW_REMAPPER" if gpus else "sudo journalctl -k -g 'mce|EDAC'"
    return (Wrong(nodes, message, evidence[:_MOST_EVIDENCE], fix),)


def _count(result: NodeResult) -> int:
    return sum(row.wrong or 0 for row in result.rows)


def _lines(node: str, result: NodeResult) -> list[str]:
    others = [other for other in result.step.group if other != node]
    nodes = f"{node} with {fold(others)}" if others else node
    wrong = [row for row in result.rows if row.wrong]
    return [f"{nodes}: {row.wrong} wrong elements in {row.size} bytes, {_PLACE[row.in_place]}" for row in wrong]


_PLACE = {True: "in place", False: "out of place"}


@cluster_check("NC702", Severity.ERROR, ProbeFacts, alone=True)
def all_reduce_wrong(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    probed = cluster.facts(ProbeFacts)
    for found in wrong_sums(probed):
        yield Problem(
            found.message, found.fix, found.evidence, found.nodes, look=True, summary="all-reduce gives wrong results",
            follows=WRONG_SUMS,
        )  # fmt: skip
    unseen = tuple(node for node, facts in probed.items() if unverified(facts) or not verified(facts))
    if unseen:
        yield NotApplicable("not all of its results were verified", unseen)
