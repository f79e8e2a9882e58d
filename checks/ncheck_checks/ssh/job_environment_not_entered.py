"""The job's environment could not be entered

## What it finds
Nodes on which `--setup` or `--enter` failed, or that lack the interpreter given with `--python`: a missing module, a
file that cannot be sourced, a container that is not running.

## Why it matters
ncheck compares the job's environment, so it reads nothing outside it: versions from outside would look right and be
meaningless. The job itself would fail there in the same way.

## What to type
Try it as ncheck does, on that node: `ssh NODE "bash -lc 'module load nccl'"`, or `ssh NODE docker ps` for a container.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import Cause, by_ssh, never_got_that_far


@node_check("NC126", Severity.ERROR, LoginFacts, blocks_plan=True)
def job_environment_not_entered(node: NodeView) -> Iterator[Problem | Inconclusive]:
    login = node[LoginFacts].login
    if login.cause is Cause.NOT_ENTERED:
        yield Problem(
            message=f"the job's environment could not be entered on {node.name}: {login.detail}",
            fix=login.fix or f"{by_ssh(quote(node.name), login)} bash -l",
            evidence=(login.detail,),
            where=HERE,
            look=True,
            summary="the job's environment cannot be entered",
        )
    elif doubt := never_got_that_far(login, Cause.NOT_ENTERED):
        yield doubt
