"""What the commands for a scheduler say alike: the comments on top, which nodes to drain and why, which are good."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncheck.expression import expression
from ncheck.model.finding import Outcome
from ncheck.model.report import Report
from ncheck.model.state import state_of
from ncheck.report import text as words
from ncheck.report.summary import origin, words_of_state
from ncheck.report.text import grouped
from ncheck.saved_report import drain_reason

# Of a node that was not reached: what other nodes say.
_FROM_HERE = {
    True: "not reached from here, but other nodes reach it",
    False: "not reached",
    None: "not reached from here, and no other node was asked",
}
REACHED = "reached"  # among the codes of what a node passed: it was reached, and all checks ran
_UNSAFE = expression(r"[^\w ,.:/@%+=\[\]-]", re.ASCII)  # in a comment that a shell may take for a command


def comments(report: Report) -> Iterator[str]:
    """Yield the answer, where it comes from, and who is not drained although it is not good.

    Somebody pastes these lines, and an interactive zsh has no comments: it runs what follows a semicolon. So no line
    has a word of a node, and none a character that a shell obeys.
    """
    return (f"# {_UNSAFE.sub(' ', one)}".rstrip() for one in _comments(report))


def _comments(report: Report) -> Iterator[str]:
    recorded = " (recorded data, not live)" if report.recorded else ""
    yield f"{words_of_state(report, state_of(report))}{recorded}"
    yield ", ".join(origin(report))
    if report.interrupted:
        yield "interrupted: no node is judged"
    spared = [bad.node for bad in report.bad if bad.proved and bad.node not in report.drain]
    if spared and len(spared) == len(report.nodes) > 1:
        yield "Every node is bad: look for one cause before you drain them all."
    elif spared:
        allowed = f"--max-drain allows {len(report.drain)} of {len(report.nodes)} nodes"
        yield f"held back, bad too: {words.node_set(spared)}, {allowed}"
    lost = {node.name: _FROM_HERE[node.peers_reach] for node in report.nodes if not node.reached}
    others = {
        bad.node: ", ".join(bad.codes) or lost.get(bad.node, "")
        for bad in report.bad
        if not (bad.proved or bad.unknown)
    }
    for codes, nodes in grouped(others):
        yield f"not drained, no fault of the node is proved: {words.node_set(nodes)}: {codes}"
    unknown = {bad.node: ", ".join(bad.codes) for bad in report.bad if bad.unknown}
    for codes, nodes in grouped(unknown):
        yield f"not drained, unknown: {words.node_set(nodes)}: {codes}"
    if report.dropped:
        yield f"left out by --drop-bad: {words.node_set(list(report.dropped))}"


def codes_of(report: Report) -> dict[str, tuple[str, ...]]:
    """Return why each node is drained: the codes of faults of its hardware; none where it was not reached."""
    hardware = {finding.code for finding in report.findings if finding.hardware}
    return {
        bad.node: tuple(code for code in bad.codes if code in hardware)
        for bad in report.bad
        if bad.node in report.drain
    }


def reasons(report: Report) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the nodes to drain by reason: "ncheck: NC402 ib-port-polling, NC710 node-slow"."""
    names = {finding.code: finding.check for finding in report.findings}
    return grouped(
        {
            node: drain_reason(codes, names) if codes else "ncheck: not reached"
            for node, codes in codes_of(report).items()
        }
    )


def good(report: Report) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the good nodes by the codes of the checks that they passed, as one text.

    What was drained because it was not reached needs all checks: a run of some does not say that it is well again.
    """
    if report.interrupted:
        return ()
    bad = {bad.node for bad in report.bad} | set(report.dropped)
    every = () if report.select else (REACHED,)
    passed: dict[str, list[str]] = {node.name: [*every] for node in report.nodes if node.name not in bad}
    for verdict in report.verdicts:
        if verdict.outcome is Outcome.PASSED:
            for node in verdict.nodes:
                if node in passed:
                    passed[node].append(verdict.code)
    return grouped({node: " ".join(sorted(codes)) for node, codes in passed.items()})
