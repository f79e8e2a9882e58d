"""Triage of real trainings that hang: torch ranks over gloo on three hosts. bench/triage_faults.py makes all faults."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.skips import cannot

from .hosts import Lab
from .job_faults import FAULTS
from .promises import nothing_left
from .running_jobs import triaged

pytestmark = pytest.mark.slow

MADE = ("healthy", "lock", "two-way-loss", "other-master-port")  # test_watch.py makes others


@pytest.mark.parametrize("name", MADE)
def test_the_cause_the_rank_and_the_node_are_named(triage_lab: Lab, name: str) -> None:
    if not find_spec("torch") or not shutil.which("py-spy", path=str(Path(sys.executable).parent)):
        cannot("torch and py-spy are not installed beside the tests: make test TORCH=1")
    fault = FAULTS[name]
    with fault.job(triage_lab), nothing_left(triage_lab):
        run = triaged(triage_lab)
    wrong = fault.truth.wrong(run.report["diagnoses"])
    assert not wrong, f"{wrong}: {run.report}"
    assert run.exit_code == (1 if fault.truth.causes else 0)
