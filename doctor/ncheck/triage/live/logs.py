"""What the logs of the ranks say: the triage of logs over their ends, and whether a log reports progress just now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job, RankProcess
from ncheck.redact import redact
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.log_tails import LogTail, LogTailsFacts
from ncheck.triage.lines import LogLine
from ncheck.triage.log_clues import clues_of
from ncheck.triage.scan import Scan, ScannedLog
from ncheck.triage.watched_ranks import clean

READS = (LogTailsFacts,)


@dataclass(frozen=True)
class _JobLog:
    """A log that was read, and the rank that alone writes to it."""

    node: str
    tail: LogTail
    text: str
    rank: RankProcess | None
    log: ScannedLog


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield the causes that all logs together point to, and a motion for each log that reports progress."""
    scan = Scan()
    logs = list(_read(job, cluster, scan))
    moving = [one for one in logs if one.tail.grown and _progresses(one)]
    for clue in clues_of(scan) if logs else ():
        if clue.cause:
            yield _of_job(job, clue, logs, goes_on=bool(moving))
    for one in moving:  # a rank that completes steps does so with all others
        name = one.rank.shown if one.rank else "the job"
        text = f"{name} reports progress in {clean(one.tail.path)}: {redact(clean(_last_line(one.text)))}"
        yield Motion("logs", None, one.node, moves=True, text=text)


def _read(job: Job, cluster: Cluster, scan: Scan) -> Iterator[_JobLog]:
    for node, facts in cluster.facts(LogTailsFacts).items():
        for tail in facts.tails:
            if isinstance(tail.text, str):
                writers = {found.pid: found for pid in tail.pids if (found := job.find(node, pid))}
                rank = next(iter(writers.values())) if len(writers) == len(tail.pids) == 1 else None
                number = "" if rank is None or rank.rank is None else str(rank.rank)
                log = scan.read(f"{node}:{tail.path}", [tail.text.encode("utf-8", "replace")], number)
                yield _JobLog(node, tail, tail.text, rank, log)


def _last_line(text: str) -> str:
    return text.rstrip().replace("\r", "\n").rpartition("\n")[2]


def _progresses(one: _JobLog) -> bool:
    """Return whether what was written while the log was watched reports progress, and no trouble."""
    new = Scan()
    log = new.read("", [one.text.encode("utf-8", "replace")[-one.tail.grown :]])
    return bool(log.last_progress) and not clues_of(new)


def _of_job(job: Job, clue: Clue, logs: list[_JobLog], *, goes_on: bool) -> Clue:
    """Return what the logs say as a clue of this job: at its ranks and nodes, with where the first line stands.

    A rank that reports its own end counts in any case where its process has ended: else it may have dealt with it, or
    it is of an earlier life of the job.
    """
    line, ranks = clue.lines[0], clue.ranks
    source = logs[line.order[0]]
    if not ranks and not clue.echo and source.rank and source.rank.rank is not None and clue.kind:
        ranks = (source.rank.rank,)
    places = [found.node for rank in ranks if (found := job.numbered(rank))]
    named = [node for node in clue.nodes if node in job.nodes]
    gone = bool(ranks) and all(_is_gone(job.numbered(rank)) for rank in ranks)
    ended = clue.grade >= Grade.LIKELY and bool(clue.kind) and gone and not source.tail.grown and not goes_on
    nodes = tuple(dict.fromkeys((*named, *places)))
    return replace(clue, text=_evidence(line, source), ranks=ranks, nodes=nodes, still=not ended)


def _is_gone(rank: RankProcess | None) -> bool:
    return rank is None or rank.process.state == "Z"


def _evidence(line: LogLine, source: _JobLog) -> str:
    """Return the line with its place: its number, or if only the end of the log was read, its place from the end."""
    total = source.text.count("\n") + (not source.text.endswith("\n"))
    place = f":{line.number}" if source.tail.whole else f", {total - line.number + 1} lines before its end"
    return f"{source.node}:{clean(source.tail.path)}{place}: {redact(line.text)}"
