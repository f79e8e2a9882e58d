"""Triage of Open MPI ranks that hang on three hosts. bench/triage_faults.py makes all faults."""

from __future__ import annotations

import pytest

from .hosts import Lab
from .job_faults import FAULTS
from .promises import nothing_left
from .running_jobs import triaged

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["healthy-mpi", "stopped-mpi", "mpi-docker0"])
def test_the_cause_the_rank_and_the_node_are_named(triage_lab: Lab, name: str) -> None:
    fault = FAULTS[name]
    with fault.job(triage_lab), nothing_left(triage_lab):
        run = triaged(triage_lab)
    wrong = fault.truth.wrong(run.report["diagnoses"])
    assert not wrong, f"{wrong}: {run.report}"
    assert run.exit_code == (1 if fault.truth.causes else 0)
