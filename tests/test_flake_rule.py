"""The flake rule, in small projects of their own: what runs again, what is listed, and what the run ends with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

INI = "[pytest]\nmarkers = lab\n ssh\naddopts = --strict-markers\n"
HEAD = "import os, pathlib, pytest, time\nHERE = pathlib.Path(__file__).parent\n"
# Fails where no file of its name is, and leaves one.
FLAKY = """
@pytest.mark.{marker}
def test_{name}():
    print("the words of {name}")
    seen = HERE / "{name}.seen"
    before = seen.exists()
    seen.touch()
    assert before, "not seen before"
"""
FLAKY_TEARDOWN = """
@pytest.fixture
def hosts():
    yield
    seen = HERE / "hosts.seen"
    before = seen.exists()
    seen.touch()
    assert before, "a host is left"

@pytest.mark.lab
def test_hosts(hosts):
    pass
"""
BROKEN = """
@pytest.mark.lab
def test_broken():
    assert False, "always"
"""
SKIPPED = """
@pytest.mark.lab
def test_skipped():
    seen = HERE / "seen"
    if seen.exists():
        pytest.skip("no hosts this time")
    seen.touch()
    assert False, "once"
"""
GOOD = "\ndef test_good():\n    pass\n"
Result = tuple[int, str]
Run = Callable[..., Result]


def flaky(name: str, marker: str = "lab") -> str:
    return FLAKY.format(name=name, marker=marker)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs tests under the rule and returns the exit code and all output."""

    def outcome(*tests: str, options: tuple[str, ...] = ("--flake-rule",), workers: int = 0) -> Result:
        (tmp_path / "pytest.ini").write_text(INI)
        (tmp_path / "test_it.py").write_text(HEAD + "".join(tests))
        argv = [sys.executable, "-m", "pytest", "-p", "flake_rule", "-n", str(workers), *options]
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        for name in [name for name in environ if name.startswith("PYTEST_")]:
            del environ[name]
        ended = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    return outcome


def closing_line(output: str) -> str:
    """Return the counts of the last line, without the time."""
    found = re.fullmatch(r"=+ (.*) in [0-9.]+s.* =+", output.splitlines()[-1])
    assert found, output
    return found[1]


def test_a_test_that_passes_alone_is_listed_with_both_outputs_and_the_run_is_green(run: Run) -> None:
    code, output = run(flaky("once", "ssh"), GOOD, workers=2)
    assert (code, closing_line(output)) == (0, "2 passed"), output
    first, _, second = output.partition("when run again alone")
    assert "not seen before" in first
    assert "the words of once" in first
    assert "the words of once" in second
    assert "FLAKY test_it.py::test_once" in output
    assert "1 flaky: failed in this run, passed when run again alone" in output


def test_a_test_that_fails_twice_is_a_failure_with_both_outputs(run: Run) -> None:
    code, output = run(BROKEN, flaky("once"), GOOD)
    assert (code, closing_line(output)) == (1, "1 failed, 2 passed"), output
    assert "failed twice: test_it.py::test_broken" in output
    assert "FLAKY test_it.py::test_broken" not in output
    assert "FLAKY test_it.py::test_once" in output


def test_a_test_that_is_skipped_the_second_time_has_not_passed(run: Run) -> None:
    code, output = run(SKIPPED)
    assert (code, closing_line(output)) == (1, "1 failed"), output


def test_a_test_that_starts_a_process_needs_no_mark_and_a_teardown_is_of_its_test(run: Run) -> None:
    starting = flaky("starts", "filterwarnings").replace(
        "    print(", "    os.waitpid(os.spawnlp(os.P_NOWAIT, 'true', 'true'), 0)\n    print("
    )
    code, output = run(starting, flaky("unit", "filterwarnings"), BROKEN, FLAKY_TEARDOWN, workers=2)
    assert (code, closing_line(output)) == (1, "2 failed, 2 passed"), output
    assert set(re.findall(r"^FLAKY test_it.py::(.*)$", output, re.MULTILINE)) == {"test_starts", "test_hosts"}


def test_no_other_test_runs_again(run: Run, tmp_path: Path) -> None:
    code, output = run(flaky("unit", "filterwarnings"), GOOD)
    assert (code, closing_line(output)) == (1, "1 failed, 1 passed"), output
    assert "run again" not in output
    assert (tmp_path / "unit.seen").exists()


@pytest.mark.parametrize(("count", "ended"), [(3, (0, "3 passed")), (4, (1, "4 failed"))])
def test_three_flakes_are_green_and_four_are_red(run: Run, count: int, ended: Result) -> None:
    code, output = run(*(flaky(f"number{number}") for number in range(count)))
    assert (code, closing_line(output)) == ended, output
    assert f"{count} flaky: failed in this run, passed when run again alone" in output
    assert len(re.findall(r"^FLAKY test_it.py::test_number\d$", output, re.MULTILINE)) == count


def test_where_many_fail_none_runs_again(run: Run) -> None:
    code, output = run(*(flaky(f"number{number}") for number in range(11)))
    assert (code, closing_line(output)) == (1, "11 failed"), output
    assert "11 tests of processes and networks failed: too many to run again" in output


def test_without_the_option_nothing_runs_again(run: Run) -> None:
    code, output = run(flaky("once"), options=())
    assert (code, closing_line(output)) == (1, "1 failed"), output
    assert "run again" not in output


def test_a_green_run_says_nothing_of_the_rule(run: Run) -> None:
    code, output = run(GOOD)
    assert (code, closing_line(output)) == (0, "1 passed"), output
    assert "flaky" not in output
