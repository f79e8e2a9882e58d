"""The report's head: how it stands, on which nodes, with which interpreter, what each has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from doctor.model.finding import Outcome, Severity
from doctor.model.report import NodeSummary, Report
from doctor.report import text as words
from doctor.report.folding import Block, grouped, outcome_counts
from doctor.report.left_out import left_out
from doctor.report.page import Page

VALUES_A_TOPIC = 3
BAD, DOUBTFUL, WARNED, WELL = "bad", "doubtful", "warned", "well"
_STYLES = {BAD: "bold red", DOUBTFUL: "bold magenta", WARNED: "bold yellow", WELL: "bold green"}
_MANY = 8  # more values than this are no longer a comparison


def print_head(page: Page, report: Report, found: Sequence[Block]) -> None:
    """Print the run, how it stands in one line, and the interpreter that was asked."""
    names = [node.name for node in report.nodes]
    reached = sum(node.reached for node in report.nodes)
    title = [f"ncheck {report.version}", f"{words.count(len(names), 'node')}: {words.node_set(names)}"]
    if reached < len(names):
        title.append(f"{reached} of them reached")
    page.say(f" {page.signs.dot} ".join(title), style="bold")
    _caveats(page, report)
    kind, verdict = standing(report, found)
    signs = {BAD: page.signs.bad, DOUBTFUL: page.signs.doubtful, WARNED: page.signs.warned, WELL: page.signs.well}
    page.say(Text(verdict, _STYLES[kind]), Text(f"{signs[kind]} ", _STYLES[kind]))
    _topic(page, "python", {node.name: interpreter(node) for node in report.nodes if node.reached})


def _caveats(page: Page, report: Report) -> None:
    for caveat in caveats(report):
        page.say(caveat, Text(f"{page.signs.warned} ", "bold yellow"))


def caveats(report: Report) -> Iterator[str]:
    """Yield what must be known before anything else is read."""
    if report.dropped:
        every = {*report.dropped, *(node.name for node in report.nodes)}
        yield left_out(report.dropped, len(every))
    if report.interrupted:
        yield "Interrupted: this is what was known so far."
    if report.recorded:
        recorded = [node.name for node in report.nodes if node.recorded]
        which = "" if len(recorded) in (0, len(report.nodes)) else f" ({words.node_set(recorded)})"
        yield f"Recorded, not measured now{which}."


def standing(report: Report, found: Sequence[Block]) -> tuple[str, str]:
    """Return the kind and the words for the whole run; nothing short of passed everywhere is called ready."""
    said = {severity: _said(severity, found) for severity in Severity}
    unsure = _unsure(report)
    if Severity.INFO.value not in report.fail_on:  # it stands below, as on every cluster with Docker
        said[Severity.INFO] = ""
    told = "; ".join(part for part in (*said.values(), unsure) if part)
    if said[Severity.ERROR]:
        return BAD, f"Not ready: {told}"
    lost = [node.name for node in report.nodes if not node.reached]
    if unsure or lost or not outcome_counts(report.verdicts)[Outcome.PASSED]:
        why = told or (f"{words.node_set(lost)} not reached" if lost else "no check could pass")
        return DOUBTFUL, f"Not proven: {why}"
    if told:
        return WARNED, f"No error was found: {told}"
    return WELL, f"Nothing wrong was found: {_well(report)}"


def _well(report: Report) -> str:
    """Return how much that says: "23 checks passed, 4 skipped"."""
    every = {verdict.code for verdict in report.verdicts}
    passed = {verdict.code for verdict in report.verdicts if verdict.outcome is Outcome.PASSED}
    skipped = f", {len(every - passed)} skipped" if every - passed else ""
    return words.count(len(passed), "check") + f" passed{skipped}"


def _said(severity: Severity, found: Sequence[Block]) -> str:
    """Return "2 errors on node04", or nothing."""
    same = [block for block in found if block.severity is severity and not block.ignored]
    nodes = tuple(dict.fromkeys(node for block in same for node in block.nodes))
    return f"{words.count(len(same), severity.value)} on {words.node_set(nodes)}" if same else ""


def _unsure(report: Report) -> str:
    """Return "6 checks could not tell on node04", or nothing."""
    unsure = [one for one in report.verdicts if one.outcome in (Outcome.UNKNOWN, Outcome.CRASHED)]
    nodes = tuple(dict.fromkeys(verdict.node for verdict in unsure))
    checks = words.count(len({verdict.code for verdict in unsure}), "check")
    return f"{checks} could not tell on {words.node_set(nodes)}" if unsure else ""


def print_nodes(page: Page, report: Report) -> None:
    """Print what the nodes have, a line a topic."""
    page.gap()
    page.say("Nodes", style="bold underline")
    for topic, values in topics(report).items():
        _topic(page, topic, values)
    lost = {node.name: node.cause or "no cause known" for node in report.nodes if not node.reached}
    _topic(page, "unreached", lost, always_named=True)


def topics(report: Report) -> dict[str, dict[str, str]]:
    """Return what the reached nodes have, by topic and node."""
    reached = [node for node in report.nodes if node.reached]
    known = dict.fromkeys(topic for node in reached for topic in node.facts)
    return {topic: {node.name: node.facts[topic] for node in reached if topic in node.facts} for topic in known}


def interpreter(node: NodeSummary) -> str:
    return (node.interpreter or "unknown") + (f", in {node.container}" if node.container else "")


def _topic(page: Page, topic: str, values: Mapping[str, str], *, always_named: bool = False) -> None:
    """Print one topic: what all have in one line, what differs with its nodes, the most common first."""
    groups = grouped({name: words.line(value) for name, value in values.items()})
    if len(groups) > _MANY or (len(groups) == len(values) > VALUES_A_TOPIC):
        groups = ((f"{len(groups)} different, such as {groups[0][0]}", groups[0][1]),)
    for number, (value, nodes) in enumerate(groups[:VALUES_A_TOPIC]):
        where = f"{words.node_set(nodes)}: " if len(groups) > 1 or always_named else ""
        label = words.line(topic) if number == 0 else ""
        page.say(Text.assemble((where, "magenta"), value), Text(f"  {label:<10} ", "dim"))
    if rest := groups[VALUES_A_TOPIC:]:
        others = [node for _, nodes in rest for node in nodes]
        page.say(f"{words.count(len(rest), 'other')} on {words.node_set(others)}", " " * 13, style="dim")
