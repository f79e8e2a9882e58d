"""No fault that the lab makes is lost: each line of faults.toml is made by the test that it names."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent
LISTED: dict[str, dict[str, str]] = tomllib.loads((FOLDER / "faults.toml").read_text(encoding="utf-8"))


def rows(tree: ast.Module) -> dict[str, str]:
    """Map the faults of a module's ward to the source of their rows."""
    calls = (part for part in ast.walk(tree) if isinstance(part, ast.Call) and ast.unparse(part.func) == "Row")
    return {ast.literal_eval(call.args[0]): ast.unparse(call) for call in calls}


@pytest.mark.parametrize("module", sorted({test.partition("::")[0] for test in LISTED}))
def test_each_listed_fault_is_made_by_the_test_that_it_names(module: str) -> None:
    text = (FOLDER / module).read_text(encoding="utf-8")
    tree = ast.parse(text)
    functions = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
    wards = rows(tree)

    for test, faults in LISTED.items():
        of_module, _, name = test.partition("::")
        for fault, expected in faults.items() if of_module == module else ():
            in_ward = "row" in {argument.arg for argument in functions[name].args.args}
            shown = wards[fault] if in_ward else text
            assert [words for words in expected.split(", ") if words not in shown] == [], (test, fault)
