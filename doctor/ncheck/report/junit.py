"""The report as JUnit XML, as pytest writes it: a suite per node, a test case per check. CI systems show it as tests.

A check that could not run is an <error>, never a pass, also where --fail-on would accept it. An error is a
<failure>, and so is a warning that --fail-on counts; other warnings, and what --ignore names, are <skipped> with their
message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TextIO
from xml.etree import ElementTree as ET

from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.report import NodeSummary, Report
from ncheck.report import text as words
from ncheck.report.listing import topic_of
from ncheck.report.text import fix_label, fold_findings

_NOTE = "system-out"  # of a test case that passed
_KINDS = ("failure", "error", "skipped")


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  XML has no colours
    """Write the test suites."""
    suites = ET.Element("testsuites", name="ncheck", time=f"{report.seconds:.3f}")
    verdicts: dict[str, list[Verdict]] = {node.name: [] for node in report.nodes}
    for verdict in report.verdicts:
        for name in verdict.nodes:
            verdicts[name].append(verdict)
    findings: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.findings:
        for name in finding.nodes:
            findings.setdefault((finding.code, name), []).append(finding)
    for node in report.nodes:
        suites.append(_suite(report, node.name, list(_cases(report, node, verdicts[node.name], findings))))
    for name, reason in report.dropped.items():
        suites.append(_suite(report, name, [_case(name, "left out by --drop-bad", "error", reason)]))
    if report.interrupted:
        suites.append(_suite(report, "ncheck", [_case("ncheck", "complete run", "error", "interrupted")]))
    for kind in _KINDS:
        suites.set(_plural(kind), str(sum(1 for _ in suites.iter(kind))))
    suites.set("tests", str(sum(1 for _ in suites.iter("testcase"))))
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
    ET.indent(suites)
    stream.write(ET.tostring(suites, encoding="us-ascii", xml_declaration=False).decode() + "\n")


def _suite(report: Report, node: str, cases: Sequence[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=words.line(node), hostname=words.line(node), tests=str(len(cases)))
    for kind in _KINDS:
        suite.set(_plural(kind), str(sum(case.find(kind) is not None for case in cases)))
    if report.time:
        began = datetime.fromisoformat(report.time).astimezone(timezone.utc)
        suite.set("timestamp", began.strftime("%Y-%m-%dT%H:%M:%S"))
    properties = ET.SubElement(suite, "properties")
    for name in ("version", "host", "user", "command"):
        ET.SubElement(properties, "property", name=f"ncheck.{name}", value=words.line(getattr(report, name)))
    suite.extend(cases)
    return suite


def _cases(
    report: Report, node: NodeSummary, verdicts: Sequence[Verdict], findings: Mapping[tuple[str, str], list[Finding]]
) -> Iterator[ET.Element]:
    """Yield a case per check, and one for all checks that could not run because the node was not examined."""
    lost = [verdict for verdict in verdicts if verdict.outcome is Outcome.UNKNOWN and not node.examined]
    if not node.examined:
        how = "not examined" if node.reached else "not reached"
        cause = f"{how}: {node.cause or 'cause unknown'}{': ' if node.detail else ''}{node.detail}"
        yield _case(node.name, "login", "error", f"{cause}; {words.count(len(lost), 'check')} not run")
    unjudged = {verdict.code for verdict in lost}
    for verdict in verdicts:
        if verdict.code not in unjudged:
            kind, found = _result(report, verdict, findings.get((verdict.code, node.name), ()))
            name = f"{verdict.code} {verdict.check}"
            yield _case(f"{node.name}.{topic_of(verdict.code)}", name, kind, verdict.reason, found)


def _result(report: Report, verdict: Verdict, findings: Sequence[Finding]) -> tuple[str, Sequence[Finding]]:
    if verdict.outcome in (Outcome.UNKNOWN, Outcome.CRASHED):
        return "error", ()
    if verdict.outcome is Outcome.SKIPPED:
        return "skipped", ()
    if verdict.outcome is Outcome.PASSED and not findings:
        return "", ()
    counted = [one for one in findings if not one.ignored and one.severity.rank <= _least(report)]
    if counted or not findings:
        return "failure", counted
    noted = all(one.severity is Severity.INFO and not one.ignored for one in findings)
    return _NOTE if noted else "skipped", findings


def _least(report: Report) -> int:
    """Return the rank of the mildest finding that is a failure."""
    return max(severity.rank for severity in Severity if severity is Severity.ERROR or severity.value in report.fail_on)


def _case(group: str, name: str, kind: str, reason: str, findings: Sequence[Finding] = ()) -> ET.Element:
    """Make a test case. `kind` is what is in it: a failure, an error, skipped, a note, or nothing if it passed."""
    case = ET.Element("testcase", classname=words.line(group), name=name, time="0")
    if kind:
        result = ET.SubElement(case, kind)
        if kind != _NOTE:
            result.set("message", words.line(reason))
            result.set("type", findings[0].severity.value if findings else kind)
        if findings:
            result.text = "\n".join(line for finding in findings for line in _body(finding))
    return case


def _body(finding: Finding) -> Iterator[str]:
    label = "ignored" if finding.ignored else finding.severity.value
    yield f"{label} {finding.code} {finding.check}: {words.line(finding.message)}"
    for evidence in finding.evidence:
        yield from (f"  {line}" for line in words.lines(evidence))
    if finding.fix:
        (folded,) = fold_findings([finding])
        yield f"{fix_label(folded)}: {words.line(finding.fix)}"


def _plural(kind: str) -> str:
    return {"failure": "failures", "error": "errors", "skipped": "skipped"}[kind]
