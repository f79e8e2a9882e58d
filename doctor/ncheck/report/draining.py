"""What the commands for a scheduler say alike: the comments on top, which nodes to drain and why, which are good."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ncheck.expression import expression
from ncheck.model.finding import Outcome
from ncheck.model.report import BadNode, Report
from ncheck.report import text as words
from ncheck.report.state import state_of
from ncheck.report.summary import CLEAN, NOT_READY, NOT_VERIFIED, WARNINGS, origin
from ncheck.report.text import grouped
from ncheck.saved_report import drain_reason


_ANSWERS = {NOT_READY: "Not ready", NOT_VERIFIED: "Not verified", WARNINGS: "No errors", CLEAN: "No problems found"}
_UNSAFE = expression(r"[^\w ,.:/@%+=\[\]-]", re.ASCII)  # in a comment that a shell may take for a command


def comments(report: Report) -> Iterator[str]:
    """Yield the answer, where it comes from, and who is not drained although it is not good.

    Somebody pastes these lines, and an interactive zsh has no comments: it runs what follows a semicolon. So no line
    has a word of a node, and none a character that a shell obeys.
    """
    return (f"# {_UNSAFE.sub(' ', one)}".rstrip() for one in _comments(report))


def _comments(report: Report) -> Iterator[str]:
    recorded = " (recorded data, not live)" if report.recorded else ""
    yield f"{_ANSWERS[state_of(report).kind]}{recorded}"
    yield ", ".join(origin(report))
    if report.interrupted:
        yield "interrupted: no node is judged"
    spared = [bad for bad in report.bad if not bad.unknown and bad.node not in report.drain]
    if spared and len(spared) == len(report.nodes) > 1:
        yield "Every node is bad: look for one cause before you drain them all."
    elif spared:
        nodes = words.node_set([bad.node for bad in spared])
        yield f"held back, bad too: {nodes}, --max-drain allows {len(report.drain)} of {len(report.nodes)} nodes"
    unknown = {bad.node: ", ".join(bad.codes) for bad in report.bad if bad.unknown}
    for codes, nodes in grouped(unknown):
        yield f"not drained, unknown: {words.node_set(nodes)}: {codes}"
    if report.dropped:
        yield f"left out by --drop-bad: {words.node_set(list(report.dropped))}"


def reasons(report: Report) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the nodes to drain by reason: "ncheck: NC402 ib-port-polling, NC710 node-slow"."""
    names = {finding.code: finding.check for finding in report.findings}
    return grouped({bad.node: _reason(bad, names) for bad in report.bad if bad.node in report.drain})


def _reason(bad: BadNode, names: Mapping[str, str]) -> str:
    return drain_reason(bad.codes, names) if bad.codes else "ncheck: not reached"


def good(report: Report) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the good nodes by the codes of the checks that they passed, as one text."""
    if report.interrupted:
        return ()
    bad = {bad.node for bad in report.bad} | set(report.dropped)
    passed: dict[str, list[str]] = {node.name: [] for node in report.nodes if node.name not in bad}
    for verdict in report.verdicts:
        if verdict.outcome is Outcome.PASSED:
            for node in verdict.nodes:
                if node in passed:
                    passed[node].append(verdict.code)
    return grouped({node: " ".join(sorted(codes)) for node, codes in passed.items()})
