"""The node accepts only users with a Slurm job there

## What it finds
Nodes whose pam_slurm_adopt refuses the login because you have no running job there.

## Why it matters
The node is not faulty. It can be used and examined only from inside a job.

## What to type
Allocate the nodes and run ncheck inside: `salloc -w NODE`, then `ncheck --slurm`; or `ncheck --via srun`, which needs
no ssh at all.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC123", Cause.SLURM_JOB_WANTED)
def slurm_job_required(node: str, _login: Login) -> Problem:
    return Problem("it accepts only users with a Slurm job there", f"salloc -w {node}", where=HERE)
