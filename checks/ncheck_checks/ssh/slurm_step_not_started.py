"""Slurm starts no task on the node

## What it finds
With `--via srun`: nodes of the allocation on which Slurm does not start ncheck's task, with Slurm's own words: the node
is down or does not respond, its slurmd is dead, or its prolog fails.

## Why it matters
A job step that contains such a node does not start at all, or Slurm ends it on all other nodes after a timeout.

## What to type
`scontrol show node NODE` shows its state and the reason; on the node, `sudo systemctl restart slurmd`. A new allocation
without it: `salloc --exclude=NODE`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import Cause, never_got_that_far


@node_check("NC139", Severity.ERROR, LoginFacts, blocks_plan=True, explains_unreached=True)
def slurm_step_not_started(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    login = node[LoginFacts].login
    if login.transport not in ("srun", ""):
        yield NotApplicable("--via srun is not used")
    elif login.cause is Cause.STEP_NOT_STARTED:
        yield Problem(
            "Slurm starts no task there",
            login.fix or f"scontrol show node {quote(node.name)}",
            evidence=(login.detail,),
            where=HERE,
            look=True,
        )
    elif doubt := never_got_that_far(login, Cause.STEP_NOT_STARTED):
        yield doubt
