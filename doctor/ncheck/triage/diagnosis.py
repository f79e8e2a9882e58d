"""A log to its causes, best first: rows read the lines, and what is only an echo gives way to what explains it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from ncheck.text import printable
from ncheck.triage.causes import cause_of
from ncheck.triage.lines import Line, read_lines
from ncheck.triage.signature import Grade, Reading, Signature

MOST_EVIDENCE = 6


_LONGEST_EVIDENCE = 300


_MOST_HITS = 20_000


class Confidence(str, Enum):
    """How far a diagnosis may be trusted."""

    HIGH = "high"  # a line names the cause
    MEDIUM = "medium"  # by far the most often it is this
    LOW = "low"  # others print the same: see `others`


_CONFIDENCE = {Grade.CERTAIN: Confidence.HIGH, Grade.LIKELY: Confidence.MEDIUM}


@dataclass(frozen=True)
class Diagnosis:
    """One cause that a log speaks for. `cause` is a name of causes.CAUSES, "" where only symptoms are there.

    `evidence` are the lines that betray it, `others` the causes that print the same, `fix` one line to type. An `echo`
    tells only what the failure of another rank did to this one.
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
    """Return what a log speaks for, the best first; nothing where no line tells of a failure.

    The log may be of one rank or of many, in any order, and anybody's: it is bounded, and only searched.
    """
    read = read_lines(lines)
    hits = _explained(_still_there(_hits(read), read))
    causes: dict[str, list[_Hit]] = {}
    for hit in hits:
        causes.setdefault(hit.reading.cause, []).append(hit)
    found = tuple(_diagnosis(hits) for hits in _ranked(causes.values()))
    telling = tuple(one for one in found if not one.echo)
    return telling or found


def _hits(lines: Sequence[Line]) -> list[_Hit]:
    """Return every line that a row reads, and what is told by several lines."""
    from ncheck.triage.rows import (
        ACROSS,
        SIGNATURES,
    )

    read = (_Hit(reading, line) for line in lines for reading in _readings(line.text, SIGNATURES))
    found = list(islice(read, _MOST_HITS))
    for look in ACROSS:
        found.extend(_Hit(reading, line) for reading, members in look(lines) for line in members[:MOST_EVIDENCE])
    return found


# node01:77:80 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0; most lines are such, and no trouble
_TALK = re.compile(
    r"NCCL INFO (?!.*(?:fail|error|retry|Disabled|progress|without|mismatch|wrong|closed|nable|refused))"
)


def _readings(text: str, signatures: tuple[Signature, ...]) -> Iterator[Reading]:
    if not may_tell(text) or ("NCCL INFO" in text and _TALK.search(text)):
        return iter(())
    return (reading for signature in signatures if (reading := signature.read(text)))


def progress(lines: Iterable[str]) -> Confidence | None:
    """Return how sure it is that the job of this log works: it came to its end, or it went on; None for no sign."""
    read = read_lines(lines)
    if any(_DONE.search(line.text) for line in read):
        return Confidence.HIGH
    return Confidence.LOW if any(_GOES_ON.search(line.text) or _JOINED.search(line.text) for line in read) else None


# node01:77:80 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0
_JOINED = re.compile(r"NCCL INFO (?:Channel|Ring) .* via ")


# # Avg bus bandwidth    : 9.0213
_DONE = re.compile(r"# (?:Avg bus bandwidth|Out of bounds values : 0 OK)")


# node01:77:80 [0] NCCL INFO comm 0x55d0 rank 0 nranks 16 cudaDev 0 busId 1a000 - Init COMPLETE
# Epoch: [0][ 20/625]  Time  1.428 ( 1.972)
_GOES_ON = re.compile(r"Init COMPLETE|\b[Ee]poch\b.*\b[Ll]oss\b|\bstep\b.*\bloss\b|Launch mode Parallel")


def _still_there(hits: list[_Hit], lines: Sequence[Line]) -> list[_Hit]:
    """Return the hits without those that the job outlived: it went on after them, or came to its end."""
    if not hits:
        return []
    done = max((line.number for line in lines if _DONE.search(line.text)), default=-1)
    went_on = max((line.number for line in lines if _GOES_ON.search(line.text)), default=-1)
    if done >= 0 and all(hit.line.number < done or hit.reading.passing or hit.reading.context for hit in hits):
        return []
    return [hit for hit in hits if not (hit.reading.passing and max(done, went_on) > hit.line.number)]


def _explained(hits: list[_Hit]) -> list[_Hit]:
    """Return the hits that stand: a context stands where it explains a trouble, and takes its place."""
    tags = {hit.reading.tag for hit in hits if hit.reading.tag}
    kept = [hit for hit in hits if not hit.reading.context or hit.reading.explains & tags]
    taken = {tag: hit.reading for hit in kept for tag in hit.reading.explains}
    return [hit for hit in kept if hit.reading.tag not in taken and (hit.reading.cause or not hit.reading.context)]


def _ranked(causes: Collection[list[_Hit]]) -> list[list[_Hit]]:
    """Return the causes, the surest first; of equals the first, by the clock where all lines tell one."""
    leaders = {id(hits): _leader(hits) for hits in causes}
    clocked = all(hit.line.clock for hit in leaders.values())

    def order(hits: list[_Hit]) -> tuple[int, str, int]:
        first = leaders[id(hits)]
        return -first.reading.grade, first.line.clock if clocked else "", first.line.number

    return sorted(causes, key=order)


def _leader(hits: Iterable[_Hit]) -> _Hit:
    """Return the surest hit, and the first of those."""
    return min(hits, key=lambda hit: (-hit.reading.grade, hit.line.number))


def _diagnosis(hits: list[_Hit]) -> Diagnosis:
    """Return the diagnosis of all hits of one cause: the words are those of the surest, then first."""
    hits = sorted(hits, key=lambda hit: (-hit.reading.grade, hit.line.number))
    best = hits[0].reading
    cause = cause_of(best.cause)
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


# In small letters, and in parts that cover several forms: "fail" stands for failed, FAILED and failure.
WORDS = (
    "error", "fail", "fault", "signal", "exit", "kill", "lost", "xid", "oom",
    "not ", "neither ", "unable", "missing", "lacks ", "without nvls", "insufficient", "undefined", "disabled",
    "no cuda", "no kernel", "no nccl", "no route", "no space", "no such",
    "invalid", "illegal", "misaligned", "incompatible", "match", "differ", "duplicate", "unique", "unexpected",
    "unknown", "unrecognized", "unsupported", "unsatisfied", "wrong", "truncated", "past end", "uncorrectable",
    "refused", "denied", "prohibited", "filtered", "ufw block", "firewall", "credential", "kex_", "has changed",
    "timed out", "timeout", "skew", "waiting", "gave up", "in progress", "returned", "got async", "frag",
    "closed", "reset", "broken pipe", "was cut", "unreachable", "unroutable", "remote=", "] connect [", "martian",
    "too ", "exceeded", "exhaust", "out of ", "out-of-", "locked memory", "fallen off", "triggered", "completion ",
    "attempt", "busy", "communicat", "already", "found", "other ranks", "same gpu", "this node ", "only one", "first(",
    "physical state", "down", "hostname", "known ips", "nthread", "worker_count", "usage:", "warning", "%|", "802",
    "acsctl", "eaddrinuse", "final_reject", "hydu_", "ibv_", "op.", "peer_mem", "peermem", "rocegetversion",
    "ss_family", "sigsegv", "transport/tcp", "unpack_read",
)  # fmt: skip


def may_tell(text: str) -> bool:
    """Tell whether a row could read this line at all."""
    return any(map(text.lower().__contains__, WORDS))
