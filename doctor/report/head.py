"""The report's head: how it stands, on which nodes, with which interpreter, what each has."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from doctor.model.finding import Outcome, Severity
from doctor.model.report import NodeSummary, Report
from doctor.report import text as words
from doctor.report.folding import grouped, outcome_counts
from doctor.report.page import Page

VALUES_A_TOPIC = 3
_MANY = 8  # more values than this are no longer a comparison


def print_head(page: Page, report: Report) -> None:
    """Print the run, the verdict in one line, and what the nodes are."""
    names = [node.name for node in report.nodes]
    reached = sum(node.reached for node in report.nodes)
    title = [f"ncheck {report.version}", f"{words.count(len(names), 'node')}: {words.node_set(names)}"]
    if reached < len(names):
        title.append(f"{reached} of them reached")
    page.say(f" {page.signs.dot} ".join(title), style="bold")
    _caveats(page, report)
    sign, style, verdict = _standing(page, report)
    page.say(Text(verdict, style), Text(f"{sign} ", style))
    page.gap()
    _nodes(page, report)


def _caveats(page: Page, report: Report) -> None:
    if report.interrupted:
        page.say("Interrupted: this is what was known so far.", Text(f"{page.signs.warned} ", "bold yellow"))
    if report.recorded:
        recorded = [node.name for node in report.nodes if node.recorded]
        which = "" if len(recorded) == len(report.nodes) else f" ({words.node_set(recorded)})"
        page.say(f"Recorded, not measured now{which}.", Text(f"{page.signs.warned} ", "bold yellow"))


def _standing(page: Page, report: Report) -> tuple[str, str, str]:
    """Return sign, style and words for the whole run; nothing short of passed everywhere is called ready."""
    counts = Counter(finding.severity for finding in report.findings if not finding.ignored)
    outcomes = outcome_counts(report.verdicts)
    said = [words.count(counts[severity], severity.value) for severity in Severity if counts[severity]]
    if unsure := outcomes[Outcome.UNKNOWN] + outcomes[Outcome.CRASHED]:
        said.append(f"{words.count(unsure, 'verdict')} unknown")
    found = ", ".join(said)
    if counts[Severity.ERROR]:
        return page.signs.bad, "bold red", f"Not ready: {found}"
    if unsure or not outcomes[Outcome.PASSED]:
        return page.signs.doubtful, "bold magenta", f"Not proven: {found or 'no check could pass'}"
    if counts[Severity.WARNING]:
        return page.signs.warned, "bold yellow", f"Ready, with care: {found}"
    return page.signs.well, "bold green", "Ready: nothing wrong was found"


def _nodes(page: Page, report: Report) -> None:
    reached = [node for node in report.nodes if node.reached]
    _topic(page, "python", {node.name: _interpreter(node) for node in reached})
    for topic in dict.fromkeys(topic for node in reached for topic in node.facts):
        _topic(page, topic, {node.name: node.facts[topic] for node in reached if topic in node.facts})
    _topic(page, "unreached", {node.name: node.cause or "no cause known" for node in report.nodes if not node.reached})


def _interpreter(node: NodeSummary) -> str:
    return (node.interpreter or "unknown") + (f", in {node.container}" if node.container else "")


def _topic(page: Page, topic: str, values: dict[str, str]) -> None:
    """Print one topic: what all have in one line, what differs with its nodes, the most common first."""
    groups = grouped({name: words.line(value) for name, value in values.items()})
    if len(groups) > _MANY or (len(groups) == len(values) > VALUES_A_TOPIC):
        groups = ((f"{len(groups)} different, such as {groups[0][0]}", groups[0][1]),)
    for number, (value, nodes) in enumerate(groups[:VALUES_A_TOPIC]):
        where = f"  {words.node_set(nodes)}" if len(groups) > 1 else ""
        label = words.line(topic) if number == 0 else ""
        page.say(Text.assemble(value, (where, "magenta")), Text(f"  {label:<10} ", "dim"))
    if rest := groups[VALUES_A_TOPIC:]:
        others = [node for _, nodes in rest for node in nodes]
        page.say(f"{words.count(len(rest), 'other')} on {words.node_set(others)}", " " * 13, style="dim")
