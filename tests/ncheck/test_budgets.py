"""What a run may cost, in counts that a busy machine does not change. Who needs more writes the new number, and why."""

from __future__ import annotations

import cProfile
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ncheck.fleet.recording import encode, loaded, trusted
from ncheck.model.evidence import Evidence
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.read.text import read_text
from ncheck.report.json import as_json
from ncheck.settings import Settings

from tests.recorded.clusters import cluster
from tests.recorded.make import evidence

MORE = 1.05  # what a count may grow by unnoticed

# Python function calls a node with 8 GPUs and 8 HCAs (Python 3.11; newer ones make fewer)
FEW, SOME, MANY = 8, 12, 24  # nodes
READING, JUDGING = 1_240, 18_600  # a node of many, which share most replies; 288 checks
GROWTH = 1.03  # of what judging one node more costs: from few to some, and from some to many
MODULES, STARTING = 718, 277_000  # of a full start: modules, and calls to import them; records are made when used
ALONE = {"rank": 140, "ncheck.hook.node_part": 313, "ncheck.hook.examiner": 734}  # modules of one rank's processes
LOG = 188  # calls to read one line of a job's log for its cause, versions and interfaces
WRITTEN = 4_295  # bytes that one more node adds to the JSON: lists with its name, and what identifies its parts


def recorded(count: int) -> list[tuple[str, bytes]]:
    hosts = cluster(*(f"gpu{number:03}" for number in range(1, count + 1)))
    return [(host.name, encode(evidence(host, at + 1), at, count).encode()) for at, host in enumerate(hosts)]


def read(files: list[tuple[str, bytes]]) -> tuple[Evidence, ...]:
    return trusted("recording", loaded(files))


def judged(nodes: tuple[Evidence, ...]) -> Report:
    report = judge_again(nodes, Settings(), Silent())
    assert report.exit_code == 0
    return report


def calls(work: Callable[..., object], *words: object) -> int:
    """Return the Python function calls, once everything was imported and compiled."""
    profile = cProfile.Profile()
    profile.runcall(work, *words)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.slow
def test_reading_judging_and_writing_a_recorded_node_costs_no_more_than_before_nor_among_many_nodes() -> None:
    files = {count: recorded(count) for count in (FEW, SOME, MANY)}
    nodes = {count: read(listed) for count, listed in files.items()}
    written = {count: len(as_json(judged(some))) for count, some in nodes.items()}
    assert (written[MANY] - written[SOME]) / (MANY - SOME) <= WRITTEN * MORE
    assert calls(read, files[MANY]) <= READING * MANY * MORE
    made = {count: calls(judged, some) for count, some in nodes.items()}
    assert made[MANY] <= JUDGING * MANY * MORE
    assert (made[MANY] - made[SOME]) / (MANY - SOME) <= (made[SOME] - made[FEW]) / (SOME - FEW) * GROWTH


def test_reading_a_line_of_a_log_makes_no_more_calls_than_before() -> None:
    line = "host{0}:{0}:{0} [0] NCCL INFO Channel 00/0 : {0}[0] -> 8[0] [send] via NET/Socket/{0}"
    texts = ["\n".join(line.format(start + at) for at in range(400)) for start in range(2)]
    _, made = (calls(read_text, "log", text) for text in texts)  # the first one compiles the patterns
    assert made / 400 <= LOG * MORE


START = """
import cProfile, sys
profile = cProfile.Profile()
profile.enable()
import ncheck.cli.check, ncheck.cli.main, ncheck.pipeline, ncheck.steps.registry
ncheck.steps.registry.load_checks().checks
profile.disable()
print(len(sys.modules), sum(entry.callcount for entry in profile.getstats()))
"""


def test_a_start_imports_no_more_modules_and_makes_no_more_calls_than_before() -> None:
    starts = [subprocess.check_output([sys.executable, "-c", START], text=True) for _ in range(2)]
    modules, made = map(int, starts[1].split())  # what the first one compiled is kept
    assert modules <= MODULES * MORE
    assert made <= STARTING * MORE


RANK = """
import sys
sys.executable = sys.argv[1]
import ncheck
ncheck.preflight()
print(len(sys.modules))
"""


def test_the_processes_of_one_rank_alone_import_no_more_modules_than_before(tmp_path: Path) -> None:
    python = tmp_path / "python"  # lists what it imports
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -v "$@" 2>"$0.$$"\n')
    python.chmod(0o755)
    made = {"rank": int(subprocess.check_output([sys.executable, "-c", RANK, python], text=True))}
    for listed in tmp_path.glob("python.*"):
        imported = re.findall("^import '(.+?)'", listed.read_text(), re.MULTILINE)
        made[next(name for name in ALONE if name in imported)] = len(imported)
    assert made.keys() == ALONE.keys()
    assert {name: count for name, count in made.items() if count > ALONE[name] * MORE} == {}
