"""The answer of `ncheck triage` for people, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

from ncheck.report.json import without_delete
from ncheck.report.language import tr, translation
from ncheck.report.text import count, joined, next_line
from ncheck.text import printable
from ncheck.triage.causes import CAUSES, SYMPTOM
from ncheck.triage.logs import LogReport
from ncheck.triage.wait_limits import sentence

if TYPE_CHECKING:
    from ncheck.report.page import Page
    from ncheck.triage.diagnosis import Diagnosis
    from ncheck.triage.join import LiveReport

    TriageReport = LogReport | LiveReport

_MOST_SHOWN = 3  # lines of a cause that is not the best
_FEW_LINES = 12  # up to which the first line is still on the screen


def as_json(report: TriageReport) -> str:
    """Return the report as one JSON object; keys are those of LogReport, or of LiveReport."""
    return without_delete(json.dumps(asdict(report), indent=2)) + "\n"


def print_triage(report: TriageReport, stream: TextIO, environ: Mapping[str, str]) -> None:
    """Print the answer, the next step, its lines, what to type, what else it could be; after many the answer again."""
    from ncheck.report.page import Page

    page = Page(stream, environ)
    color = "red" if report.diagnoses and report.wrong else "green" if report.healthy else "yellow"
    answer = [(_headline(report), f"bold {color}"), *((next_line(one.next), "") for one in report.diagnoses[:1])]
    _say(page, answer)
    for number, found in enumerate(report.diagnoses):
        page.gap()
        if number == 1:
            page.say(tr("What else it could be:"), style="bold")
        lines = found.evidence if number == 0 else found.evidence[:_MOST_SHOWN]
        if number:
            page.say(_named(found, _meaning(found)))
            lines = () if found.evidence == report.diagnoses[0].evidence else lines
        if number == 0 and _known(found) and found.meaning != CAUSES.get(found.cause, SYMPTOM).meaning:
            page.say(printable(found.meaning, 300), "  ", style="dim")
        for seen in lines:
            place = f"{_name(seen.file)}:{seen.line}" if seen.line else seen.file
            page.verbatim(f"  {printable(place, 300)}  {printable(seen.text, 300)}", style="dim")
        for words in _to_type(found, best=number == 0):
            page.verbatim(f"  {printable(words, 310)}")
    page.gap()
    for note in _notes(report):
        page.say(printable(note, 600), style="dim")
    if sum(2 + len(found.evidence) + len(found.looks) for found in report.diagnoses) > _FEW_LINES:
        _say(page, reversed(answer))


def _say(page: Page, lines: Iterable[tuple[str, str]]) -> None:
    for text, style in lines:
        page.say(text, style=style)


def _to_type(found: Diagnosis, *, best: bool) -> Iterator[str]:
    """Yield what limits the wait, what changes something, and what shows more."""
    if found.limit and best:
        yield f"{tr('limit: ')}{sentence(found.limit, works=found.works)}"
    if found.fix:
        yield f"{tr('fix: ')}{found.fix}"
    if found.do:
        yield f"{tr('do: ')}{found.do}"
    yield from (f"{tr('look: ')}{line}" for line in (found.looks if best else found.looks[: not found.fix]))


def _headline(report: TriageReport) -> str:
    if not report.diagnoses:
        return _sentence(report.summary)
    best = report.diagnoses[0]
    return _named(best, _meaning(best) if _known(best) else printable(report.summary, 300))


def _named(found: Diagnosis, what: str) -> str:
    named = tr("{cause} ({sure}): {what}", cause=found.cause, sure=_sure(found), what=what)
    return f"{named}{_who(found)}"


def _meaning(found: Diagnosis) -> str:
    """Return what was seen; in another language, what the cause means."""
    return _known(found) or printable(found.meaning, 300)


def _known(found: Diagnosis) -> str:
    """Return what the cause means in the language of the report; "" in English."""
    return translation(CAUSES.get(found.cause, SYMPTOM).meaning)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sure(found: Diagnosis) -> str:
    return tr("{share} sure", share=f"{found.confidence:.0%}") if found.confidence else tr("not sure")


_MOST_NAMES = 8


def _who(found: Diagnosis) -> str:
    """Return the ranks and nodes that failed: " (rank 3 on node02)"."""
    ranks, nodes = _ranks(found.ranks), _nodes(found.nodes)
    if ranks and nodes:
        return tr(" ({ranks} on {nodes})", ranks=ranks, nodes=nodes)
    return tr(" ({names})", names=ranks or nodes) if ranks or nodes else ""


def _ranks(ranks: Sequence[int]) -> str:
    listed = joined([str(rank) for rank in ranks], _MOST_NAMES)
    return (
        "" if not ranks else tr("rank {names}", names=listed) if len(ranks) == 1 else tr("ranks {names}", names=listed)
    )


def _nodes(nodes: Sequence[str]) -> str:
    listed = joined([printable(name, 80) for name in nodes], _MOST_NAMES)
    return (
        "" if not nodes else tr("node {names}", names=listed) if len(nodes) == 1 else tr("nodes {names}", names=listed)
    )


def _name(file: str) -> str:
    return tr("standard input") if file == "-" else file


def _notes(report: TriageReport) -> Iterator[str]:
    yield _seen(report)
    for missing in report.unread[:10]:
        yield tr("Not read: {name}: {reason}", name=_name(missing.name), reason=missing.reason)
    if len(report.unread) > 10:  # noqa: PLR2004  as above
        yield tr("Not read: {number} more", number=len(report.unread) - 10)
    yield from getattr(report, "notes", ())


def _seen(report: TriageReport) -> str:
    """Return what was looked at."""
    if isinstance(report, LogReport):
        return tr("{logs}, {number} lines read.", logs=count(report.files, "log"), number=report.lines)
    if not report.ranks:
        return tr("No process of a job was looked at.")
    ranks = _ranks([one.rank for one in report.ranks if one.rank is not None])
    nodes = _nodes(tuple(dict.fromkeys(one.node for one in report.ranks)))
    found = ranks or tr("{number} processes without a rank", number=len(report.ranks))
    if report.size:
        return tr("Job: {ranks} of {number} on {nodes}.", ranks=found, number=report.size, nodes=nodes)
    return tr("Job: {ranks} on {nodes}.", ranks=found, nodes=nodes)
