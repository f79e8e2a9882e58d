"""`ncheck read` against saved output of other people's machines; INDEX.jsonl has the true values of each file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.read.text import read_all, read_any

FOLDER = Path(os.environ["NCHECK_CORPUS"])

# Known to the author of the truth, but not in the text.
REMARKS = frozenset({"note", "also_acceptable", "nccl_socket_ifname_that_solved_it"})
# Only two lines of ifconfig: too few to recognise a cloud machine.
UNDECIDABLE = frozenset({("nics/007.txt", "interfaces")})

Row = Mapping[str, Any]


def rows() -> list[Row]:
    index = (FOLDER / "INDEX.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in index.splitlines() if line.strip()]


def text_of(row: Row) -> str:
    return (FOLDER / str(row["file"])).read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
@pytest.mark.parametrize("named", ["kind", "tool", ""])
def test_every_key_of_the_truth_is_read_from_the_capture(row: Row, named: str) -> None:
    """Whether the user names the family, the tool, or nothing."""
    text, kind = text_of(row), row.get(named, row["kind"])
    record = read_all(kind, text)[0].facts if named else read_any(text)[0].facts
    keys = [key for key in row["truth"] if key not in REMARKS and (row["file"], key) not in UNDECIDABLE]
    assert {key: _cut(key, record, row["truth"], text) for key in keys} == {key: row["truth"][key] for key in keys}


def _cut(key: str, record: Row, truth: Row, text: str) -> Any:
    """Return what was read, cut to what the truth holds; the text of an error is not compared."""
    got: Any = record.get(key)
    if key in ("pairs", "ops"):
        return {name: got.get(name) for name in truth[key]}
    if key in ("cas", "hcas", "ports"):
        return [_part(one, wanted) for one, wanted in zip(got, truth[key], strict=True)]
    if key in ("interfaces", "virtual_or_unusable"):
        return _named(got, truth[key], text)
    if key == "data_nic" and got in truth.get("also_acceptable", ()):
        return truth[key]
    return truth[key] if key == "error" and got and truth[key] else got


def _part(one: Row, wanted: Row) -> Row:
    part = {key: one.get(key) for key in wanted}
    if "ports" in wanted:
        part["ports"] = [_part(*pair) for pair in zip(one["ports"], wanted["ports"], strict=True)]
    return part


def _named(got: list[Any], wanted: list[Any], text: str) -> list[Any]:
    """Return the list with the names that an author removed from the text: they cannot be read."""
    assert len(got) == len(wanted)
    return [_renamed(one, other, text) for one, other in zip(got, wanted, strict=True)]


def _renamed(one: Any, wanted: Any, text: str) -> Any:
    if isinstance(wanted, dict):
        return {**one, "name": wanted["name"]} if wanted["name"] not in text else one
    return wanted if wanted not in text else one
