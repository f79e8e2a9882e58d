"""Answers of RAS with errors in them: nothing crashes, nothing takes long, and no garbage is a sign of health."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from random import Random

import pytest
from ncheck.triage.clue import Motion
from ncheck.triage.live.ras import signs

from tests.standins.nccl_ras import RELEASES, Comm, answer, change
from tests.turns import REPEAT, TURN

from .jobs import spread
from .ras_answers import evidence, seen, world

pytestmark = pytest.mark.slow

JOB = spread(3)
WORLD, OTHER = world(3), world(3, key=7)
# Jobs that stand still: whatever an error makes of two answers, it must not look like progress.
HUNG: tuple[tuple[Comm, ...], ...] = (
    (WORLD,),
    (change(WORLD, [2], counts=(0, 0, 0, 0, 6649)),),
    (change(change(WORLD, [1], lost="dead"), [2], lost="unresponsive"),),
    (change(WORLD, [2], counts=(0, 0, 1, 0, 6649)), change(OTHER, [0], error=2)),
    (change(change(WORLD, [2], init=7), [1], abort=True),),
)
TEXTS = [(answer(comms, release), release) for comms in HUNG for release in RELEASES]

Mutation = Callable[[str, Random], str]


def cut(text: str, random: Random) -> str:
    return text[: random.randrange(len(text) + 1)]


def flipped(text: str, random: Random) -> str:
    at = random.randrange(len(text))
    return text[:at] + chr(random.choice((random.randrange(128), random.randrange(0x110000)))) + text[at + 1 :]


def lost(text: str, random: Random) -> str:
    at = random.randrange(len(text))
    return text[:at] + text[at + random.randrange(1, 200) :]


def repeated(text: str, random: Random) -> str:
    at = random.randrange(len(text))
    end = at + random.randrange(1, 400)
    return text[:end] + text[at:end] * random.randrange(1, 5) + text[end:]


def lines_moved(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(random.randrange(1, 4)):
        lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))
    return "".join(lines)


def number_changed(text: str, random: Random) -> str:
    found = re.compile(r"\d").search(text, random.randrange(len(text)))
    at = found.start() if found else 0
    return text[:at] + random.choice(("9" * 30, "-1", "0", "1e9", "", "99", "null", "²")) + text[at + 1 :]


def spliced(text: str, random: Random) -> str:
    other = random.choice(TEXTS)[0]
    return text[: random.randrange(len(text))] + other[random.randrange(len(other)) :]


MUTATIONS: tuple[Mutation, ...] = (cut, flipped, lost, repeated, lines_moved, number_changed, spliced)


def mutated(text: str, random: Random) -> str:
    for _ in range(random.randrange(1, 4)):
        text = random.choice(MUTATIONS)(text, random) or "{"
    return text


def check(answers: int, seed: int) -> float:
    """Return the longest time that two answers took: one of them has errors, or both have, of one kind or of two."""
    random = Random(seed)  # noqa: S311  the same errors each time
    longest, made = 0.0, 0
    while made < answers:
        text, _ = random.choice(TEXTS)
        one, two = mutated(text, random), mutated(text, random)
        pair = random.choice(((one, two), (one, two), (one, text), (text, one), (one, one)))
        made += len({*pair} - {text})
        began = time.process_time()
        found = list(signs(JOB, seen(evidence("node0", *pair), evidence("node1"))))
        longest = max(longest, time.process_time() - began)
        assert not [one for one in found if isinstance(one, Motion) and one.moves], (REPEAT, pair)
    return longest


def test_answers_with_errors_ten_thousand_in_four_days() -> None:
    assert check(2_500, seed=1 + TURN % 4) < 1, REPEAT


def test_the_longest_hostile_answers_take_linear_time() -> None:
    """What a server may send: as long as the agent takes it, and made to be slow."""
    row = "  Rank {} -- GPU 0 managed by process {} on node 10.0.0.1\n"
    head = "NCCL version 2.26.2 compiled with CUDA 12.6\nErrors\n#0-0 (00000000000000ab) MISMATCH\n"
    counted = "  Communicator ranks have different AllReduce operation counts\n"
    each = "".join(f"  Rank {at} has launched up to operation {at} -- GPU 0 managed by process {at} on node h\n"
                   for at in range(16000))  # fmt: skip
    hostile = (
        head + counted + each,
        head + "".join(row.format(at, 4000) for at in range(30_000)),
        head + "".join(f"#0-{at % 9} ({at:016x}) MISMATCH\n" for at in range(60_000)),
        head + "  The missing ranks: " + "1," * 900_000 + "\n",
        '{"nccl_version": "2.30.7", "communicators": ' + '[{"hash": "0x1" ' * 100_000,
        '{"nccl_version": "2.30.7", "communicators": [' + '{"hash": "0x1", "size": 4, "ranks": []},' * 40_000 + "]}",
        answer([world(2_500, 4)], "2.28.9").replace('"nvml_dev": 0,', '"nvml_dev": 0'),
    )
    for text in hostile:
        began = time.process_time()
        list(signs(JOB, seen(evidence("node0", text[: 2 << 20], text[: 2 << 20]), evidence("node1"))))
        assert time.process_time() - began < 4, text[:200]
