"""The preflight in front of a job on real hosts: a healthy job runs as without it, any other ends on every rank."""

from __future__ import annotations

from .hosts import Lab
from .promises import nothing_left
from .ranks import everywhere, ran


def test_a_healthy_job_runs_as_without_the_hook(job_lab: Lab) -> None:
    with nothing_left(job_lab):
        done = ran(job_lab, everywhere(job_lab))

    assert [(one.exit_code, one.said) for one in done] == [
        (0, f"rank {rank} of 3 on node0{rank + 1}: 3\n") for rank in range(3)
    ]
