"""Each row of triage reads the real line that stands above it, and is of the closed list of causes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from ncheck.triage import CAUSES
from ncheck.triage.signature import Grade, Reading
from ncheck.triage.signatures import MODULES, SIGNATURES

# "    # NCCL WARN Duplicate GPU detected : rank 2 and rank 3 both on CUDA device 3b000" and the row beneath it
_ROW = re.compile(r"((?:^    # .*\n)+)^    (?:row|Signature)\(", re.MULTILINE)


def examples(module: ModuleType) -> list[list[str]]:
    """Return the lines above each row, in the order of the rows."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    table = source[source.index("SIGNATURES") :]
    return [[line.removeprefix("    # ") for line in found[1].splitlines()] for found in _ROW.finditer(table)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_line_above_each_row_is_one_that_it_reads(module: ModuleType) -> None:
    shown = examples(module)
    assert len(shown) == len(module.SIGNATURES)
    unread = [
        lines
        for lines, signature in zip(shown, module.SIGNATURES, strict=True)
        if not any(signature.pattern.search(line) for line in lines)
    ]
    assert unread == []


def readings() -> list[Reading]:
    """Return the reading of every row, of those that sort what they find by their own line."""
    found = []
    for module in MODULES:
        for lines, signature in zip(examples(module), module.SIGNATURES, strict=True):
            found += [reading for line in lines if (reading := signature.read(line))]
    return found


def test_every_cause_and_every_other_one_is_of_the_closed_list() -> None:
    named = {name for reading in readings() for name in (reading.cause, *reading.others)} - {""}
    assert named - set(CAUSES) == set()
    assert {reading.cause for reading in readings()} - {""} >= set(CAUSES) - {
        "same_hostname", "nvls_failure", "healthy", "peer_limit"
    }  # fmt: skip
    assert all(reading.cause not in reading.others for reading in readings())


def test_what_is_possible_only_names_what_else_it_may_be() -> None:
    lonely = [reading for reading in readings() if reading.grade is Grade.POSSIBLE and not reading.others]
    assert {reading.cause for reading in lonely} <= {"port_in_use", "rank_crashed", "gpudirect_rdma"}


def test_every_fix_is_one_line_that_a_shell_reads() -> None:
    fixes = {cause.fix for cause in CAUSES.values()} | {reading.fix for reading in readings() if reading.fix}
    for fix in fixes:
        assert "\n" not in fix
        assert "{" not in fix
        read = subprocess.run(["sh", "-n", "-c", fix], capture_output=True, text=True, check=False, timeout=60)
        assert (read.returncode, read.stderr) == (0, ""), fix


def test_all_rows_are_asked() -> None:
    assert len(SIGNATURES) == sum(len(module.SIGNATURES) for module in MODULES)
