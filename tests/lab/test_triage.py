"""Triage of real trainings that hang: torch ranks over gloo on three hosts. bench/triage_faults.py makes all faults."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.skips import cannot

from .hosts import Lab
from .job_faults import FAULTS, drop, held
from .promises import nothing_left
from .running_jobs import Job, running, triaged

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def torch() -> None:
    if not find_spec("torch") or not shutil.which("py-spy", path=str(Path(sys.executable).parent)):
        cannot("torch and py-spy are not installed beside the tests: make test TORCH=1")


@pytest.mark.parametrize("name", ["lock", "other-master-port"])  # test_watch.py makes others
def test_the_cause_the_rank_and_the_node_are_named(triage_lab: Lab, name: str) -> None:
    with FAULTS[name].job(triage_lab), nothing_left(triage_lab):
        run = triaged(triage_lab)
    held(run, name)


def test_nodes_between_which_nothing_passes_are_named_and_nobody_is_before(triage_lab: Lab) -> None:
    first, second, *_ = triage_lab.nodes
    with running(triage_lab, Job()) as job, nothing_left(triage_lab):
        healthy = triaged(triage_lab)
        drop(first, second)
        drop(second, first)
        job.await_stillness()
        lost = triaged(triage_lab)
    held(healthy, "healthy")
    held(lost, "two-way-loss")
