"""The verdict on a job: what its report means for the ranks, as a small record of JSON that every rank gets.

    {"stop": an error of the job was found, "unsure": with strict, the report is not clean,
     "short": lines for an exception, "warning": one line or "", "page": the report for rank 0, "" where all is well,
     "env": {variable: value} of the plan, "per_node": {node: {variable: value}}, "nodes": {node: [its ranks]},
     "report": zlib over the report's JSON, in base64}

or {"refused": why} where the settings are wrong.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ncheck.blockers import mended
from ncheck.facts.ranks import RanksFacts
from ncheck.model.check import Check
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.plan import Setting
from ncheck.model.report import Report
from ncheck.report.json import as_json
from ncheck.report.summary import unreached_and_unknown, urgency
from ncheck.report.text import FoldedFinding, fold_findings, line, node_set
from ncheck.text import export_line

MOST_BYTES = 4 * 1024 * 1024  # of the packed report: every rank gets it
WIDTH, MOST_LINES, WHOLE = 100, 12, 3  # of the short text: columns, lines, findings that are shown with their fix


def verdict_of(
    report: Report, checks: Sequence[Check], ranks: Mapping[str, RanksFacts], request: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what all ranks are to know."""
    applied = _applied(report, checks, request)
    errors = [one for one in report.findings if one.severity is Severity.ERROR and not one.ignored]
    own = {check.code for check in checks if check.about_ncheck or check.says_unreached or check.explains_unreached}
    harmless = {check.code for check in checks if _harmless(check, report)}
    stopping = [one for one in errors if one.code not in own | harmless and one.code not in applied]
    unsure = bool(request["strict"]) and report.exit_code != 0
    fixes = _fixes(report, checks)
    return {
        "stop": bool(stopping),
        "unsure": unsure,
        "short": _short(report, stopping, fixes) if stopping or unsure else "",
        "warning": _warning(report, stopping, applied),
        "page": _page(report, int(request["columns"])) if stopping or unsure else "",
        "env": _values(report.plan.env),
        "per_node": {node: _values(settings) for node, settings in report.plan.per_node.items()},
        "nodes": {name: list(facts.came) for name, facts in ranks.items()},
        "report": packed(report),
    }


def _harmless(check: Check, report: Report) -> bool:
    """Whether what the check finds does no harm to a job on one node, which needs no network between nodes."""
    return len(report.nodes) == 1 and bool(check.mended_by) and not check.matters_alone


def _applied(report: Report, checks: Sequence[Check], request: Mapping[str, Any]) -> dict[str, str]:
    """Return the checks, code to variable, whose findings the ranks mend themselves: preflight(apply=True)."""
    free = [check for check in checks if request["apply"] and check.mended_by not in request["variables"]]
    return {check.code: check.mended_by for check in free if mended(check, report) and len(report.nodes) > 1}


def _values(settings: Mapping[str, Setting]) -> dict[str, str]:
    return {name: one.value for name, one in settings.items() if one.value is not None and one.decided}


def _fixes(report: Report, checks: Sequence[Check]) -> dict[str, str]:
    """Return the line that mends what a check finds, where the plan has the variable for it."""
    env = _values(report.plan.env)
    return {
        check.code: export_line(check.mended_by, env[check.mended_by]) for check in checks if check.mended_by in env
    }


# The short text


def _short(report: Report, stopping: Sequence[Finding], fixes: Mapping[str, str]) -> str:
    found = sorted(fold_findings(stopping), key=urgency)
    count = f"{len(found)} error{'s' * (len(found) != 1)}" if found else "not verified (strict)"
    lines = [_cut(f"ncheck stopped this job before it started: {count}")]
    for one in found[:WHOLE]:
        lines += _of_finding(one, fixes)
    if len(found) > WHOLE:
        codes = ", ".join(dict.fromkeys(one.code for one in found[WHOLE:]))
        lines.append(_cut(f"and {len(found) - WHOLE} more: {codes}"))
    if not found:
        lines += _of_unknown(report)
    return "\n".join(lines[:MOST_LINES])


def _of_finding(one: FoldedFinding, fixes: Mapping[str, str]) -> list[str]:
    fix = fixes.get(one.code) or one.fix
    where = "" if one.code in fixes or not one.where or one.where == "here" else f" (on {one.where})"
    shown = fix if len(fix) <= 2 * WIDTH else f"ncheck explain {one.code}"
    return [
        _cut(f"{one.code} {one.check} on {node_set(one.nodes)}: {line(one.message)}"),
        f"  {'look' if one.kind == 'look' and one.code not in fixes else 'fix'}: {shown}{where}",
        f"  more: ncheck explain {one.code}",
    ]


def _of_unknown(report: Report) -> list[str]:
    """Return lines on what is not known, which strict does not let pass."""
    lost, unknown = unreached_and_unknown(report)
    reasons: dict[str, list[str]] = {}
    for one in (*unknown, *lost):
        reasons.setdefault(one.reason, []).append(one.node)
    nodes = [_cut(f"unknown on {node_set(dict.fromkeys(names))}: {line(why)}") for why, names in reasons.items()]
    found = [_cut(f"{one.code} {one.check}: {line(one.message)}") for one in report.findings if not one.ignored]
    return [*found, *nodes]


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def _warning(report: Report, stopping: Sequence[Finding], applied: Mapping[str, str]) -> str:
    """Return one line on what is wrong and stops no job: findings, and checks that crashed."""
    told = {one.code for one in stopping}
    found = [one for one in report.findings if not one.ignored and one.severity is not Severity.INFO]
    rest = sorted(fold_findings([one for one in found if one.code not in told]), key=urgency)
    crashed = sorted({one.code for one in report.verdicts if one.outcome is Outcome.CRASHED})
    parts = [f"{one.code} {one.check} on {node_set(one.nodes)}: {line(one.message)}" for one in rest[:1]]
    parts += [f"and {', '.join(sorted({one.code for one in rest[1:]}))}"] if rest[1:] else []
    if rest and rest[0].code in applied:
        parts.append(f"{applied[rest[0].code]} is set for this job")
    if crashed and not rest:
        parts.append(f"checks crashed: {', '.join(crashed)}")
    more = f"; ncheck explain {rest[0].code}" if rest else ""
    return "; ".join(parts) + more if parts else ""


def _page(report: Report, columns: int) -> str:
    from ncheck.report.console import print_brief
    from ncheck.report.page import Sheet

    sheet = Sheet(columns)
    print_brief(report, sheet, {"TERM": "dumb"}, color=False)
    return sheet.getvalue()


# The report on the wire


def packed(report: Report) -> str:
    """Return a report as text. One that is too large loses the verdicts that say nothing: passed and skipped."""
    text = base64.b64encode(zlib.compress(as_json(report).encode(), 6)).decode()
    if len(text) <= MOST_BYTES:
        return text
    quiet = (Outcome.PASSED, Outcome.SKIPPED)
    telling = tuple(one for one in report.verdicts if one.outcome not in quiet)
    return packed(replace(report, verdicts=telling)) if len(telling) < len(report.verdicts) else ""
