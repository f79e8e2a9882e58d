"""The log of a job: the best cause of its failure, and what NCCL's lines in it say of versions and interfaces."""

from __future__ import annotations

from collections.abc import Iterator

from ncheck.model.remark import Remark, error, info, warning
from ncheck.parse.capture import plain_text
from ncheck.read.readers.interfaces import READER as INTERFACES
from ncheck.read.readers.versions import READER as VERSIONS
from ncheck.read.reading import Reader, Reading, Record
from ncheck.triage.causes import CAUSES
from ncheck.triage.certainty import Grade
from ncheck.triage.log_clues import clues_of, progress, scanned, trouble_at_the_end


def diagnosed(text: str) -> Record:
    """Diagnose a job's log: the best cause, its evidence and what to type; `cause` is null if no line shows one.

    `confidence` is the word for its grade: "high", "medium" or "low". `fix` is the command to type: what changes
    something, or else what shows more; "" where the lines say it all. `others` are the other causes in the log, then
    those that print the same lines as the best.
    """
    scan = scanned(plain_text(text).split("\n"))
    clues = clues_of(scan)
    if not clues:
        return _no_cause(text, progress(scan), trouble_at_the_end(scan))
    best = clues[0]
    other_causes = [clue.cause for clue in clues[1:] if clue.cause]
    return {
        "cause": best.cause or None,
        "meaning": f"{best.meaning}: {best.do}" if best.do else best.meaning,
        "confidence": best.grade.word,
        "evidence": list(best.evidence),
        "fix": best.command,
        "others": list(dict.fromkeys([*other_causes, *best.others])),
        "error": None,
    }


def _no_cause(text: str, sure: Grade | None, trouble: str) -> Record:
    """Describe a log without a known failure: a job that hangs may print exactly such a log.

    It is healthy only if it shows that the job ended or went on, and nothing after that sounds like a failure.
    """
    healthy = CAUSES["healthy"]
    rest: Record = {"evidence": [trouble] if trouble else [], "fix": healthy.look, "others": []}
    if sure is None or trouble:
        problem = "no known failure message in the log" if text.strip() else "the log is empty"
        problem += ", but a line that sounds like one" if trouble else ""
        return {"cause": None, "meaning": problem, "confidence": "low", **rest, "error": problem}
    hang = "; if the job hangs all the same, the log does not show why" if sure is Grade.POSSIBLE else ""
    return {
        "cause": "healthy",
        "meaning": f"{healthy.meaning}{hang}",
        "confidence": sure.word,
        **rest,
        "error": None,
    }


def _read(text: str) -> Reading | None:
    """Read a text that a job printed: it has lines of NCCL, or a line that triage knows."""
    facts, nccl = diagnosed(text), _nccl(text)
    if not nccl and facts["cause"] in (None, "healthy"):
        return None
    return Reading("log", "nccl_log" if nccl else "log", {**facts, **nccl}).saying(_remarks(facts))


def _nccl(text: str) -> Record:
    """Return what the lines of NCCL hold beside failures: versions and interfaces; nothing if there is no such line."""
    if "NCCL" not in text:
        return {}
    start = "\n".join(text.split("\n", _FIRST)[:_FIRST])
    readings = [each for reader in (VERSIONS, INTERFACES) if (each := reader.read(start)) and each.tool == "nccl_log"]
    return {key: value for reading in readings for key, value in reading.facts.items() if key != "error"}


_FIRST = 10_000  # lines in which NCCL has said its version and interfaces


def _remarks(facts: Record) -> Iterator[Remark]:
    cause = facts["cause"]
    if cause is None or cause == "healthy":
        yield info(str(facts["meaning"]))
    else:
        say = error if facts["confidence"] == "high" else warning
        yield say(f"{cause}: {facts['meaning']} (confidence {facts['confidence']})")
        if facts["fix"]:
            yield info(f"to type: {facts['fix']}")


def _failed(text: str) -> Reading:
    facts = diagnosed(text)
    return Reading("log", "", facts).saying(_remarks(facts))


READER = Reader("log", ("hangs", "job log"), 90, _read, _failed)
