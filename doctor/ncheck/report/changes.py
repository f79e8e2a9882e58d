"""`ncheck diff OLD NEW`: what changed between two recordings: what got worse, and what can explain it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from ncheck.differences import Topic, Value, differences
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.redact import redact
from ncheck.report.json import without_delete
from ncheck.report.text import count, joined
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.model.cluster import Facts
    from ncheck.model.report import Report

_SERIOUS = {severity.value: at for at, severity in enumerate(Severity)}
WORSE, OTHER, BETTER = "worse", "other", "better"


@dataclass(frozen=True)
class Change:
    """One thing that differs. `how`: worse, better, or other (a version, a count: neither by itself). `severity`: of
    the finding that came or went. `topic`: of a value, what it is of: see ncheck.differences.
    """

    how: str
    nodes: tuple[str, ...]
    what: str
    severity: str = ""
    topic: str = ""


def changes(old: Report, new: Report, were: Mapping[str, Facts], are: Mapping[str, Facts]) -> tuple[Change, ...]:
    """Return what changed: what is worse, then the values that can explain it, then what is better. The same change on
    several nodes is one. `were` and `are`: the facts of each node.
    """
    merged: dict[tuple[str, str, str], list[str]] = {}
    for one in (*_reached(old, new), *_findings(old, new)):
        merged.setdefault((one.how, one.severity, one.what), []).extend(one.nodes)
    folded = [
        Change(how, tuple(dict.fromkeys(nodes)), what, severity) for (how, severity, what), nodes in merged.items()
    ]
    order = (WORSE, OTHER, BETTER)
    folded.sort(key=lambda one: _SERIOUS.get(one.severity, -1))
    values = _values(were, are, got_worse(old, new))
    return tuple(sorted((*folded, *values), key=lambda one: order.index(one.how)))


def _reached(old: Report, new: Report) -> Iterator[Change]:
    before, after = ({node.name: node for node in report.nodes} for report in (old, new))
    for name in dict.fromkeys((*before, *after)):
        was, is_ = before.get(name), after.get(name)
        if was is None:
            yield Change(OTHER, (name,), "is new")
        elif is_ is None:
            yield Change(OTHER, (name,), "is no longer listed")
        elif was.reached and not is_.reached:
            yield Change(WORSE, (name,), f"is not reached: {is_.cause}")
        elif is_.reached and not was.reached:
            yield Change(BETTER, (name,), f"is reached again; it was not: {was.cause}")


def _findings(old: Report, new: Report) -> Iterator[Change]:
    """Yield the findings that came or went, node by node. What is not read any longer has not got better."""
    before, after = _by_node(old), _by_node(new)
    known = {(one.code, node): one.outcome for one in new.verdicts for node in one.nodes}
    for key, finding in after.items():
        if key not in before:
            yield Change(WORSE, (key[1],), _shown(finding), finding.severity.value)
    for key, finding in before.items():
        if key not in after:
            went = known.get(key) is Outcome.PASSED
            how, word = (BETTER, "no longer") if went else (OTHER, "cannot be seen any longer")
            yield Change(how, (key[1],), f"{word}: {_shown(finding)}", finding.severity.value)


def _by_node(report: Report) -> dict[tuple[str, str], Finding]:
    return {(finding.code, node): finding for finding in report.findings for node in finding.nodes}


def _shown(finding: Finding) -> str:
    return f"{finding.code} {finding.check}: {finding.summary or finding.message}"


_MOST_PARTS = 4  # of a node, in one line


def _values(old: Mapping[str, Facts], new: Mapping[str, Facts], worse: Worse) -> Iterator[Change]:
    """Yield the values of nodes that are others: first what can explain most. What differs in each run is one line."""
    alike: dict[tuple[Topic, str, str], list[str]] = {}
    idle: dict[Value, list[str]] = {}
    for node in (one for one in new if one in old):
        parts: dict[tuple[Topic, str, str], list[str]] = {}
        for one in differences(old[node], new[node]):
            topic, name = one.value.explained
            if topic is Topic.ITSELF:
                idle.setdefault(one.value, []).append(node)
            else:
                values = redact(f"{one.old or 'none'} -> {one.new or 'none'}")
                parts.setdefault((topic, name, values), []).append(" ".join(one.value.part))
        for (topic, name, values), of in parts.items():
            what = " ".join(filter(None, (name, joined([*dict.fromkeys(filter(None, of))], _MOST_PARTS))))
            alike.setdefault((topic, what, values), []).append(node)
    ranked = sorted(alike.items(), key=lambda one: (-_explains(one[0][0], one[1], worse), one[0]))
    for (topic, what, values), nodes in ranked:
        yield Change(OTHER, tuple(nodes), f"{what}: {values}", topic=topic.value)
    if idle:
        what = f"{count(len(idle), 'value')} of the kind that differs in each run, such as free memory and temperatures"
        restless = {node for nodes in idle.values() for node in nodes}
        yield Change(OTHER, tuple(node for node in new if node in restless), what, topic=Topic.ITSELF.value)


# How much a change of this topic can explain where nothing is known to be slower; and what counts more where a
# bandwidth between nodes is lower, or one inside a node. These are our own choice: bench/changes.py counts how often
# the change that was planted comes first.
_CAN_EXPLAIN: Mapping[Topic, int] = {
    Topic.NETWORK: 12, Topic.GPU: 12, Topic.JOB: 10, Topic.VERSION: 8, Topic.CODE: 8, Topic.SYSTEM: 7,
    Topic.NEIGHBOURS: 6, Topic.COUNTER: 5, Topic.MACHINE: 4, Topic.OTHER: 1,
}  # fmt: skip
_BETWEEN, _INSIDE = (Topic.NETWORK, Topic.JOB, Topic.COUNTER), (Topic.GPU, Topic.SYSTEM, Topic.NEIGHBOURS)
_OF_TERM, _OF_PLACE = 4, 6


def _explains(topic: Topic, nodes: Sequence[str], worse: Worse) -> int:
    """Return how much a change on these nodes can explain of what got worse. What is only on the slow nodes explains
    more than what is everywhere, and what is only on the others least.
    """
    points = _CAN_EXPLAIN[topic]
    if worse.between and not worse.inside:
        points += _OF_TERM * (topic in _BETWEEN) - _OF_TERM * (topic is Topic.GPU)
    if worse.inside:
        points += _OF_TERM * (topic in _INSIDE) - _OF_TERM * (topic is Topic.NETWORK)
    if worse.nodes:
        points += _OF_PLACE * worse.nodes.issuperset(nodes) - 2 * _OF_PLACE * worse.nodes.isdisjoint(nodes)
    return points


@dataclass(frozen=True)
class Worse:
    """What is slower than it was: between nodes, inside a node; on which nodes, none where all are, or nobody knows."""

    between: bool = False
    inside: bool = False
    nodes: frozenset[str] = frozenset()


def got_worse(old: Report, new: Report) -> Worse:
    """Compare what both measured. A node is slow where the best of its pairs is, one of its GPUs, or what is inside."""
    before = {(one.stage, one.what, one.nodes, one.unit): one.measured for one in old.measurements}
    slower = [
        one for one in new.measurements
        if _lower(before.get((one.stage, one.what, one.nodes, one.unit)), one.measured)
    ]  # fmt: skip
    gpus = {(one.node, one.pci, figure.what): figure.value for one in old.gpus_alone for figure in one.figures}
    slow_gpus = {
        one.node for one in new.gpus_alone for figure in one.figures if figure.unit != "us"
        and _lower(gpus.get((one.node, one.pci, figure.what)), figure.value)
    }  # fmt: skip
    best, now = _best_of_pairs(old), _best_of_pairs(new)
    slow_pairs = {node for (node, op), value in now.items() if _lower(best.get((node, op)), value)}
    inside = {node for one in slower if one.stage == _ALONE for node in one.nodes} | slow_gpus
    nodes = slow_pairs | inside
    between = bool(slow_pairs) or any(one.stage != _ALONE for one in slower)
    everywhere = len(nodes) == sum(node.reached for node in new.nodes)
    return Worse(between, bool(inside), frozenset() if everywhere else frozenset(nodes))


_ALONE = "inside"  # a stage of the bandwidth test: one node by itself
_KEPT = 0.95  # of a bandwidth: below it is lower


def _lower(before: float | None, now: float | None) -> bool:
    return before is not None and (now is None or now < before * _KEPT)


def _best_of_pairs(report: Report) -> dict[tuple[str, str], float]:
    """Return the best of the pairs of each node and operation."""
    best: dict[tuple[str, str], float] = {}
    for pair in report.probe.pairs:
        for node in pair.nodes:
            best[node, pair.op] = max(best.get((node, pair.op), 0.0), pair.busbw or 0.0)
    return best


def changes_json(found: tuple[Change, ...]) -> str:
    return without_delete(json.dumps({"changes": [asdict(one) for one in found]}, indent=2)) + "\n"


def changes_text(found: tuple[Change, ...]) -> str:
    """Return one line per change, for people."""
    if not found:
        return "Nothing changed.\n"
    signs = {WORSE: "✗", OTHER: "·", BETTER: "✓"}
    lines = [f"{signs[one.how]} {fold(one.nodes)}: {printable(one.what, 400)}" for one in found]
    worse = sum(one.how == WORSE for one in found)
    last = f"{len(found)} changes, {worse} for the worse" if len(found) > 1 else "1 change"
    return "\n".join([*lines, "", last]) + "\n"
