"""The login shell is slow to start on some nodes

## What it finds
Nodes whose login shell needs more than 5 s, and four times as long as the others, from its start to the first command:
its start-up files sleep, wait for a server, or load much (module systems, conda, a home folder on a slow file system).
A connection that lost packets is not judged. Where all nodes are slow, none is named: this machine may be busy.

## Why it matters
mpirun, deepspeed and others start their daemons by ssh, so each start waits for these files on that node. A launcher
that gives up after some seconds reports the node as dead.

## What to type
On the node, `time bash -c '. ~/.bashrc'` (or the start-up file of the shell that is used) shows how long it takes, and
`bash -xc '. ~/.bashrc'` where. ~/.ssh/rc and /etc/ssh/sshrc run before the shell. Put what only a person needs behind
`[[ $- == *i* ]] || return`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import slower_than_others


@cluster_check("NC141", Severity.WARNING, LoginFacts)
def login_shell_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    for found in slower_than_others(cluster.facts(LoginFacts), lambda facts: facts.shell_seconds):
        if isinstance(found, Inconclusive | NotApplicable):
            yield found
        else:
            name, seconds, others = found
            yield Problem(
                "the login shell is slow to start: look at its start-up files",
                "time bash -c '. ~/.bashrc'",
                (f"it needed {seconds:.1f} s on {name}; median of the others {others:.1f} s",),
                (name,), look=True, summary="slow login shell",
            )  # fmt: skip
