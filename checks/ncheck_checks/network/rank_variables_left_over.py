"""A start-up file sets variables of a rank

## What it finds
Nodes of which every login has RANK, WORLD_SIZE or LOCAL_RANK set, in a run over several nodes. MASTER_ADDR and
MASTER_PORT are named with them. Inside a job, where a launcher sets them, nothing is reported.

## Why it matters
torch and others that start without a launcher of their own, such as under mpirun, read these variables: every rank of
the node takes itself for the same rank, or with MASTER_ADDR=localhost for a job of its own, and the others wait for it.
torchrun sets them anew and is not harmed.

## What to type
Remove the lines of the start-up file that sets them; `unset` in a shell changes no login:
`grep -nE '(RANK|WORLD_SIZE|MASTER_ADDR)=' ~/.bashrc ~/.profile ~/.bash_profile /etc/environment /etc/profile.d/*`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Fix, NotApplicable, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.run import JobFacts
from ncheck.login_variables import to_remove

OF_A_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
MEETING = ("MASTER_ADDR", "MASTER_PORT")


@cluster_check("NC372", Severity.WARNING, EnvironmentFacts, also=(JobFacts,))
def rank_variables_left_over(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    if any(job.running for job in cluster.facts(JobFacts).values()):
        yield NotApplicable("the job's launcher has set them")
        return
    held: dict[str, tuple[tuple[str, ...], Fix]] = {}
    for node, facts in cluster.facts(EnvironmentFacts).items():
        if any(name in facts.variables for name in OF_A_RANK):
            names = [name for name in (*OF_A_RANK, *MEETING) if name in facts.variables]
            held[node] = tuple(f"{name}={facts.variables[name]}" for name in names), to_remove(facts, *names)
    for (settings, fix), nodes in nodes_by_value(held).items():
        yield Problem(
            f"every login has {', '.join(settings)}, which a rank takes for its own",
            fix.line, nodes=nodes, look=fix.look, summary="variables of a rank are left over",
        )  # fmt: skip
