"""Captures that were cut, mixed up or damaged: no crash, linear time, and no value that is not in the text.

NCHECK_MUTATIONS is how many inputs are made (default 3000); 50,000 take some five minutes. Each day has half of them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from random import Random

import pytest
from ncheck.parse.capture import plain_text
from ncheck.read.report import as_json, as_text
from ncheck.read.text import read_all, read_any

from tests.corpus.test_corpus import rows, text_of
from tests.turns import REPEAT, TURN

INPUTS = int(os.environ.get("NCHECK_MUTATIONS", "3000"))

SLOWEST = 1.0  # seconds of this process for 20,000 characters

STRANGE = "\0\t\n\r\x1b\"'():A|\xff\u2028\u0660"

# What a reader concludes, computes or counts from the text, and the names that it gives.
CONCLUDED = frozenset({
    "closest_level_gpu0", "cls", "format", "data_nic", "meaning", "error", "fix", "confidence", "cause", "others",
    "index", "gpus", "links_per_gpu", "persistence_gpu0", "persistence", "mismatch", "shm_gb", "tables", "rate",
    "state", "tool", "state_num", "evidence", "nccl", "mpi", "throttled", "broken", "seconds", "pci", "cuda",
    "link_errors", "averages",
})  # fmt: skip


def mutated(random: Random, text: str, other: str) -> str:
    """Return the text with one accident of those that happen to pasted text."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    width = random.choice([60, 80, 100])
    accidents = (
        lambda: text[: len(text) * random.randrange(1, 10) // 10],
        lambda: text[len(text) * random.randrange(1, 10) // 10 :],
        lambda: "\n".join(lines[:at] + lines[at + 1 :]),
        lambda: "\n".join([*lines[:at], random.choice(lines), *lines[at:]]),
        lambda: re.sub(r"[\t ]+", " ", text),
        lambda: "".join(random.choice(STRANGE) if random.random() < 0.01 else each for each in text),
        lambda: text.replace("\n", "\r\n"),
        lambda: text[: random.randrange(len(text) + 1)] + other[random.randrange(len(other) + 1) :],
        lambda: "\n".join(line[start : start + width] for line in lines for start in range(0, len(line) or 1, width)),
        lambda: text.replace("\n", " "),
    )
    return random.choice(accidents)()


def leaves(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key)
    elif value is not None and not isinstance(value, bool) and key not in CONCLUDED:
        yield key, value


def squeezed(text: str) -> str:
    """Return the text without blanks; digits of other scripts are no digits."""
    return re.sub(r"(?![0-9])\d", "?", re.sub(r"[\s\x1b]+", "", text)).lower()


def is_in(value: object, text: str) -> bool:
    word = squeezed(str(value))
    return word in text or (isinstance(value, float) and f"{value:g}" in text)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_damaged_captures_are_read_without_a_crash_in_linear_time_and_nothing_is_invented(part: int) -> None:
    random = Random(2 * part + TURN % 2)  # noqa: S311  no secret
    captures = [(row["kind"], text_of(row)) for row in rows()]
    short = [capture for capture in captures if len(capture[1]) < 9000]
    for number in range(INPUTS // 10):
        kind, text = random.choice(short if number % 20 else captures)
        damaged = mutated(random, text, random.choice(short)[1])
        started = time.process_time()
        readings = read_any(damaged) if number % 2 else read_all(kind, damaged)
        assert as_text(readings)
        assert as_json(readings)
        assert time.process_time() - started < SLOWEST * (1 + len(damaged) / 20_000)
        inside = squeezed(damaged) + squeezed(plain_text(damaged))  # an escape sequence hides what is in it
        invented = [each for reading in readings for each in leaves(reading.facts) if not is_in(each[1], inside)]
        assert not invented, (REPEAT, damaged)
