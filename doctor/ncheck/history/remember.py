"""Add a run to the history, and say what the history says of its findings. Whatever is wrong with the file costs a
sentence in the report, and never the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ncheck.history.entry import Entry, entry_of
from ncheck.history.jobs import job_of, nodes_of
from ncheck.history.lemons import Suspect
from ncheck.history.past import OF_PART, NodePast, past_of
from ncheck.history.slower import FEWEST, NotCompared, Slower
from ncheck.history.store import History, HistoryError
from ncheck.history.times_in_words import PART, day, minute, ordinal
from ncheck.hostlist import fold
from ncheck.text import span

if TYPE_CHECKING:
    from ncheck.model.cluster import Facts
    from ncheck.model.report import Report, State
    from ncheck.settings import Settings

MOST_NEWS = 12  # sentences


def remembered(
    report: Report,
    settings: Settings,
    kind: str,
    time: float | None = None,
    known: Mapping[str, Facts] | None = None,
) -> Report:
    """Return the report with its news, once the run is in the history. `time`: when a recorded run began. `known`: the
    facts of its nodes.

    Where it is the newest run, what it changes is posted to --notify.
    """
    history = History(settings.history or "")
    entry = entry_of(report, kind, time, known)
    try:
        job, began = _job_before(entry, history, settings.job_ended)
        added = history.add(entry, settings.keep_days, live=time is None)
        entry = added or entry
        noted = job and added and history.add(replace(job, time=entry.time), settings.keep_days, live=True, began=began)
        runs = history.runs()
        until = [run for run in runs if run.time <= entry.time]
        past = past_of(until, history.spans())
    except HistoryError as error:
        return replace(report, news=(f"not in the history: {error}",))
    if not added:
        return replace(report, news=("it has this run already",))
    sentences: dict[str, list[str]] = {}
    for node in past.nodes:
        for sentence in _news(node, entry, history.path):
            sentences.setdefault(sentence, []).append(node.node)
    news = [f"{fold(nodes)}: {sentence}" for sentence, nodes in sentences.items()]
    news += slower_news(past.slower, past.not_compared)
    if settings.job_ended is not None:
        news += _job_news(job, past.suspects, history.path, new=noted is not None) if job else (_NO_NOTE,)
    more = (
        [f"and {len(news) - MOST_NEWS} more: ncheck history --history {quote(history.path)}"]
        if len(news) > MOST_NEWS
        else []
    )
    newest = len(until) == len(runs)
    unposted = _notified(settings.notify, entry, until, report.state) if settings.notify and newest else ()
    return replace(report, news=(*news[:MOST_NEWS], *more, *unposted))


def _notified(url: str, entry: Entry, until: Sequence[Entry], state: State) -> tuple[str, ...]:
    """Post what changed; return why it did not arrive."""
    from ncheck.history.notify import changes_in, message_of, posted

    changes = changes_in(entry, [run for run in until if run.time < entry.time])
    if not (changes.nodes or changes.cluster):
        return ()
    why = posted(url, message_of(changes, entry, state))
    return (f"the changes were not posted: {why}",) if why else ()


def _news(node: NodePast, entry: Entry, path: str) -> Iterator[str]:
    """Yield what is new of a node in this run, the newest one of its past."""
    if not any(node.node in names for names in entry.nodes.values()):
        return
    if node.stands_out:
        line = f"ncheck history {quote(node.node)} --history {quote(path)}"
        yield f"fails more often than the other nodes; its past: {line}"
    for code in dict.fromkeys(one.seen.code for one in node.incidents):
        same = [one for one in node.incidents if one.seen.code == code]
        last = same[-1]
        if last.ended is None and last.began == entry.time and len(same) > 1:
            yield f"{ordinal(len(same))} {code} in {span(entry.time - same[0].began)}"
        elif last.ended is None and last.began < entry.time:
            yield f"{code} since {day(last.began)}"
        elif last.ended == entry.time:
            yield f"no longer {code}, which it had since {day(last.began)}"
    for one in node.replaced:
        if one.time == entry.time:
            yield f"the {PART[one.kind]} at {one.place} was replaced" + (
                f", by that of {one.came_from}" if one.came_from else ""
            )
        elif any(last.ended is None and last.seen.code.startswith(OF_PART[one.kind]) for last in node.incidents):
            yield f"the {PART[one.kind]} at {one.place} was replaced on {day(one.time)}"


def slower_news(found: Sequence[Slower], not_compared: NotCompared | None) -> Iterator[str]:
    """Yield what fell, one sentence for figures of the same nodes that fell at one time; and what was not compared."""
    alike: dict[tuple[tuple[str, ...], float], list[Slower]] = {}
    for one in found:
        alike.setdefault((one.figure.nodes, one.began), []).append(one)
    for (nodes, began), same in alike.items():
        worst = same[0]
        others = f" (and {len(same) - 1} more figures)" if len(same) > 1 else ""
        when = f"since {minute(began)}" + (f", when {worst.meanwhile}" if worst.meanwhile else "")
        yield f"{fold(nodes)}: {worst.what}{others}: {worst.how}, {when}"
    if not_compared and not found:
        runs = not_compared.runs
        other = f"; others measured {' or '.join(not_compared.others[:_MOST_OTHERS])}" if not_compared.others else ""
        yield (
            f"{fold(not_compared.figure.nodes)}: not compared with the past, which needs {FEWEST} earlier runs that "
            f"measured the same: there {'is' if runs == 1 else 'are'} {runs}{other}"
        )


_MOST_OTHERS = 3


_NO_NOTE = "the job was not noted: the last run before it read no counters of its nodes that these can be compared with"


def _job_before(entry: Entry, history: History, code: int | None) -> tuple[Entry | None, float]:
    """Return the note of the job that ended before this run, if one did, and since when it may have run: after the
    second in which a run saw its nodes before.
    """
    if code is None:
        return None, 0.0
    spans = history.spans() if Path(history.path).exists() else ()
    job = job_of(entry, spans, code)
    nodes = set(nodes_of(job)) if job else set()
    return job, max((one.last for one in spans if one.kept.node in nodes), default=0.0) + 1.0


_NOTED = "the job that ended is noted already, by its ranks (history= of ncheck.preflight, or --history of ncheck.hook)"


def _job_news(job: Entry, found: Sequence[Suspect], path: str, *, new: bool) -> Iterator[str]:
    every, *grown = job.figures
    shown = [f"{one.nodes[0]} {one.place} {one.value:.0f}" for one in grown[:_MOST_OTHERS]]
    more = f" and {len(grown) - len(shown)} more links" if len(grown) > len(shown) else ""
    counted = f"errors since the run before: {', '.join(shown)}{more}" if shown else "no link counted errors since then"
    yield f"{fold(every.nodes)}: a job ended with {job.exit_code}; {counted}" if new else _NOTED
    for one in found:
        if one.stands_out:
            node, link = one.link
            yield (
                f"{node}: {link} is a suspect: of {one.counted} jobs in which it counted errors, {one.failed} failed, "
                f"and of all jobs {one.of_all * 100:.0f} %; see ncheck history --history {quote(path)}"
            )
