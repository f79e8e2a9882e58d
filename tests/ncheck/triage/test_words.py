"""No row can read a line that has no word of trouble: its pattern is taken apart, and each alternative holds one."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pytest
from ncheck.triage.signature import Signature
from ncheck.triage.signatures import KEYWORDS, SIGNATURES, may_match

PARSE: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse").parse
OPEN = "\0"  # stands for whatever a pattern leaves open


def alternatives(parsed: Iterable[tuple[Any, Any]]) -> list[str]:
    """Return what a pattern matches, alternative by alternative: the texts that it cannot do without."""
    found = [""]
    for kind, value in parsed:
        found = [text + more for text in found for more in part(str(kind), value)]
    return found


def part(kind: str, value: Any) -> list[str]:
    if kind == "LITERAL":
        return [chr(value)]
    if kind == "IN" and all(str(one) == "LITERAL" for one, _ in value) and len({chr(c).lower() for _, c in value}) == 1:
        return [chr(value[0][1])]  # [Ff]
    if kind == "BRANCH":
        return [text for branch in value[1] for text in alternatives(branch)]
    if kind == "SUBPATTERN":
        return alternatives(value[-1])
    if kind in ("MAX_REPEAT", "MIN_REPEAT") and value[0] > 0:
        return [text + OPEN for text in alternatives(value[2])]
    return [OPEN]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.pattern.pattern[:40])
def test_whatever_a_row_reads_has_a_word_of_trouble(signature: Signature) -> None:
    read = alternatives(PARSE(signature.pattern.pattern, signature.pattern.flags))
    assert [text.split(OPEN) for text in read if not may_match(text)] == []


def test_a_word_that_no_row_wants_is_not_looked_for() -> None:
    texts = [text.lower() for row in SIGNATURES for text in alternatives(PARSE(row.pattern.pattern, row.pattern.flags))]
    held = [[word for word in KEYWORDS if word in text] for text in texts]
    assert set(KEYWORDS) - {words[0] for words in held if len(words) == 1} == set()


@pytest.mark.parametrize("line", [
    "[rank3] step 20/625, loss 1.428, 2041 tokens/s", "Epoch: [0][ 20/625]  Time  1.428 ( 1.972)  Loss 6.9 (7.0)",
    "node01:77:80 [0] NCCL INFO comm 0x55d0 rank 0 nranks 16 cudaDev 0 busId 1a000 - Init COMPLETE", "",
])  # fmt: skip
def test_what_a_job_says_that_goes_well_is_passed_over(line: str) -> None:
    assert not may_match(line)
