"""From a log to its causes, best first: signatures read the lines, and consequences give way to what explains them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from ncheck.text import printable
from ncheck.triage.causes import CAUSES, SYMPTOM
from ncheck.triage.lines import Line, read_lines
from ncheck.triage.signature import Grade, Reading

MOST_EVIDENCE = 6


_LONGEST_EVIDENCE = 300


_AT_EACH_END = 1000  # hits of one kind that are kept, from the beginning of the log and from its end


class Confidence(str, Enum):
    """How far a diagnosis can be trusted."""

    HIGH = "high"  # a line names the cause
    MEDIUM = "medium"  # the line has this cause in most cases
    LOW = "low"  # other causes print the same line: see `others`


_CONFIDENCE = {Grade.CERTAIN: Confidence.HIGH, Grade.LIKELY: Confidence.MEDIUM}


@dataclass(frozen=True)
class Diagnosis:
    """One cause that a log points to. `cause` is a name in causes.CAUSES, "" if the log shows only symptoms.

    `evidence` are the log lines that point to it, `others` the causes that print the same lines, `fix` one command.
    `echo`: the lines show only the consequences of another rank's failure.
    """

    cause: str
    meaning: str
    evidence: tuple[str, ...]
    confidence: Confidence
    fix: str
    others: tuple[str, ...] = ()
    echo: bool = False


@dataclass(frozen=True)
class _Hit:
    reading: Reading
    line: Line


def diagnose(lines: Iterable[str]) -> tuple[Diagnosis, ...]:
    """Return the causes that a log points to, best first; () if no line shows a failure.

    The log may be of one rank or of many, in any order. It is untrusted: it is bounded, and only searched.
    """
    read = _read(lines)
    hits = _without_explained(_not_outlived(_hits(read), read))
    causes: dict[str, list[_Hit]] = {}
    for hit in hits:
        causes.setdefault(hit.reading.cause, []).append(hit)
    diagnoses = tuple(_diagnosis(hits) for hits in _ranked(causes.values()))
    return tuple(diagnosis for diagnosis in diagnoses if not diagnosis.echo) or diagnoses


def _read(lines: Iterable[str]) -> list[Line]:
    from ncheck.triage.signatures import may_match

    return read_lines(lines, lambda text: may_match(text) or _shows_progress(text))


def _hits(lines: Sequence[Line]) -> list[_Hit]:
    """Return the readings of single lines, then those of several lines together."""
    from ncheck.triage.across_lines import DETECTORS
    from ncheck.triage.signatures import readings

    first: dict[tuple[str, Grade, str], list[_Hit]] = {}
    last: dict[tuple[str, Grade, str], deque[_Hit]] = {}
    for line in lines:
        for reading in readings(line.text):
            kind = reading.cause, reading.grade, reading.tag
            early = first.setdefault(kind, [])
            kept = early if len(early) < _AT_EACH_END else last.setdefault(kind, deque(maxlen=_AT_EACH_END))
            kept.append(_Hit(reading, line))
    hits = [hit for kept in (*first.values(), *last.values()) for hit in kept]
    for detect in DETECTORS:
        hits.extend(_Hit(reading, line) for reading, members in detect(lines) for line in members[:MOST_EVIDENCE])
    return hits


def progress(lines: Iterable[str]) -> Confidence | None:
    """Return how sure it is that the job of this log works: HIGH if it finished, LOW if it ran, None for no sign."""
    texts = [line.text for line in _read(lines)]
    if any(map(_DONE.search, texts)):
        return Confidence.HIGH
    return Confidence.LOW if any(_RUNNING.search(text) or _CONNECTED.search(text) for text in texts) else None


def trouble_at_the_end(lines: Iterable[str]) -> str:
    """Return the line that sounds like a failure after the last sign of progress, or in it; "" if there is none."""
    read = _read(lines)
    progressed = [index for index, line in enumerate(read) if _shows_progress(line.text)]
    rest = read[progressed[-1] :] if progressed else read
    said = next((line.text for line in rest if _BAD_WORDS.search(line.text) and not line.text.startswith("#")), "")
    return printable(said.strip(), _LONGEST_EVIDENCE)


def _shows_progress(text: str) -> bool:
    return bool(_DONE.search(text) or _RUNNING.search(text))


# NaN detected in loss, aborting
# step 512 loss nan
# FATAL: checkpoint is corrupt
_BAD_WORDS = re.compile(
    r"\b(?:abort(?:s|ed|ing)?|fatal|panic|diverged|traceback|terminat(?:ed|ing)|killed|giving up|nan)\b|"
    r"\b\w*(?:error|exception)\b(?=:|\s*$)",
    re.IGNORECASE,
)


# node01:77:80 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0
_CONNECTED = re.compile(r"NCCL INFO (?:Channel|Ring) .* via ")


# # Avg bus bandwidth    : 9.0213
_DONE = re.compile(r"# (?:Avg bus bandwidth|Out of bounds values : 0 OK)")


# node01:77:80 [0] NCCL INFO comm 0x55d0 rank 0 nranks 16 cudaDev 0 busId 1a000 - Init COMPLETE
# Epoch: [0][ 20/625]  Time  1.428 ( 1.972)
_RUNNING = re.compile(r"Init COMPLETE|\b[Ee]poch\b.{0,300}\b[Ll]oss\b|\bstep\b.{0,300}\bloss\b|Launch mode Parallel")


def _not_outlived(hits: list[_Hit], lines: Sequence[Line]) -> list[_Hit]:
    """Return the hits after which the job did not go on or finish."""
    if not hits:
        return []
    done = max((line.number for line in lines if _DONE.search(line.text)), default=-1)
    running = max((line.number for line in lines if _RUNNING.search(line.text)), default=-1)
    if done >= 0 and all(hit.line.number < done or hit.reading.passing or hit.reading.context for hit in hits):
        return []
    return [hit for hit in hits if not (hit.reading.passing and max(done, running) > hit.line.number)]


def _without_explained(hits: list[_Hit]) -> list[_Hit]:
    """Return the hits without those that a context explains, and without contexts that explain nothing."""
    tags = {hit.reading.tag for hit in hits if hit.reading.tag}
    kept = [hit for hit in hits if not hit.reading.context or hit.reading.explains & tags]
    explained = {tag for hit in kept for tag in hit.reading.explains}
    return [hit for hit in kept if hit.reading.tag not in explained and (hit.reading.cause or not hit.reading.context)]


def _ranked(causes: Collection[list[_Hit]]) -> list[list[_Hit]]:
    """Return the causes by grade, highest first; equal ones by time if all their lines have one, else by line."""
    best_hits = {id(hits): _best_first(hits)[0] for hits in causes}
    timed = all(hit.line.time for hit in best_hits.values())

    def order(hits: list[_Hit]) -> tuple[int, str, int]:
        best = best_hits[id(hits)]
        return -best.reading.grade, best.line.time if timed else "", best.line.number

    return sorted(causes, key=order)


def _best_first(hits: Iterable[_Hit]) -> list[_Hit]:
    return sorted(hits, key=lambda hit: (-hit.reading.grade, hit.line.number))


def _diagnosis(hits: list[_Hit]) -> Diagnosis:
    """Return the diagnosis for all hits of one cause, in the words of the best of them."""
    hits = _best_first(hits)
    best = hits[0].reading
    cause = CAUSES[best.cause] if best.cause else SYMPTOM
    evidence = dict.fromkeys(printable(hit.line.text.strip(), _LONGEST_EVIDENCE) for hit in hits)
    return Diagnosis(
        best.cause,
        best.meaning or cause.meaning,
        tuple(evidence)[:MOST_EVIDENCE],
        _CONFIDENCE.get(best.grade, Confidence.LOW),
        best.fix or cause.fix,
        best.others,
        best.grade is Grade.ECHO,
    )
