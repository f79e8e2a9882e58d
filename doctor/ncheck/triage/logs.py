"""`ncheck triage --logs`: all logs of a job, read together, to one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO

from ncheck.lazy_dataclass import dataclass
from ncheck.redact import redact
from ncheck.text import printable, shell_word
from ncheck.triage.across_lines import verbs_note
from ncheck.triage.causes import CAUSES, SYMPTOM, UNKNOWN, filled, look_of
from ncheck.triage.diagnosis import MOST_DIAGNOSES, MOST_NEXT, SURE, Diagnosis, Evidence
from ncheck.triage.dump_files import DumpFiles, dump_files
from ncheck.triage.flight_recorder import analyse
from ncheck.triage.lines import Line
from ncheck.triage.log_reading import Confidence, LogReading, alternatives, readings_of, scores, shown
from ncheck.triage.scan import Log, Scan
from ncheck.triage.signature import Grade
from ncheck.triage.sources import Source, Unreadable, UnreadableError, sources


@dataclass(frozen=True)
class LogReport:
    """The answer. `healthy` needs a sign that the job ended well or goes on; `summary` says what was found.

    `files` and `lines` were read; `unread` could not be read as a whole, each with its reason. `notes` are no faults.
    """

    diagnoses: tuple[Diagnosis, ...]
    healthy: bool
    summary: str
    files: int
    lines: int
    unread: tuple[Unreadable, ...]
    notes: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        """Whether a failure was found, or something could not be read or was empty."""
        return bool(self.diagnoses or self.unread or not self.lines)


def examine_logs(paths: Iterable[str], stdin: BinaryIO) -> LogReport:
    """Read these logs and return what they show. Raises NcheckError for a path that does not exist."""
    scan, named = Scan(), tuple(paths)
    recorded = dump_files(named)
    unread: list[Unreadable] = [*recorded.unread.values()]
    for source in list(sources(named, stdin)):
        if source.name in recorded.paths:
            continue
        if isinstance(source, Unreadable):
            unread.append(source)
        else:
            _read(scan, source, unread)
    diagnoses = _joined(_diagnoses(scan), _of_dumps(recorded))
    healthy = not diagnoses and any(log.steps or log.done for log in scan.logs)
    summary = _summary(scan, diagnoses, unread, healthy=healthy)
    files = len(scan.logs) + len(recorded.dumps)
    unreadable = tuple(replace(one, name=printable(one.name)) for one in unread)
    note = "" if any(one.cause == "ibverbs_missing" for one in diagnoses) else verbs_note(scan.context)
    return LogReport(
        diagnoses, healthy, summary, files, sum(log.lines for log in scan.logs), unreadable, (note,) if note else ()
    )


_GRADES = {Grade.CERTAIN: 0.95, Grade.LIKELY: 0.85, Grade.POSSIBLE: 0.5, Grade.ECHO: 0.3}


def _of_dumps(recorded: DumpFiles) -> Iterator[Diagnosis]:
    """Yield what flight recorder dumps say, side by side."""
    for clue in analyse(recorded.dumps, None, recorded.unread):
        cause = CAUSES[clue.cause]
        named = [recorded.names[rank] for rank in clue.ranks if rank in recorded.names]
        place = named[0] if named else next(iter(recorded.names.values()))
        evidence = (Evidence(place, 0, redact(printable(clue.text, 400))),)
        yield Diagnosis(
            clue.cause, _GRADES[clue.grade], redact(clue.meaning or cause.meaning), clue.kind, evidence, clue.ranks,
            clue.nodes, redact(clue.fix or cause.fix), clue.next or tuple(filter(None, (filled(cause.look),))),
        )  # fmt: skip


def _joined(found: Iterable[Diagnosis], others: Iterable[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Return all diagnoses, best first; those of one cause are one."""
    joined: dict[str, Diagnosis] = {}
    for one in sorted((*found, *others), key=lambda one: -one.confidence):
        best = joined.get(one.cause, one)
        evidence = tuple(dict.fromkeys((*best.evidence, *one.evidence)))
        ranks, nodes = (*best.ranks, *one.ranks), (*best.nodes, *one.nodes)
        joined[one.cause] = replace(
            best, evidence=evidence, ranks=tuple(dict.fromkeys(ranks)), nodes=tuple(dict.fromkeys(nodes))
        )
    return tuple(joined.values())


def _read(scan: Scan, source: Source, unread: list[Unreadable]) -> None:
    """Read one log. What is no text is left out of a folder in silence, and reported if the user named it."""

    def guarded(chunks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from chunks
        except UnreadableError as error:
            failed.append(str(error))

    failed: list[str] = []
    try:
        with source.open() as chunks:
            scan.read(source.name, guarded(chunks))
    except UnreadableError as error:
        failed.append(str(error))
    if failed and (source.chosen or failed[0] != "is not text"):
        unread.append(Unreadable(source.name, failed[0]))


def _diagnoses(scan: Scan) -> tuple[Diagnosis, ...]:
    """Return the diagnoses with what else prints the lines of the best one, best first."""
    found = readings_of(scan)
    ranked = list(zip(scores(found), found, strict=True))
    if ranked and ranked[0][0] < SURE:
        score, best = ranked[0]
        named = {reading.cause for reading in found}
        ranked += [(round(score * 0.6, 2), other) for other in alternatives(best) if other.cause not in named]
    if not found:
        ranked = [(0.3, _trouble(log.trouble)) for log in scan.logs if log.trouble and _of_this_job(log)][:1]
    ranked.sort(key=lambda pair: -pair[0])
    return tuple(_diagnosis(score, reading) for score, reading in ranked[:MOST_DIAGNOSES])


def _of_this_job(log: Log) -> bool:
    """Return whether the trouble of a log is that of its job: it did not end well after it, and is no other program."""
    ended_well = log.done and log.trouble and log.trouble.number < log.done
    return not ended_well and (log.stated or log.known or log.steps or bool(log.done))


def _trouble(line: Line) -> LogReading:
    """Return the reading of a line that sounds like a failure and that no signature knows."""
    unknown = LogReading("", "a line sounds like a failure, and it is none that ncheck knows", (shown(line),),
                        Confidence.LOW, SYMPTOM.fix, SYMPTOM.look, lines=(line,))  # fmt: skip
    return replace(unknown, ranks=(line.rank,) if line.rank else (), nodes=(line.host,) if line.host else ())


def _look(reading: LogReading) -> str:
    """Return the command that shows more: for an exception, that in the log with what stands above it."""
    line = reading.lines[0] if reading.lines else None
    named = bool(line and line.file not in ("", "-") and line.file.isprintable())
    if line and named and reading.kind in ("exception", "assertion"):
        return f"less +{line.number} {shell_word(line.file)}"
    return reading.look


def _diagnosis(score: float, reading: LogReading) -> Diagnosis:
    # What tells the others apart, where it is not sure; else they have nothing to do with this failure.
    others = reading.others if reading.confidence is Confidence.LOW else ()
    looks = (_look(reading), reading.look, *(look_of(name, reading.kind) for name in others))
    return Diagnosis(
        reading.cause or UNKNOWN,
        score,
        redact(reading.meaning),
        reading.kind,
        tuple(Evidence(printable(line.file), line.number, redact(shown(line))) for line in reading.lines),
        tuple(map(int, reading.ranks)),
        reading.nodes,
        redact(reading.fix),
        tuple(redact(look) for look in dict.fromkeys(looks) if filled(look))[:MOST_NEXT],
    )


def _summary(scan: Scan, diagnoses: tuple[Diagnosis, ...], unread: list[Unreadable], *, healthy: bool) -> str:
    """Return the answer in one sentence."""
    if diagnoses:
        best = diagnoses[0]
        return best.meaning if best.confidence >= SURE else f"not certain: {best.meaning}"
    if healthy and any(log.done for log in scan.logs):
        return "no failure: the job finished"
    if healthy:
        return "no failure: the job makes progress"
    if not any(log.lines for log in scan.logs):
        return "no log was read" if unread or not scan.logs else "nothing to read: the log is empty"
    return _no_answer(scan)


def _no_answer(scan: Scan) -> str:
    """Return what logs show that decide nothing: NCCL's start alone is no sign that the job goes on."""
    if not scan.known:
        return (
            "no line of a program that ncheck knows: it reads logs of NCCL, PyTorch, MPI, Horovod, Slurm and the kernel"
        )
    seen = "NCCL started; " if any(log.started for log in scan.logs) else ""
    answer = "no known failure, and no sign that the job made progress"
    return f"{seen}{answer}; while it hangs, ncheck triage nodes.txt looks at the job itself"
