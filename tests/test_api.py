"""docs/api.md is the public API: its examples run, its names are those of the package, its facts are all there are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import ncheck
import pytest

TREE = Path(__file__).parents[1]
API = (TREE / "docs" / "api.md").read_text(encoding="utf-8")

EXAMPLES = re.findall(r"^```python\n(.*?)^```", API, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = tmp_path / f"example_{number}.py"
    example.write_text(EXAMPLES[number], encoding="utf-8")
    monkeypatch.chdir(TREE)
    runpy.run_path(str(example), run_name=example.stem)


def test_the_names_of_the_package_are_those_of_the_page() -> None:
    table = API.partition("\n## Names in ncheck\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == sorted(ncheck.__all__)


def test_each_public_name_can_be_had() -> None:
    assert [name for name in ncheck.__all__ if not hasattr(ncheck, name)] == []


def test_every_fact_that_a_check_of_ours_reads_is_on_the_page() -> None:
    from ncheck.registry import load_checks

    facts = {fact.__name__ for check in load_checks().checks for fact in (*check.reads, *check.also)}
    assert {fact for fact in facts if f"\n- `{fact}`" not in API} == set()
