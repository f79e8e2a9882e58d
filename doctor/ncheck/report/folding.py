"""What is the same on many nodes, said once: findings, evidence and verdicts folded for people to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.report.text import node_set

_HERE = "\0"  # stands for a node's own name while texts are compared


_WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")  # "node01", "gpu-17.cluster", "10.0.0.7"


@dataclass(frozen=True)
class Block:
    """One finding as it is shown. `example` is the node that `fix` is written for, where every node has its own."""

    code: str
    check: str
    severity: Severity
    ignored: bool
    nodes: tuple[str, ...]
    message: str
    evidence: tuple[str, ...]
    fix: str
    example: str = ""


@dataclass(frozen=True)
class Told:
    """Checks that say the same of the same nodes."""

    reason: str
    checks: tuple[str, ...]
    nodes: tuple[str, ...]


def blocks(findings: Iterable[Finding], known: Collection[str]) -> tuple[Block, ...]:
    """Join findings of one check that differ in nothing but the name of their own node. `known` are all nodes."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.code, finding.severity, finding.ignored, _nameless(finding, finding.message))
        groups.setdefault((*key, _nameless(finding, finding.fix)), []).append(finding)
    return tuple(_block(group, known) for group in groups.values())


def _block(group: Sequence[Finding], known: Collection[str]) -> Block:
    first = group[0]
    nodes = tuple(node for finding in group for node in finding.nodes)
    message, fix = first.message, first.fix
    example = ""
    if len(group) > 1:
        message = _nameless(first, message).replace(_HERE, node_set(nodes))
        example = first.nodes[0] if _HERE in _nameless(first, fix) else ""
    return Block(
        first.code, first.check, first.severity, first.ignored, nodes, message, evidence_of(group, known), fix, example
    )


def evidence_of(group: Sequence[Finding], known: Collection[str]) -> tuple[str, ...]:
    """Return all evidence, each line once; lines "node01: something" that say the same are told of a node set."""
    told: dict[tuple[bool, str], list[str]] = {}
    for finding in group:
        for line in finding.evidence:
            name, colon, rest = line.partition(": ")
            prefixed = bool(colon) and name in known
            key = (prefixed, rest) if prefixed else (False, _nameless(finding, line))
            told.setdefault(key, []).append(name if prefixed else _own_name(finding))
    return tuple(_evidence_line(prefixed, text, names) for (prefixed, text), names in told.items())


def _evidence_line(prefixed: bool, text: str, names: list[str]) -> str:  # noqa: FBT001  one half of a key
    unique = tuple(dict.fromkeys(name for name in names if name))
    return f"{node_set(unique)}: {text}" if prefixed else text.replace(_HERE, node_set(unique) if unique else "")


def _own_name(finding: Finding) -> str:
    return finding.nodes[0] if len(finding.nodes) == 1 else ""


def _nameless(finding: Finding, text: str) -> str:
    """Return the text without its node's own name. Only texts that become equal by this are ever joined."""
    return _without(_own_name(finding), text)


def _without(name: str, text: str) -> str:
    """Return the text without the name, where it stands as a word of its own."""
    if not name or name not in text:
        return text
    return _WORD.sub(lambda word: _HERE if word[0] == name else word[0], text)


def told(verdicts: Iterable[Verdict], wanted: Callable[[Verdict], bool]) -> tuple[Told, ...]:
    """Fold verdicts by reason, then by nodes: the most checks first."""
    nodes_of: dict[tuple[str, str], list[str]] = {}
    kept = [verdict for verdict in verdicts if wanted(verdict)]
    alike = _said_of_several(kept)
    for verdict in kept:
        reason = verdict.reason if verdict.reason in alike else _without(verdict.node, verdict.reason)
        nodes_of.setdefault((reason, verdict.check), []).append(verdict.node)
    checks_of: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (reason, check), nodes in nodes_of.items():
        checks_of.setdefault((reason, tuple(nodes)), []).append(check)
    folded = [
        Told(reason.replace(_HERE, node_set(nodes)), tuple(checks), nodes)
        for (reason, nodes), checks in checks_of.items()
    ]
    return tuple(sorted(folded, key=lambda one: (-len(one.checks), -len(one.nodes))))


def _said_of_several(verdicts: Iterable[Verdict]) -> set[str]:
    """Return the reasons that stand word for word at more nodes than one: a name in them is nobody's own."""
    nodes_of: dict[str, set[str]] = {}
    for verdict in verdicts:
        nodes_of.setdefault(verdict.reason, set()).add(verdict.node)
    return {reason for reason, nodes in nodes_of.items() if len(nodes) > 1}


def outcome_counts(verdicts: Iterable[Verdict]) -> Mapping[Outcome, int]:
    """Count verdicts by outcome."""
    counts = dict.fromkeys(Outcome, 0)
    for verdict in verdicts:
        counts[verdict.outcome] += 1
    return counts


def grouped(values: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Fold node -> value to value -> nodes, what most nodes have first."""
    groups: dict[str, list[str]] = {}
    for node, value in values.items():
        groups.setdefault(value, []).append(node)
    return tuple((value, tuple(nodes)) for value, nodes in sorted(groups.items(), key=lambda one: -len(one[1])))
