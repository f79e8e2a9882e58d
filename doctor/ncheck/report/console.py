"""The report for people: what is wrong first, in plain words, each with something to type; what is well in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from rich.text import Text

from ncheck.errors import EXIT_CLEAN, EXIT_INTERRUPTED
from ncheck.model.finding import Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import NodeSummary, Report
from ncheck.parity import nodes_by_value
from ncheck.report import text as words
from ncheck.report.folding import Block, Told, blocks, grouped, outcome_counts, told
from ncheck.report.listing import topic_of
from ncheck.report.measured import print_measured
from ncheck.report.page import Page
from ncheck.text import export_line

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}


EVIDENCE_LINES = 4


BLOCKS_A_CHECK = 3


NOT_REACHED = "NC001"


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the whole report, worst first."""
    page = Page(stream, environ, color=color)
    found = blocks(report.findings, {node.name for node in report.nodes})
    print_head(page, report, found)
    print_findings(page, found)
    print_verdicts(page, report)
    print_nodes(page, report)
    print_measured(page, report)
    print_tail(page, report, found)


def print_findings(page: Page, found: Sequence[Block]) -> None:
    """Print the categories that have findings: the one with the worst first, what was ignored last."""
    categories: dict[str, list[Block]] = {}
    for block in found:
        categories.setdefault(topic_of(block.code), []).append(block)
    explained = frozenset(node for block in found if block.code.startswith("NC1") for node in block.nodes)
    for topic, members in sorted(categories.items(), key=lambda one: min(badness(block) for block in one[1])):
        page.gap()
        page.say(topic, style="bold underline")
        _category(page, sorted(members, key=badness), explained)


def _category(page: Page, found: Sequence[Block], explained: frozenset[str]) -> None:
    """Print a category's findings by check. That a node was not reached is one line where the cause stands above."""
    by_check: dict[tuple[str, bool], list[Block]] = {}
    for block in found:
        by_check.setdefault((block.code, block.ignored), []).append(block)
    for same in by_check.values():
        nodes = _nodes_of(same)
        if same[0].code == NOT_REACHED and explained.issuperset(nodes):
            _title(page, replace(same[0], nodes=nodes))
            page.say("the cause stands above", "    ", style="dim")
        else:
            _check(page, same)


def _check(page: Page, same: Sequence[Block]) -> None:
    for block in same[:BLOCKS_A_CHECK]:
        _title(page, block)
        _body(page, block)
    if rest := same[BLOCKS_A_CHECK:]:
        more = f"and {words.count(len(rest), 'more finding')} of {rest[0].check}, each in other words, on "
        page.say(f"{more}{words.node_set(_nodes_of(rest))}; -o json has them all", "    ", style="dim")


def _nodes_of(same: Sequence[Block]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for block in same for node in block.nodes))


def badness(block: Block) -> tuple[bool, int, bool, str]:
    """Sort key: what stands before what is ignored, the worst first, causes before ncheck's own summary of them."""
    return block.ignored, block.severity.rank, block.code.startswith("NC0"), block.code


def _title(page: Page, block: Block) -> None:
    style = "dim" if block.ignored else STYLES[block.severity]
    sign = page.signs.bad if block.severity is Severity.ERROR and not block.ignored else page.signs.warned
    label = "ignored" if block.ignored else block.severity.value
    nodes = words.node_set(block.nodes)
    title = Text.assemble((f"{label} ", style), (f"{block.code} {block.check}", "bold"), "  ", (nodes, "bold magenta"))
    page.say(title, Text(f"  {sign} ", style=style))


def _body(page: Page, block: Block) -> None:
    page.say(words.line(block.message), "    ")
    for evidence in block.evidence[:EVIDENCE_LINES]:
        for line in words.lines(evidence)[:EVIDENCE_LINES]:
            page.say(line, "      ", style="dim")
    if len(block.evidence) > EVIDENCE_LINES:
        more = words.count(len(block.evidence) - EVIDENCE_LINES, "more line")
        page.say(f"... {more}: -o json has them all", "      ", style="dim")
    _fix(page, block)


def _fix(page: Page, block: Block) -> None:
    for line in words.lines(block.fix):
        page.verbatim(line, Text(f"    {page.signs.type_this} ", style="green"), style="bold green")
    if block.example and len(block.nodes) > 1:
        page.say(f"that is for {words.line(block.example)}; likewise for the others", "      ", style="dim")


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


def print_tail(page: Page, report: Report, found: Sequence[Block]) -> None:
    """Print the plan, why no probe ran, the sum and what the exit code means."""
    wrong = any(block.severity is Severity.ERROR and not block.ignored for block in found)
    _plan(page, report, "Plan, once what is wrong above is mended" if wrong else "Plan")
    _no_probe(page, report)
    page.gap()
    page.say(f" {page.signs.dot} ".join(summed(report, found)), style="bold")
    page.say(f"exit code {report.exit_code}: {meaning(report)}", style="bold")


def _plan(page: Page, report: Report, heading: str) -> None:
    plan = report.plan
    if not (plan.env or plan.lines or plan.notes):
        return
    page.gap()
    page.say(heading, style="bold underline")
    for name, setting in plan.env.items():
        _setting(page, plan, name)
        page.say(words.line(setting.reason), "      ", style="dim")
    for launcher, line in plan.lines.items():
        page.say(f"with {words.line(launcher)}:", "  ")
        for part in words.lines(line):
            page.verbatim(part, style="bold green")
        for reason in plan.reasons.get(launcher, ()):
            page.say(words.line(reason), "      ", style="dim")
    for note in plan.notes:
        page.say(words.line(note), Text(f"  {page.signs.warned} ", "yellow"))


def _setting(page: Page, plan: LaunchPlan, name: str) -> None:
    """Print a variable's value for all nodes, or those of each, or why it has none."""
    setting = plan.env[name]
    own = {node: held[name].value or "" for node, held in plan.per_node.items() if name in held}
    if setting.value is not None:
        page.verbatim(export_line(words.line(name), words.line(setting.value)), "  ", style="bold")
    elif own:
        for value, nodes in nodes_by_value(own).items():
            page.verbatim(
                f"{export_line(words.line(name), words.line(value))}  # on {words.node_set(nodes)}", "  ", style="bold"
            )
    else:
        page.say(f"{words.line(name)} {'can stay unset' if setting.decided else 'is not decided'}", "  ")


def _no_probe(page: Page, report: Report) -> None:
    """Say why nothing was measured, where nothing was; what was measured has a section of its own."""
    if not report.probe.ran:
        page.gap()
        page.say(words.line(report.probe.reason), Text(f"{page.signs.skipped} ", "dim"), style="dim")


def summed(report: Report, found: Sequence[Block]) -> tuple[str, ...]:
    counts = Counter(block.severity for block in found if not block.ignored)
    ignored = sum(block.ignored for block in found)
    parts = [words.count(counts[severity], severity.value) for severity in (Severity.ERROR, Severity.WARNING)]
    parts += [f"{counts[Severity.INFO]} info"] if counts[Severity.INFO] else []
    parts += [f"{ignored} ignored"] if ignored else []
    told = ", ".join(_outcomes(report.verdicts))
    return ", ".join(parts), f"{words.count(len(report.verdicts), 'verdict')}: {told}", f"{report.seconds:.1f} s"


def _outcomes(verdicts: Sequence[Verdict]) -> Iterator[str]:
    needs_root = sum(verdict.needs_root for verdict in verdicts)
    for outcome, number in outcome_counts(verdicts).items():
        if number:
            rootless = f" ({needs_root} for want of root)" if outcome is Outcome.SKIPPED and needs_root else ""
            yield f"{number} {outcome.value}{rootless}"


def meaning(report: Report) -> str:
    rule = f"(--fail-on {','.join(report.fail_on) or 'none'})"
    unknown = any(verdict.outcome is Outcome.UNKNOWN for verdict in report.verdicts)
    standing = [finding for finding in report.findings if not finding.ignored]
    if report.exit_code == EXIT_INTERRUPTED:
        return "interrupted"
    if report.exit_code == EXIT_CLEAN:
        return f"nothing above counts as failed {rule}" if standing or unknown else "clean"
    if any(finding.severity.value in report.fail_on for finding in standing) or not unknown:
        return f"what was found above counts as failed {rule}"
    return f"what could not be told counts as failed {rule}"


REASONS = 6  # lines of what could not be told


SKIP_REASONS = 4  # reasons in one line of what was skipped


NAMES = 3  # checks are named up to so many, and counted beyond


NODE_SETS = 2


LONGEST_REASON = 72  # characters of why something was skipped


_ABSENT = "absent: "


def print_verdicts(page: Page, report: Report) -> None:
    """Print crashed, unknown, skipped and passed verdicts, each folded by its reason and its nodes."""
    page.gap()
    signs = page.signs
    by_outcome = {outcome: _told_of(report, outcome) for outcome in Outcome}
    _doubts(page, Text(f"{signs.bad} ", "bold red"), by_outcome[Outcome.CRASHED], "crashed on")
    _doubts(page, Text(f"{signs.doubtful} ", "bold magenta"), by_outcome[Outcome.UNKNOWN], "could not tell on")
    _needs_root(page, [verdict for verdict in report.verdicts if verdict.needs_root])
    _skipped(page, by_outcome[Outcome.SKIPPED])
    _passed(page, by_outcome[Outcome.PASSED])


def _told_of(report: Report, outcome: Outcome) -> tuple[Told, ...]:
    return told(report.verdicts, lambda verdict: verdict.outcome is outcome and not verdict.needs_root)


def _doubts(page: Page, sign: Text, folded: Sequence[Told], what: str) -> None:
    for one in folded[:REASONS]:
        names = ", ".join(one.checks) if len(one.checks) <= NAMES else words.count(len(one.checks), "check")
        page.say(f"{names} {what} {words.node_set(one.nodes)}: {words.line(one.reason)}", sign)
    if rest := folded[REASONS:]:
        checks = {check for one in rest for check in one.checks}
        nodes = tuple(dict.fromkeys(node for one in rest for node in one.nodes))
        page.say(f"{words.count(len(checks), 'check')} {what} {words.node_set(nodes)} for "
                 f"{words.count(len(rest), 'more reason')}: -o json has them all", sign)  # fmt: skip


def _needs_root(page: Page, verdicts: Sequence[Verdict]) -> None:
    if not verdicts:
        return
    checks = tuple(dict.fromkeys(verdict.check for verdict in verdicts))
    nodes = tuple(dict.fromkeys(verdict.node for verdict in verdicts))
    skipped = f"{words.count(len(checks), 'check')} skipped on {words.node_set(nodes)}: "
    _dim(page, f"{skipped}root is needed (--sudo): {words.joined(checks, NAMES)}")


def _skipped(page: Page, folded: Sequence[Told]) -> None:
    """Print one line a node set: what is not there cannot be checked, and need not be read one by one."""
    by_nodes: dict[tuple[str, ...], list[Told]] = {}
    for one in folded:
        by_nodes.setdefault(one.nodes, []).append(one)
    ordered = sorted(by_nodes.items(), key=lambda group: -sum(len(one.checks) for one in group[1]))
    for nodes, same in ordered[:NODE_SETS]:
        number = sum(len(one.checks) for one in same)
        skipped = f"{words.count(number, 'check')} skipped on {words.node_set(nodes)}"
        _dim(page, f"{skipped}, nothing to check{_why(same)}")
    if rest := {check for _, same in ordered[NODE_SETS:] for one in same for check in one.checks}:
        _dim(page, f"{words.count(len(rest), 'check')} skipped on other sets of nodes: -o json has them all")


def _why(same: Sequence[Told]) -> str:
    """Return the reasons that spare more checks than one, such as hardware that is not there; others -o json has."""
    reasons = [f"{_short(words.line(one.reason.removeprefix(_ABSENT)))} ({len(one.checks)})" for one in same]
    telling = sum(len(one.checks) > 1 for one in same)
    return f": {words.joined(reasons, min(telling, SKIP_REASONS))}" if telling else " (-o json says why)"


def _short(reason: str) -> str:
    """Cut a reason that would be most of the page."""
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON].rsplit(' ', 1)[0]} ..."


def _passed(page: Page, folded: Sequence[Told]) -> None:
    sign = Text(f"{page.signs.well} ", "bold green")
    ordered = sorted(folded, key=lambda one: (-len(one.nodes), -len(one.checks)))
    shown = ordered if len(ordered) <= NODE_SETS else ordered[:1]
    for one in shown:
        page.say(f"{words.count(len(one.checks), 'check')} passed on {words.node_set(one.nodes)}", sign)
    if rest := ordered[len(shown) :]:
        more = words.count(sum(len(one.checks) for one in rest), "more check")
        page.say(f"{more} passed on some of the nodes only", sign)


def _dim(page: Page, text: str) -> None:
    page.say(text, Text(f"{page.signs.skipped} ", "dim"), style="dim")


def print_brief(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the head and the findings."""
    page = Page(stream, environ, color=color)
    found = blocks(report.findings, {node.name for node in report.nodes})
    print_head(page, report, found)
    print_findings(page, found)
    page.gap()


_LONGEST = 300  # characters of one reason: a node's own words may be in it


def left_out(bad: Mapping[str, str], total: int) -> str:
    """Say what is left of all: "15 of 16, without node07: NC402 ...". What is bad for one reason is named together."""
    reasons = "; ".join(f"{words.node_set(nodes)}: {words.line(why)[:_LONGEST]}" for why, nodes in grouped(dict(bad)))
    return f"{total - len(bad)} of {total}, without {reasons}"
