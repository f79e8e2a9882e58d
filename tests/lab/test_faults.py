"""No fault that the lab makes is lost: each line of faults.toml is made by the test that it names."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent
LISTED: dict[str, dict[str, str]] = tomllib.loads((FOLDER / "faults.toml").read_text(encoding="utf-8"))


@cache
def functions_of(module: str) -> set[str]:
    """Return the names of a module's test functions."""
    tree = ast.parse((FOLDER / module).read_text(encoding="utf-8"))
    return {part.name for part in tree.body if isinstance(part, ast.FunctionDef) and part.name.startswith("test_")}


@pytest.mark.parametrize("test", LISTED)
def test_each_listed_fault_is_made_by_the_test_that_it_names(test: str) -> None:
    module, _, name = test.partition("::")
    text = (FOLDER / module).read_text(encoding="utf-8")

    assert name in functions_of(module)
    for fault, expected in LISTED[test].items():
        assert [words for words in expected.split(", ") if words not in text] == [], fault
