"""The login fails on this machine, before the node is involved

## What it finds
Logins that fail on the machine that runs ncheck: `ssh` refuses its own configuration (a misspelt option, a file that
others may write), there is no algorithm that both sides accept, a jump host fails, or no program can be started. It is
one finding, whichever nodes it keeps ncheck from reaching, and no node is at fault. With `--via srun`: slurmctld does
not answer, or srun cannot create the step.

## Why it matters
No launcher can use ssh (or srun) from this machine either, and nothing is known about nodes that cannot be reached.

## What to type
On this machine: `ssh -G NODE` prints what is wrong with the configuration, `ssh -v NODE true` how far a login comes,
and `chmod go-w ~/.ssh/config` removes permissions that ssh refuses. With `--via srun`: `scontrol ping`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import INFRASTRUCTURE, Cause
from ncheck.network.ssh_faults import mending_client

MOST_SHOWN = 8


@cluster_check(
    "NC133", Severity.ERROR, LoginFacts, alone=True, blocks_plan=True, explains_unreached=True, blames_node=False
)
def ssh_fails_on_this_machine(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    unreached = {name: facts.login for name, facts in cluster.facts(LoginFacts).items() if not facts.login.reached}
    failed: dict[str, list[str]] = defaultdict(list)
    for name, login in unreached.items():
        if login.cause is Cause.TRANSPORT:
            failed[login.detail.replace(login.address or name, "").replace(name, "")].append(name)
        elif login.cause in INFRASTRUCTURE:
            yield Inconclusive(f"not reached ({login.cause.value})", (name,))
    for nodes in failed.values():
        login = unreached[nodes[0]]
        others = dict.fromkeys(unreached[name].detail for name in nodes[:MOST_SHOWN])
        others.pop(login.detail)
        mend = mending_client(login.detail)
        fix = mend or login.fix or f"ssh -v {quote(nodes[0])} true"
        what = "the Slurm step" if login.transport == "srun" else "the login"
        message = f"{what} fails on this machine: {login.detail}"
        yield Problem(message, fix, tuple(others), tuple(nodes), where=HERE, look=not mend)
