"""Every signature matches the log line above it in the source, names known causes, and needs a keyword in the line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ncheck.triage import CAUSES
from ncheck.triage.signature import Grade, Reading, Signature
from ncheck.triage.signatures import KEYWORDS, MODULES, SIGNATURES, may_match

PARSE: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse").parse
OPEN = "\0"  # stands for any text that a pattern leaves open

# "    # NCCL WARN Duplicate GPU detected : rank 2 and rank 3 both on CUDA device 3b000" and the signature below it
_ROW = re.compile(r"((?:^    # .*\n)+)^    (?:row|Signature)\(", re.MULTILINE)


def examples(module: ModuleType) -> list[list[str]]:
    """Return the comment lines above each signature, in order."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    table = source[source.index("SIGNATURES") :]
    return [[line.removeprefix("    # ") for line in found[1].splitlines()] for found in _ROW.finditer(table)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_each_signature_matches_the_line_above_it(module: ModuleType) -> None:
    shown = examples(module)
    assert len(shown) == len(module.SIGNATURES)
    unread = [
        lines
        for lines, signature in zip(shown, module.SIGNATURES, strict=True)
        if not any(signature.pattern.search(line) for line in lines)
    ]
    assert unread == []


def readings() -> list[Reading]:
    """Return the reading of every signature for its own example lines."""
    found = []
    for module in MODULES:
        for lines, signature in zip(examples(module), module.SIGNATURES, strict=True):
            found += [reading for line in lines if (reading := signature.read(line))]
    return found


def test_every_cause_is_in_the_closed_list() -> None:
    named = {name for reading in readings() for name in (reading.cause, *reading.others)} - {""}
    assert named - set(CAUSES) == set()
    assert {reading.cause for reading in readings()} - {""} >= set(CAUSES) - {
        "same_hostname", "nvls_failure", "healthy", "peer_limit"
    }  # fmt: skip
    assert all(reading.cause not in reading.others for reading in readings())


def test_a_possible_cause_names_other_causes() -> None:
    alone = [reading for reading in readings() if reading.grade is Grade.POSSIBLE and not reading.others]
    assert {reading.cause for reading in alone} <= {"port_in_use", "rank_crashed", "gpudirect_rdma"}


def test_every_fix_is_one_valid_shell_command() -> None:
    fixes = {cause.fix for cause in CAUSES.values()} | {reading.fix for reading in readings() if reading.fix}
    for fix in fixes:
        assert "\n" not in fix
        assert "{" not in fix
        read = subprocess.run(["sh", "-n", "-c", fix], capture_output=True, text=True, check=False, timeout=60)
        assert (read.returncode, read.stderr) == (0, ""), fix


def test_all_signatures_are_used() -> None:
    assert len(SIGNATURES) == sum(len(module.SIGNATURES) for module in MODULES)


def alternatives(parsed: Iterable[tuple[Any, Any]]) -> list[str]:
    """Return the texts that a pattern requires, one per alternative."""
    found = [""]
    for kind, value in parsed:
        found = [text + more for text in found for more in part(str(kind), value)]
    return found


def part(kind: str, value: Any) -> list[str]:
    if kind == "LITERAL":
        return [chr(value)]
    if (
        kind == "IN"
        and all(str(item) == "LITERAL" for item, _ in value)
        and len({chr(c).lower() for _, c in value}) == 1
    ):
        return [chr(value[0][1])]  # [Ff]
    if kind == "BRANCH":
        return [text for branch in value[1] for text in alternatives(branch)]
    if kind == "SUBPATTERN":
        return alternatives(value[-1])
    if kind in ("MAX_REPEAT", "MIN_REPEAT") and value[0] > 0:
        return [text + OPEN for text in alternatives(value[2])]
    return [OPEN]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.pattern.pattern[:40])
def test_every_alternative_of_a_signature_contains_a_keyword(signature: Signature) -> None:
    read = alternatives(PARSE(signature.pattern.pattern, signature.pattern.flags))
    assert [text.split(OPEN) for text in read if not may_match(text)] == []


def test_every_keyword_is_needed_by_a_signature() -> None:
    texts = [text.lower() for row in SIGNATURES for text in alternatives(PARSE(row.pattern.pattern, row.pattern.flags))]
    keywords = [[word for word in KEYWORDS if word in text] for text in texts]
    assert set(KEYWORDS) - {words[0] for words in keywords if len(words) == 1} == set()


@pytest.mark.parametrize("line", [
    "[rank3] step 20/625, loss 1.428, 2041 tokens/s", "Epoch: [0][ 20/625]  Time  1.428 ( 1.972)  Loss 6.9 (7.0)",
    "node01:77:80 [0] NCCL INFO comm 0x55d0 rank 0 nranks 16 cudaDev 0 busId 1a000 - Init COMPLETE", "",
])  # fmt: skip
def test_the_lines_of_a_job_that_works_are_skipped(line: str) -> None:
    assert not may_match(line)
