"""`ncheck read [KIND] FILE`: the saved output of a tool as facts, with what ncheck says of them.

A kind is a family of tools or one of its tools, such as `smi` or `nvidia-smi -q`; within a family the text shows which
tool it is. Without a kind, the readers are tried in their order. Keys have the meaning that they have in the facts of a
run; a value that the text does not hold is null.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ncheck.errors import NcheckError
from ncheck.parse.capture import plain_text
from ncheck.read.parts import parts_of
from ncheck.read.readers.log import READER as LOG
from ncheck.read.reading import Reader, Reading, Record, every_reader
from ncheck.redact import redact_value

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue


class UnknownKindError(NcheckError):
    """The kind does not exist; the message lists those that do."""


KINDS = tuple(dict.fromkeys([name for reader in every_reader() for name in (reader.kind, *reader.tools[:2])]))


def read_text(kind: str, text: str) -> Record:
    """Return the facts in a text of this kind; `error` is why it cannot be read, or null.

    Raises UnknownKindError for a kind that no reader has.
    """
    return read_as(kind, text).facts


def read_as(kind: str, text: str) -> Reading:
    """Return the reading of a text of this kind. Raises UnknownKindError."""
    reader = reader_of(kind)
    if reader is None:
        raise UnknownKindError(f"unknown kind {kind!r}; choose from: {', '.join(KINDS)}")
    return _redacted(_attempt(reader, text) or _failure(reader, text))


def read_all(kind: str, text: str) -> tuple[Reading, ...]:
    """Return the readings of all parts of a text that hold a capture of this kind, at least one.

    What shows no several nodes or commands is read as one capture. Raises UnknownKindError.
    """
    whole = read_as(kind, text)
    reader = reader_of(kind)
    if reader is None or reader is LOG or text.count("\n") > _LONGEST_OUTPUT:
        return (whole,)
    parts = parts_of(plain_text(text), kind_of=_kind_of)
    found = [replace(each, part=part.name) for part in parts if (each := _attempt(reader, part.text))]
    return tuple(_redacted(reading) for reading in found) if len(found) > 1 else (whole,)


def read_any(text: str) -> tuple[Reading, ...]:
    """Return the readings of a text whose kind nobody names, at least one: one per family of tools in each part of it.

    A part that no reader knows is left out if another one is read.
    """
    if text.count("\n") > _LONGEST_OUTPUT:
        return (_redacted(_attempt(LOG, text) or _unknown(text)),)
    parts = [part for part in parts_of(plain_text(text), kind_of=_kind_of) if part.text.strip()]
    found = [replace(each, part=part.name) for part in parts for each in _of_part(part.text)] if len(parts) > 1 else []
    if all(reading.facts.get("error") for reading in found) and len({reading.kind for reading in found}) == 1:
        found = []  # one tool that failed, with several commands
    return tuple(_redacted(reading) for reading in found or _of_part(text) or [_unknown(text)])


_LONGEST_OUTPUT = 20_000  # lines: longer texts are logs


def _kind_of(command: str) -> str:
    reader = reader_of(command)
    return reader.kind if reader else ""


def reader_of(kind: str) -> Reader | None:
    """Return the reader of a kind: the name of a family or tool, also with a path before it and options after it."""
    words = _words(kind)
    for length in range(len(words), 0, -1):
        for reader in every_reader():
            if any(_words(name) == words[:length] for name in (reader.kind, *reader.tools)):
                return reader
    return None


# sudo -n /usr/bin/nvidia-smi -q, torch.utils.collect_env, nccl_tests, ip-addr
def _words(kind: str) -> list[str]:
    words = [word.rpartition("/")[2] for word in kind.lower().split()]
    while words and words[0] in ("sudo", "python", "python3", "srun", "time", "env"):
        words = [word for word in words[1:] if not re.fullmatch(r"-\w|\w+=\S*", word)] if len(words) > 1 else []
    return [part for word in words for part in re.split(r"[_\-]+", word) if part]


def _attempt(reader: Reader, text: str) -> Reading | None:
    """Return what a reader reads, None if it is not its text or too broken to read."""
    try:
        return reader.read(text)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def _failure(reader: Reader, text: str) -> Reading:
    try:
        return reader.failed(text)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as problem:
        return Reading(reader.kind, "", {"error": str(problem)})


def _of_part(text: str) -> list[Reading]:
    """Return the readings of one part: of each family that recognises something in it, else of a tool that failed."""
    readings = [reading for reader in every_reader() if (reading := _attempt(reader, text))]
    logged = any(reading.kind == "log" for reading in readings)  # it holds what the others found in NCCL's lines
    kept = [each for each in readings if each.kind == "log" or not (logged and each.tool == "nccl_log")]
    if kept and not (logged and len(kept) == 1 and text.strip().count("\n") < _SHORT):
        return sorted(kept, key=lambda reading: not reading.quotes)
    silent = [reader for reader in every_reader() if all(reading.kind != reader.kind for reading in readings)]
    failures = [reading for reader in silent if (reading := _failure(reader, text)).tool and reading.facts.get("error")]
    return failures[:1] + kept


_SHORT = 10  # lines: a command and its error, which the log of a job may hold too


def _unknown(text: str) -> Reading:
    log = _failure(LOG, text)
    if log.facts.get("cause"):
        return log  # healthy, which a text of another kind may look like
    error = "no known output of a tool, and no known message of a log" if text.strip() else "the text is empty"
    return Reading("unknown", "", {"error": error})


def _redacted(reading: Reading) -> Reading:
    facts = cast("Record", redact_value(cast("JsonValue", reading.facts)))
    remarks = tuple(replace(each, text=str(redact_value(each.text))) for each in reading.remarks)
    drawing = tuple(str(redact_value(line)) for line in reading.drawing)
    return replace(reading, facts=facts, remarks=remarks, drawing=drawing)
