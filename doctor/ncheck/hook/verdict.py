"""The verdict on a job: what its report means for the ranks, as a small record of JSON that every rank gets.

    {"stop": an error of the job was found, "unsure": with strict, the report is not clean,
     "short": lines for an exception, "warning": one line or "",
     "missing": ranks did not come, "ranks": checks of ranks are selected, and nothing is ignored,
     "note": what a quick bandwidth test measured,
     "page": the report for rank 0, "" where all is well,
     "env": {variable: value} of the plan, "per_node": {node: {variable: value}}, "nodes": {node: [its ranks]},
     "report": zlib over the report's JSON, in base64}

or {"refused": why} where the settings are wrong. The hub adds "late": what is wrong with ranks that came meanwhile.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from ncheck.facts.ranks import RanksFacts
from ncheck.hook.meeting.wire import LARGEST_FROM_HUB, few_values
from ncheck.hook.preflight import MOST_LINES, STOPPED
from ncheck.model.check import Check
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import Report
from ncheck.model.state import unreached_and_unknown
from ncheck.report.json import as_json
from ncheck.report.summary import names_in, urgency
from ncheck.report.text import FoldedFinding, count, fix_label, fold_findings, line, node_set
from ncheck.steps.blockers import measures, mended

MOST_BYTES = 4 * 1024 * 1024  # of the packed report: every rank gets it
WIDTH, WHOLE = 100, 3  # of the short text: columns, findings that are shown with their fix
LONGEST_FIX = 200  # characters: a fix is never cut, it could not be copied


def verdict_of(
    report: Report, checks: Sequence[Check], ranks: Mapping[str, RanksFacts], request: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what all ranks are to know."""
    applied = _applied(report, checks, request)
    errors = [one for one in report.findings if one.severity is Severity.ERROR and not one.ignored]
    harmless = {check.code for check in checks if _harmless(check, report)}
    stopping = [one for one in errors if one.code not in harmless and one.code not in applied]
    of_ranks = {check.code for check in checks if "RanksFacts" in check.listed.reads}
    unsure = bool(request["strict"]) and report.exit_code != 0
    return {
        "stop": bool(stopping),
        "unsure": unsure,
        "short": _short(report, stopping) if stopping or unsure else "",
        "warning": _warning(_unmeasured(report, checks), stopping, applied),
        "note": _measured(report) if request["probe"] == "quick" else "",
        "missing": any(facts.missing or facts.homeless for facts in ranks.values()),
        "ranks": not request["ignore"] and any(one.code in of_ranks for one in report.verdicts),
        "page": _page(report, int(request["columns"])) if stopping or unsure else "",
        "env": _values(report.plan.env),
        "per_node": {node: _values(settings) for node, settings in report.plan.per_node.items()},
        "nodes": {name: list(facts.came) for name, facts in ranks.items()},
        "report": packed(report),
    }


def _harmless(check: Check, report: Report) -> bool:
    """Whether an error of this check is no reason to stop a job that runs.

    That is trouble of ncheck itself and of its connections; what was measured in a hurry, while the ranks start; and on
    one node a choice among networks, of which it needs none.
    """
    own = check.about_ncheck or check.says_unreached or check.explains_unreached
    alone = len(report.nodes) == 1 and bool(check.mended_by) and not check.matters_alone
    return own or alone or measures(check.listed)


def _applied(report: Report, checks: Sequence[Check], request: Mapping[str, Any]) -> dict[str, str]:
    """Return the checks, code to variable, whose findings the ranks mend themselves: preflight(apply=True)."""
    free = [check for check in checks if request["apply"] and check.mended_by not in request["variables"]]
    return {check.code: check.mended_by for check in free if mended(check, report) and len(report.nodes) > 1}


def _values(settings: Mapping[str, Setting]) -> dict[str, str]:
    return {name: one.value for name, one in settings.items() if one.value is not None and one.decided}


# The short text


def _short(report: Report, stopping: Sequence[Finding]) -> str:
    found = sorted(fold_findings(stopping), key=urgency)
    lines = [f"{STOPPED}: {count(len(found), 'error') if found else 'not verified, and strict is set'}"]
    for one in found[:WHOLE]:
        lines += _of_finding(one)
    if len(found) > WHOLE:
        codes = ", ".join(dict.fromkeys(one.code for one in found[WHOLE:]))
        lines += _wrapped(f"and {len(found) - WHOLE} more: {codes}")
    if not found:
        lines += _of_unknown(report)
    return "\n".join(lines[:MOST_LINES])


def _of_finding(one: FoldedFinding) -> list[str]:
    fix = one.fix if len(one.fix) <= LONGEST_FIX else f"ncheck explain {one.code}"
    return [
        *_wrapped(f"{one.code} {one.check} on {node_set(one.nodes)}: {line(one.message)}"),
        f"  {fix_label(one)}: {fix}",
        *([] if fix.startswith("ncheck explain") else [f"  more: ncheck explain {one.code}"]),
    ]


def _of_unknown(report: Report) -> list[str]:
    """Return lines on what is not known, which strict does not let pass."""
    lost, unknown = unreached_and_unknown(report)
    reasons: dict[str, list[str]] = {}
    for one in (*unknown, *lost):
        reasons.setdefault(one.reason, []).extend(one.nodes)
    nodes = [f"unknown on {node_set(dict.fromkeys(names))}: {line(why)}" for why, names in reasons.items()]
    found = [f"{one.code} {one.check}: {line(one.message)}" for one in report.findings if not one.ignored]
    return [row for text in (*found, *nodes) for row in _wrapped(text)]


def _wrapped(text: str) -> list[str]:
    """Return the text in two lines at most."""
    return wrap(text, WIDTH, subsequent_indent="  ", max_lines=2, placeholder=" ...", break_on_hyphens=False)


def _warning(report: Report, stopping: Sequence[Finding], applied: Mapping[str, str]) -> str:
    """Return one line on what is wrong and stops no job: findings, and what could not be checked."""
    reported = {one.code for one in stopping}
    found = [one for one in report.findings if not one.ignored and one.severity is not Severity.INFO]
    rest = sorted(fold_findings([one for one in found if one.code not in reported]), key=urgency)
    parts = [f"{one.code} {one.check} on {node_set(one.nodes)}: {line(one.message)}" for one in rest[:1]]
    parts += [f"{applied[rest[0].code]} is set for this job"] if rest and rest[0].code in applied else []
    parts += [f"also {', '.join(dict.fromkeys(one.code for one in rest[1:]))}"] if rest[1:] else []
    parts += [f"ncheck explain {rest[0].code}"] if rest else _not_checked(report)
    return "; ".join(parts)


def _unmeasured(report: Report, checks: Sequence[Check]) -> Report:
    """Return the report without what could not be measured: the note says it."""
    codes = {check.code for check in checks if measures(check.listed)}
    kept = (one for one in report.verdicts if one.code not in codes or one.outcome is not Outcome.UNKNOWN)
    return replace(report, verdicts=tuple(kept))


def _not_checked(report: Report) -> list[str]:
    """Return which nodes were not checked, or not wholly, and the first reason."""
    lost, unknown = unreached_and_unknown(report)
    missed = [*lost, *unknown]
    if not missed:
        return []
    nodes, checks = names_in(missed), {one.code for one in missed}
    return [f"{count(len(checks), 'check')} could not run on {node_set(nodes)}: {line(missed[0].reason)}"]


def _measured(report: Report) -> str:
    """Return one line on the bandwidth test that the job asked for: the last measurement is that of most nodes."""
    measured = [one for one in report.measurements if one.measured is not None]
    if not measured:
        return line(report.probe.sentence)
    last = measured[-1]
    expected = "" if last.expected is None else f", {last.expected:.3g} expected"
    return line(f"{last.what}: {last.measured:.3g} {last.unit}{expected} ({last.by})")


def _page(report: Report, columns: int) -> str:
    from ncheck.report.console import print_brief
    from ncheck.report.page import Sheet

    sheet = Sheet(columns)
    print_brief(replace(report, plan=LaunchPlan()), sheet, {"TERM": "dumb"}, color=False)
    return sheet.getvalue()


# The report on the wire


def packed(report: Report) -> str:
    """Return a report as text. One that is too large loses the verdicts that say nothing: passed and skipped."""
    data = as_json(report).encode()
    text = base64.b64encode(zlib.compress(data, 6)).decode()
    if len(text) <= MOST_BYTES and len(data) <= LARGEST_FROM_HUB and few_values(data):
        return text
    quiet = (Outcome.PASSED, Outcome.SKIPPED)
    telling = tuple(one for one in report.verdicts if one.outcome not in quiet)
    return packed(replace(report, verdicts=telling)) if len(telling) < len(report.verdicts) else ""
