"""Libraries that a job named: whole ones, broken ones, and what is none at all."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from ncheck.agent import elf
from ncheck.agent.answers.nccl_loaded import built_as
from ncheck.agent.answers.tools import with_mpi

TEXT = b"....NCCL version 2.21.5+cuda12.4\0...."
NAMES = b"\0.rodata\0.dynamic\0.dynstr\0.shstrtab\0"


def library(
    path: Path, *, names: int = 4, rodata: tuple[int, int] | None = None, dynamic: tuple[int, int] | None = None
) -> str:
    """Write an ELF file; the numbers are those that a broken one gets wrong."""
    strings = b"\0libmpi.so.40\0"
    entries = struct.pack("<qQ", 1, 1)
    parts = {b".rodata": TEXT, b".dynamic": entries, b".dynstr": strings, b".shstrtab": NAMES}
    data, rows = b"", [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, content in parts.items():
        place = {b".rodata": rodata, b".dynamic": dynamic}.get(name) or (64 + len(data), len(content))
        rows.append(struct.pack("<IIQQQQIIQQ", NAMES.index(name), 0, 0, 0, *place, 0, 0, 0, 0))
        data += content
    kind = b"\x7fELF\x02\x01".ljust(16, b"\0")
    header = struct.pack("<16sHHIQQQIHHHHHH", kind, 3, 62, 1, 0, 0, 64 + len(data), 0, 64, 0, 0, 64, len(rows), names)
    path.write_bytes(header + data + b"".join(rows))
    return str(path)


@pytest.mark.parametrize("block", [1, 7, 1024])
def test_a_constant_is_found_wherever_its_block_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(elf, "_BLOCK", block, raising=False)
    path = library(tmp_path / "whole")
    assert (built_as(path), with_mpi(path)) == (("2.21.5", "12.4"), True)


def test_a_broken_library_says_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    assert built_as(library(tmp_path / "names", names=77)) == ("", "")
    assert built_as(library(tmp_path / "beyond", rodata=(2**63, 2**63))) == ("", "")
    assert built_as(library(tmp_path / "endless", rodata=(64, 2**62)))[0] == "2.21.5"
    assert with_mpi(library(tmp_path / "dynamic", dynamic=(2**40, 2**40))) is False


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert (built_as(str(tmp_path / "fifo")), built_as("/dev/zero")) == (("", ""), ("", ""))


def test_a_library_that_is_cut_off_while_it_is_read_ends_nothing(tmp_path: Path) -> None:
    opened = elf.Library(library(tmp_path / "whole"))
    os.truncate(tmp_path / "whole", 0)
    assert (opened.constant(b"NCCL version"), opened.needed()) == ("", [])
    opened.close()
