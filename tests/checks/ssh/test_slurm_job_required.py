"""NC123: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.slurm_job_required import slurm_job_required

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "it accepts only users with a Slurm job there"
    only_its_cause_is_red(judge, slurm_job_required, "NC123", Cause.SLURM_JOB_WANTED, message, where="here")
