"""The answer of `ncheck triage` for people, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

from ncheck.report.json import without_delete
from ncheck.text import printable
from ncheck.triage.logs import LogReport
from ncheck.triage.wait_limits import sentence

if TYPE_CHECKING:
    from ncheck.triage.diagnosis import Diagnosis
    from ncheck.triage.join import LiveReport

    TriageReport = LogReport | LiveReport

_MOST_SHOWN = 3  # lines of a cause that is not the best
_FEW_LINES = 12  # up to which the first line is still on the screen


def as_json(report: TriageReport) -> str:
    """Return the report as one JSON object; keys are those of LogReport, or of LiveReport."""
    return without_delete(json.dumps(asdict(report), indent=2)) + "\n"


def print_triage(report: TriageReport, stream: TextIO, environ: Mapping[str, str]) -> None:
    """Print the answer, its lines, what to type, what else it could be, and after many lines the answer again."""
    from rich.text import Text

    from ncheck.report.page import Page

    page = Page(stream, environ)
    color = "red" if report.diagnoses and report.wrong else "green" if report.healthy else "yellow"
    page.say(Text(_headline(report), f"bold {color}"))
    for number, found in enumerate(report.diagnoses):
        page.gap()
        if number == 1:
            page.say("What else it could be:", style="bold")
        lines = found.evidence if number == 0 else found.evidence[:_MOST_SHOWN]
        if number:
            page.say(f"{found.cause} ({_sure(found)}): {printable(found.meaning, 300)}{_who(found)}")
            lines = () if found.evidence == report.diagnoses[0].evidence else lines
        for line in lines:
            place = f"{_name(line.file)}:{line.line}" if line.line else line.file
            page.verbatim(f"  {printable(place, 300)}  {printable(line.text, 300)}", style="dim")
        for words in _to_type(found, best=number == 0):
            page.verbatim(f"  {printable(words, 310)}")
    page.gap()
    for note in _notes(report):
        page.say(printable(note, 600), style="dim")
    if sum(2 + len(found.evidence) + len(found.looks) for found in report.diagnoses) > _FEW_LINES:
        page.say(Text(_headline(report), f"bold {color}"))


def _to_type(found: Diagnosis, *, best: bool) -> Iterator[str]:
    """Yield what limits the wait, what changes something, and what shows more."""
    if found.limit:
        yield f"limit: {sentence(found.limit, works=found.works)}"
    if found.fix:
        yield f"fix: {found.fix}"
    if found.do:
        yield f"do: {found.do}"
    yield from (f"look: {line}" for line in (found.looks if best else found.looks[: not found.fix]))


def _headline(report: TriageReport) -> str:
    if not report.diagnoses:
        return _sentence(report.summary)
    best = report.diagnoses[0]
    return f"{best.cause} ({_sure(best)}): {printable(report.summary, 300)}{_who(best)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sure(found: Diagnosis) -> str:
    return f"{found.confidence:.0%} sure" if found.confidence else "not sure"


_MOST_NAMES = 8


def _who(found: Diagnosis) -> str:
    """Return the ranks and nodes that failed: " (rank 3 on node02)"."""
    ranks = _names("rank", [str(rank) for rank in found.ranks])
    nodes = _names("node", found.nodes)
    return f" ({' on '.join(filter(None, (ranks, nodes)))})" if ranks or nodes else ""


def _names(word: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (
        f"{word}{'s' if len(names) > 1 else ''} {', '.join(printable(name, 80) for name in names[:_MOST_NAMES])}{more}"
    )


def _name(file: str) -> str:
    return "standard input" if file == "-" else file


def _notes(report: TriageReport) -> Iterator[str]:
    yield _seen(report)
    for missing in report.unread[:10]:
        yield f"Not read: {_name(missing.name)}: {missing.reason}"
    if len(report.unread) > 10:  # noqa: PLR2004  as above
        yield f"Not read: {len(report.unread) - 10} more"
    yield from getattr(report, "notes", ())


def _seen(report: TriageReport) -> str:
    """Return what was looked at."""
    if isinstance(report, LogReport):
        return f"{report.files} {'log' if report.files == 1 else 'logs'}, {report.lines} lines read."
    if not report.ranks:
        return "No process of a job was looked at."
    ranks = _names("rank", [str(one.rank) for one in report.ranks if one.rank is not None])
    nodes = _names("node", tuple(dict.fromkeys(one.node for one in report.ranks)))
    found = ranks or f"{len(report.ranks)} processes without a rank"
    return f"Job: {found}{f' of {report.size}' if report.size else ''} on {nodes}."
