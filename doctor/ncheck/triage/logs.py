"""`ncheck triage --logs`: all logs of a job, read together, to one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import BinaryIO

from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable, shell_word
from ncheck.triage.across_lines.choices import choice_notes
from ncheck.triage.across_lines.interfaces import on_one_node
from ncheck.triage.across_lines.libraries import verbs_note
from ncheck.triage.across_lines.variables import names_note
from ncheck.triage.causes import look_of
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.diagnosis import Diagnosis
from ncheck.triage.dump_files import DumpFiles, dump_files
from ncheck.triage.flight_recorder import analyse
from ncheck.triage.inspector import InspectorFiles, is_inspector
from ncheck.triage.judge import diagnoses_of, headline
from ncheck.triage.lines import LogLine
from ncheck.triage.log_clues import clue_of_trouble, clues_of
from ncheck.triage.scan import Scan, ScannedLog
from ncheck.triage.sources import LogSource, Refusal, Unreadable, UnreadableError, not_refused, sources
from ncheck.triage.wait_limits import limited, shown_in


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


def examine_logs(paths: Iterable[str], stdin: BinaryIO, refusal: Refusal = not_refused) -> LogReport:
    """Read these logs and return what they show. Raises NcheckError for a path that does not exist.

    `refusal` says of the real path of a file that was opened why it must not be read, or "".
    """
    scan, inspector, named = Scan(), InspectorFiles(), tuple(paths)
    recorded = dump_files(named, refusal)
    unread: list[Unreadable] = [*recorded.unread.values()]
    for source in list(sources(named, stdin, refusal)):
        if source.name in recorded.paths:
            continue
        if isinstance(source, Unreadable):
            unread.append(source)
        else:
            _read(scan, inspector, source, unread)
    wait = shown_in(scan, recorded.dumps.values())
    clues = (*_of_logs(scan), *_of_dumps(recorded), *inspector.clues)
    diagnoses = limited(diagnoses_of(clues, one_node=on_one_node(scan.context)), wait)
    logged = any(log.lines for log in scan.logs)  # files of NCCL Inspector beside logs may be those of another job
    healthy = not diagnoses and ((inspector.answers and not logged) or any(log.steps or log.done for log in scan.logs))
    summary = _summary(scan, diagnoses, unread, healthy=healthy)
    if inspector.files and not (diagnoses or healthy or logged):
        summary = "NCCL Inspector's files alone do not decide it"
    files = len(scan.logs) + len(recorded.dumps) + inspector.files
    unreadable = tuple(replace(one, name=printable(one.name)) for one in unread)
    causes = {one.cause for one in diagnoses}
    sampled = [log.index for log in scan.logs if log.sampled]
    notes = ("" if "ibverbs_missing" in causes else verbs_note(scan.context),
             wait.note if wait and any(one.limit for one in diagnoses) else "",
             names_note(line.text for line in scan.context), inspector.note(),
             *choice_notes(scan.context, sampled, blamed="algorithm_differs" in causes))  # fmt: skip
    lines = inspector.lines + sum(log.lines for log in scan.logs)
    return LogReport(diagnoses, healthy, summary, files, lines, unreadable, tuple(filter(None, notes)))


def _of_dumps(recorded: DumpFiles) -> Iterator[Clue]:
    """Yield what flight recorder dumps say, side by side: each at the file of a rank that it names."""
    for clue in analyse(recorded.dumps, None, recorded.unread):
        named = [recorded.names[rank] for rank in clue.ranks if rank in recorded.names]
        file = named[0] if named else next(iter(recorded.names.values()))
        yield replace(clue, text="", lines=(LogLine(0, printable(clue.text, 400), file=file),))


def _read(scan: Scan, inspector: InspectorFiles, source: LogSource, unread: list[Unreadable]) -> None:
    """Read one log, or file of NCCL Inspector.

    What is no text is left out of a folder in silence, and reported if the user named it.
    """

    def guarded(chunks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from chunks
        except UnreadableError as error:
            failed.append(str(error))

    failed: list[str] = []
    try:
        with source.open() as chunks:
            whole = guarded(chunks)
            start = next(whole, b"")
            if is_inspector(start):
                inspector.read(source.name, chain((start,), whole))
            else:
                scan.read(source.name, chain((start,), whole))
    except UnreadableError as error:
        failed.append(str(error))
    if failed and (source.chosen or failed[0] != "is not text"):
        unread.append(Unreadable(source.name, failed[0]))


def _of_logs(scan: Scan) -> list[Clue]:
    """Return what the logs point to; else the first line that sounds like a failure."""
    trouble = (clue_of_trouble(log.trouble) for log in scan.logs if log.trouble and _of_this_job(log))
    return list(map(_with_looks, clues_of(scan))) or list(trouble)[:1]


def _of_this_job(log: ScannedLog) -> bool:
    """Return whether the trouble of a log is that of its job: it did not end well after it, and is no other program."""
    ended_well = log.done and log.trouble and log.trouble.number < log.done
    return not ended_well and (log.stated or log.known or log.steps or bool(log.done))


def _with_looks(clue: Clue) -> Clue:
    """Return a clue with all commands that show more: the log above an exception, and what tells alike causes apart."""
    line = clue.lines[0]
    above = f"less +{line.number} {shell_word(line.file)}" if line.file not in ("", "-") else ""
    own = above if clue.kind in ("exception", "assertion") and line.file.isprintable() else ""
    # Where it is sure, the others have nothing to do with this failure.
    others = clue.others if clue.grade <= Grade.POSSIBLE else ()
    looks = (own, *clue.looks, *(look_of(name, clue.kind) for name in others))
    return replace(clue, looks=tuple(filter(None, dict.fromkeys(looks))))


def _summary(scan: Scan, diagnoses: tuple[Diagnosis, ...], unread: list[Unreadable], *, healthy: bool) -> str:
    """Return the answer in one sentence."""
    if diagnoses:
        return headline(diagnoses)
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
