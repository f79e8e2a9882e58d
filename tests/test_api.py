"""docs/api.md is the public API: its examples run, its names are those of the package, its facts are all there are."""

from __future__ import annotations

import dataclasses
import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import ncheck
import pytest
from api_tables import described, public_records, said_of
from markdown_it import MarkdownIt

TREE = Path(__file__).parents[1]
API = (TREE / "docs" / "api.md").read_text(encoding="utf-8")

EXAMPLES = re.findall(r"^```python\n(.*?)^```", API, flags=re.DOTALL | re.MULTILINE)


def records() -> list[type]:
    return [record for record in public_records() if dataclasses.is_dataclass(record)]


@pytest.mark.slow
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
    assert dir(ncheck) == sorted(ncheck.__all__)


def test_every_fact_that_a_check_of_ours_reads_is_on_the_page() -> None:
    from ncheck.steps.registry import load_checks

    facts = {fact.__name__ for check in load_checks().checks for fact in (*check.reads, *check.also)}
    assert {fact for fact in facts if f"\n#### {fact}\n" not in API} == set()


@pytest.mark.slow
def test_the_page_shows_each_field_with_its_type_in_a_table() -> None:
    """As a Markdown parser reads it: a bar in a type ends no cell."""
    tokens = MarkdownIt("commonmark").enable("table").parse(API)
    cells = [token.content for before, token in pairwise(tokens) if before.type == "td_open"]
    shown = set(pairwise(cells))
    assert [
        f"{record.__name__}.{one.name}"
        for record in records()
        for one in described(record)[1]
        if (f"`{one.name}`", one.type) not in shown
    ] == []


PLAIN = {"pid", "index", "port", "line", "ranks"}  # numbers that need no words


@pytest.mark.slow
def test_each_number_has_a_unit_or_says_what_it_counts() -> None:
    assert [
        f"{record.__name__}.{one.name}"
        for record in records()
        for one in described(record)[1]
        if re.search(r"\b(int|float)\b", one.type) and one.name not in PLAIN and not (one.unit or one.meaning)
    ] == []


def test_a_docstring_is_parted_into_what_it_says_of_each_field() -> None:
    doc = """A file. `size` and `free` in bytes; `kind`: "ext4", None where `size` is; `at` is when, `by` who. Ever.

    Nothing of it is `free`.
    """
    assert said_of(doc, ["size", "free", "kind", "at", "by", "path"]) == (
        "A file. Nothing of it is `free`.",
        {"size": "in bytes", "free": "in bytes", "kind": '"ext4", None where `size` is', "at": "when",
         "by": "who. Ever"},
    )  # fmt: skip


TYPED = """
from collections.abc import Iterator

import ncheck
from ncheck.facts.gpus import GpuFacts

report = ncheck.run(["node01", "node02"], port=10001, select="versions,NC3", deadline=120, probe="none")
reveal_type(report.plan)
plan: ncheck.LaunchPlan = report.plan
lines: dict[str, str] = dict(plan.lines)
for finding in report.findings:
    where: tuple[str, ...] = finding.nodes
    if finding.severity is ncheck.Severity.ERROR:
        print(finding.code, finding.fix.upper())
for measurement in report.measurements:
    reveal_type(measurement.measured)
hung: ncheck.LiveReport = ncheck.diagnose("nodes.txt", match="train.py")
print(hung.healthy, ncheck.preflight(on_problem="warn").exit_code)


@ncheck.node_check("AB1", ncheck.Severity.WARNING, GpuFacts)
def few_gpus(node: ncheck.NodeView) -> Iterator[ncheck.Problem]:
    if len(node[GpuFacts].gpus) < 4:
        yield ncheck.Problem("few GPUs", "nvidia-smi")


ncheck.run(port="x")
ncheck.run(selekt="NC1")
"""


@pytest.mark.slow
def test_a_program_of_a_user_is_checked_by_mypy(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(TYPED)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(TREE / ".mypy_cache"), "own.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [line.partition(": ")[2] or line for line in checked.stdout.splitlines()] == [
        'note: Revealed type is "ncheck.model.plan.LaunchPlan"',
        'note: Revealed type is "float | None"',
        'error: Argument "port" to "run" has incompatible type "str"; expected "int"  [arg-type]',
        'error: Unexpected keyword argument "selekt" for "run"; did you mean "select"?  [call-arg]',
        'note: "run" defined in "ncheck.api"',
        "Found 2 errors in 1 file (checked 1 source file)",
    ], checked.stderr
