"""Triage of Open MPI ranks that hang on three hosts. bench/triage_faults.py makes all faults."""

from __future__ import annotations

import pytest

from .hosts import Lab
from .job_faults import FAULTS, held
from .promises import nothing_left
from .running_jobs import Job, running, triaged

pytestmark = pytest.mark.slow


def test_a_rank_that_is_stopped_is_named_with_its_node_and_nobody_is_before(triage_lab: Lab) -> None:
    with running(triage_lab, Job(mpi=True)) as job, nothing_left(triage_lab):
        healthy = triaged(triage_lab)
        job.signal(1, "STOP")
        job.await_stillness()
        stopped = triaged(triage_lab)

    held(healthy, "healthy-mpi")
    held(stopped, "stopped-mpi")


def test_a_job_that_is_set_to_use_docker0_is_told_so(triage_lab: Lab) -> None:
    with FAULTS["mpi-docker0"].job(triage_lab), nothing_left(triage_lab):
        run = triaged(triage_lab)

    held(run, "mpi-docker0")
