"""Open MPI is configured to log in with a program that a node does not have

## What it finds
Nodes where OMPI_MCA_plm_rsh_agent (PRTE_MCA_plm_ssh_agent for Open MPI 5) names programs of which none is there.

## Why it matters
mpirun's daemon on that node ends as it starts: "plm_rsh_agent was set to a path that could not be found". mpirun then
reports that it "was unable to reliably start one or more daemons".

## What to type
Remove the line of the start-up file that sets it: `grep -n rsh_agent ~/.bashrc ~/.profile`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.login_variables import to_remove
from ncheck.mpi import starter_of

VARIABLES = {"orted": "OMPI_MCA_plm_rsh_agent", "prted": "PRTE_MCA_plm_ssh_agent"}


@cluster_check("NC228", Severity.ERROR, MpiDaemonFacts, also=(EnvironmentFacts,))
def rsh_agent_missing(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    found = cluster.facts(MpiDaemonFacts)
    start = starter_of(found)
    if start is None or start.daemon not in VARIABLES:
        yield NotApplicable("only Open MPI has this setting")
        return
    environments = cluster.facts(EnvironmentFacts)
    for node, facts in found.items():
        for agent in facts.rsh_agents:
            if agent.variable == VARIABLES[start.daemon] and not agent.found:
                message = (
                    f"{agent.variable}={agent.value}: there is no such program, and {start.daemon} ends at its start"
                )
                fix = to_remove(environments.get(node), agent.variable)
                summary = "Open MPI's rsh agent is missing"
                yield Problem(message, fix.line, nodes=(node,), look=fix.look, summary=summary)
