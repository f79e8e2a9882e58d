"""The verdicts for people: what could not be told and why, what was left out, and in few lines what is well."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from doctor.model.finding import Outcome, Verdict
from doctor.model.report import Report
from doctor.report import text as words
from doctor.report.folding import Told, told
from doctor.report.page import Page

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
