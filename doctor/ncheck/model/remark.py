"""What is said of one thing that was read: a sentence of judgement and its level."""

from __future__ import annotations

from ncheck.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Remark:
    """One sentence of judgement; `level` is error, warning or info."""

    level: str
    text: str


def error(text: str) -> Remark:
    """Return a remark on what stops or slows a job."""
    return Remark("error", text)


def warning(text: str) -> Remark:
    """Return a remark on what may stop or slow a job."""
    return Remark("warning", text)


def info(text: str) -> Remark:
    """Return a remark that only helps to understand the text."""
    return Remark("info", text)
