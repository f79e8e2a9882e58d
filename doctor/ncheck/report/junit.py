"""The report as JUnit XML, as pytest writes it: a suite per topic. CI systems show it as tests.

A test case is a finding, or a check that found nothing. An error is a <failure>, and so is a warning that --fail-on
counts, once for all its nodes; other warnings, consequences, and what --ignore names, are <skipped> with their
message. A check that could not run is an <error>, never a pass, also where --fail-on would accept it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TextIO
from xml.etree import ElementTree as ET

from ncheck.model.finding import Outcome, Severity, Verdict
from ncheck.model.report import Report
from ncheck.model.state import unreached_and_unknown
from ncheck.report import text as words
from ncheck.report.listing import topic_of
from ncheck.report.summary import consequences, looked_again, names_in, unexplained
from ncheck.report.text import FoldedFinding, body_of, fold_findings

_NOTE = "system-out"  # of a test case that passed
_KINDS = ("failure", "error", "skipped")


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  XML has no colours
    """Write the test suites."""
    suites = ET.Element("testsuites", name="ncheck", time=f"{report.seconds:.3f}")
    by_topic: dict[str, list[ET.Element]] = {}
    for topic, case in _cases(report):
        by_topic.setdefault(topic, []).append(case)
    suites.extend(_suite(report, topic, cases) for topic, cases in by_topic.items())
    for kind in _KINDS:
        suites.set(_plural(kind), str(sum(1 for _ in suites.iter(kind))))
    suites.set("tests", str(sum(1 for _ in suites.iter("testcase"))))
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
    ET.indent(suites)
    stream.write(ET.tostring(suites, encoding="us-ascii", xml_declaration=False).decode() + "\n")


def _suite(report: Report, topic: str, cases: Sequence[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=words.line(topic), hostname=words.line(report.host), tests=str(len(cases)))
    for kind in _KINDS:
        suite.set(_plural(kind), str(sum(case.find(kind) is not None for case in cases)))
    if report.time:
        began = datetime.fromisoformat(report.time).astimezone(timezone.utc)
        suite.set("timestamp", began.strftime("%Y-%m-%dT%H:%M:%S"))
    properties = ET.SubElement(suite, "properties")
    if report.select:
        ET.SubElement(properties, "property", name="ncheck.select", value=words.line(",".join(report.select)))
    for name in ("version", "host", "user", "command"):
        ET.SubElement(properties, "property", name=f"ncheck.{name}", value=words.line(getattr(report, name)))
    for line in looked_again(report):
        ET.SubElement(properties, "property", name="ncheck.again", value=words.line(line))
    suite.extend(cases)
    return suite


def _cases(report: Report) -> Iterator[tuple[str, ET.Element]]:
    """Yield each test case with its topic, in the order of the codes."""
    findings = fold_findings(report.findings)
    following = consequences(findings)
    verdicts, unknown = _by_code(report.verdicts), _by_code(unreached_and_unknown(report)[1])
    for code in sorted({*verdicts, *(one.code for one in findings)}):
        found, dark = [one for one in findings if one.code == code], unknown.get(code, ())
        topic = topic_of(code)
        yield from ((topic, _of_finding(report, topic, one, following.get(one, ()))) for one in found)
        if dark:
            reasons = "; ".join(dict.fromkeys(words.line(one.reason) for one in dark))
            name = f"{code} {dark[0].check}  {words.node_set(names_in(dark))}"
            yield topic, _case(topic, name, _result("error", reasons))
        elif not found:
            yield topic, _case(topic, f"{code} {verdicts[code][0].check}", *_well(verdicts[code]))
    yield from (("Not examined", one) for one in _not_examined(report, findings))


def _by_code(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    codes: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        codes.setdefault(verdict.code, []).append(verdict)
    return codes


def _of_finding(report: Report, topic: str, finding: FoldedFinding, following: Sequence[FoldedFinding]) -> ET.Element:
    if finding.counts and finding.severity.rank <= _least(report):
        kind = "failure"
    else:
        kind = _NOTE if finding.label == "info" else "skipped"
    because = f"consequence of {', '.join(finding.see)}: " if finding.see else ""
    result = _result(kind, because + finding.message, finding.label)
    first = f"{finding.label} {finding.code} {finding.check}: {words.line(finding.message)}"
    result.text = "\n".join((first, *body_of(finding, following)))
    return _case(topic, f"{finding.code} {finding.check}  {words.node_set(finding.nodes)}", result)


def _well(verdicts: Sequence[Verdict]) -> Iterator[ET.Element]:
    """Yield why a check that found nothing was skipped, unless it passed on a node."""
    if not any(one.outcome is Outcome.PASSED for one in verdicts):
        skipped = next((one.reason for one in verdicts if one.outcome is Outcome.SKIPPED), "no node was examined")
        yield _result("skipped", skipped)


def _not_examined(report: Report, findings: Sequence[FoldedFinding]) -> Iterator[ET.Element]:
    """Yield what nothing above says: nodes without a finding, nodes that --drop-bad left out, and ^C."""
    topic = "Not examined"
    for sentence in unexplained(report, findings):
        yield _case(topic, "login", _result("error", sentence))
    for name, reason in report.dropped.items():
        yield _case(topic, f"left out by --drop-bad  {name}", _result("error", reason))
    if report.interrupted:
        yield _case(topic, "complete run", _result("error", "interrupted"))


def _least(report: Report) -> int:
    """Return the rank of the mildest finding that is a failure."""
    return max(severity.rank for severity in Severity if severity is Severity.ERROR or severity.value in report.fail_on)


def _case(topic: str, name: str, *results: ET.Element) -> ET.Element:
    """Make a test case; without a result it passed."""
    case = ET.Element("testcase", classname=words.line(topic), name=words.line(name), time="0")
    case.extend(results)
    return case


def _result(kind: str, reason: str, label: str = "") -> ET.Element:
    """Make what is in a test case: a failure, an error, skipped, or a note."""
    result = ET.Element(kind)
    if kind != _NOTE:
        result.set("message", words.line(reason))
        result.set("type", label or kind)
    return result


def _plural(kind: str) -> str:
    return {"failure": "failures", "error": "errors", "skipped": "skipped"}[kind]
