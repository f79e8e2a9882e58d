"""What the logs of the ranks say: the triage of logs over their ends, and whether a log reports progress just now."""

from __future__ import annotations

from collections.abc import Iterator

from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job, RankProcess
from ncheck.redact import redact
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.log_tails import LogTail, LogTailsFacts
from ncheck.triage.lines import Line
from ncheck.triage.log_reading import Confidence, LogReading, readings_of, shown
from ncheck.triage.scan import Log, Scan
from ncheck.triage.signature import Grade
from ncheck.triage.watched import clean

READS = (LogTailsFacts,)


@dataclass(frozen=True)
class _Read:
    """A log that was read, and the rank that alone writes to it."""

    node: str
    tail: LogTail
    text: str
    rank: RankProcess | None
    log: Log


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield the causes that all logs together point to, and a motion for each log that reports progress."""
    scan = Scan()
    logs = list(_read(job, cluster, scan))
    moving = [one for one in logs if one.tail.grown and _progresses(one)]
    for reading in readings_of(scan) if logs else ():
        if reading.cause and reading.lines:
            yield _clue(job, reading, logs, goes_on=bool(moving))
    for one in moving:  # a rank that completes steps does so with all others
        name = one.rank.shown if one.rank else "the job"
        text = f"{name} reports progress in {clean(one.tail.path)}: {redact(clean(_last_line(one.text)))}"
        yield Motion("logs", None, one.node, moves=True, text=text)


def _read(job: Job, cluster: Cluster, scan: Scan) -> Iterator[_Read]:
    for node, facts in cluster.facts(LogTailsFacts).items():
        for tail in facts.tails:
            if isinstance(tail.text, str):
                writers = {found.pid: found for pid in tail.pids if (found := job.find(node, pid))}
                rank = next(iter(writers.values())) if len(writers) == len(tail.pids) == 1 else None
                number = "" if rank is None or rank.rank is None else str(rank.rank)
                log = scan.read(f"{node}:{tail.path}", [tail.text.encode("utf-8", "replace")], number)
                yield _Read(node, tail, tail.text, rank, log)


def _last_line(text: str) -> str:
    return text.rstrip().replace("\r", "\n").rpartition("\n")[2]


def _progresses(one: _Read) -> bool:
    """Return whether what was written while the log was watched reports progress, and no trouble."""
    new = Scan()
    log = new.read("", [one.text.encode("utf-8", "replace")[-one.tail.grown :]])
    return bool(log.last_progress) and not readings_of(new)


_GRADES = {Confidence.HIGH: Grade.CERTAIN, Confidence.MEDIUM: Grade.LIKELY, Confidence.LOW: Grade.POSSIBLE}


def _clue(job: Job, reading: LogReading, logs: list[_Read], *, goes_on: bool) -> Clue:
    """Return a reading of the logs as a clue.

    A rank that reports its own end counts in any case where its process has ended: else it may have dealt with it, or
    it is of an earlier life of the job.
    """
    line = reading.lines[0]
    source = logs[line.order[0]]
    grade = Grade.ECHO if reading.echo else _GRADES[reading.confidence]
    ranks = tuple(int(rank) for rank in reading.ranks if rank.isdecimal())
    if not ranks and not reading.echo and source.rank and source.rank.rank is not None and reading.kind:
        ranks = (source.rank.rank,)
    places = [found.node for rank in ranks if (found := job.numbered(rank))]
    named = [node for node in reading.nodes if node in job.nodes]
    gone = bool(ranks) and all(_is_gone(job.numbered(rank)) for rank in ranks)
    ended = grade >= Grade.LIKELY and bool(reading.kind) and gone and not source.tail.grown and not goes_on
    return Clue(
        "logs", reading.cause, grade, _evidence(line, source), ranks,
        tuple(dict.fromkeys((*named, *places))), still=not ended, others=reading.others, kind=reading.kind,
        meaning=redact(reading.meaning), fix=redact(reading.fix),
        next=(redact(reading.look),) if reading.look else (),
    )  # fmt: skip


def _is_gone(rank: RankProcess | None) -> bool:
    return rank is None or rank.process.state == "Z"


def _evidence(line: Line, source: _Read) -> str:
    """Return the line with its place: its number, or if only the end of the log was read, its place from the end."""
    total = source.text.count("\n") + (not source.text.endswith("\n"))
    place = f":{line.number}" if source.tail.whole else f", {total - line.number + 1} lines before its end"
    return f"{source.node}:{clean(source.tail.path)}{place}: {redact(shown(line))}"
