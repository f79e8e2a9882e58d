"""What `ncheck read log FILE` prints of a job's log."""

from __future__ import annotations

from ncheck.parse.capture import plain_text
from ncheck.triage.causes import CAUSES
from ncheck.triage.diagnosis import Confidence, diagnose, progress


def log_record(text: str) -> dict[str, object]:
    """Return the best cause, its evidence and what to type; `cause` is null where nothing tells of one.

    `others` are the causes of other lines, then those that print the same lines as this one.
    """
    lines = plain_text(text).split("\n")
    found = diagnose(lines)
    if not found:
        return _no_cause(progress(lines), _UNKNOWN if text.strip() else _EMPTY)
    best = found[0]
    return {
        "cause": best.cause or None,
        "meaning": best.meaning,
        "confidence": best.confidence.value,
        "evidence": list(best.evidence),
        "fix": best.fix,
        "others": list(dict.fromkeys([*(one.cause for one in found[1:] if one.cause), *best.others])),
        "error": None,
    }


def _no_cause(sure: Confidence | None, unknown: str) -> dict[str, object]:
    """Return what is said of a log without a line that tells of a failure: a job that hangs may leave just such one."""
    told: dict[str, object] = {"evidence": [], "fix": CAUSES["healthy"].fix, "others": []}
    if sure is None:
        return {"cause": None, "meaning": unknown, "confidence": "low", **told, "error": unknown}
    silent = "; if the job stands still all the same, it does so without a word" if sure is Confidence.LOW else ""
    return {
        "cause": "healthy",
        "meaning": f"{CAUSES['healthy'].meaning}{silent}",
        "confidence": sure.value,
        **told,
        "error": None,
    }


_UNKNOWN = "no line in it is known to tell of a failure"


_EMPTY = "the log is empty"
