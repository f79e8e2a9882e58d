"""The node lets in only those with a Slurm job there

## What it finds
Nodes whose pam_slurm_adopt refuses the login: no job of yours runs there at the moment.

## Why it matters
Nothing is wrong with the node. It cannot be looked at, or used, from outside a job.

## What to type
Take the nodes and look from inside: `salloc -w NODE`, then `ncheck --slurm`.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC123", Cause.SLURM_JOB_WANTED)
def slurm_job_required(node: str, _login: Login) -> Problem:
    return Problem("it lets in only users with a Slurm job there", f"salloc -w {node}")
