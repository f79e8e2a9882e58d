"""A node is busy before the job starts

## What it finds
Nodes whose load average of the last five minutes is more than half of their CPUs, and more than four times that of most
nodes, in proportion to their CPUs. ncheck itself is too short to show in it.

## Why it matters
What runs there takes CPUs from the job's ranks and data loaders: one slow rank makes all ranks wait in every
collective. Processes that another job has left are a common cause. A high load without busy CPUs stands for processes
that wait for a disk or a file system.

## What to type
`ps -eo pcpu,stat,pid,user,args --sort=-pcpu | head -20` shows what runs; `squeue -w NODE` whether a job is meant to.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.host_load import HostLoadFacts

BUSY = 0.5  # of the CPUs
MORE = 4  # so many times busier than the others
FIX = "ps -eo pcpu,stat,pid,user,args --sort=-pcpu | head -20"


@cluster_check("NC622", Severity.WARNING, HostLoadFacts)
def node_busy(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    nodes = cluster.facts(HostLoadFacts)
    shares = {node: load.load / load.cpus for node, load in nodes.items() if load.load is not None and load.cpus}
    usual = sorted(shares.values())[(len(shares) - 1) // 2] if shares else 0.0
    for node, load in nodes.items():
        if node not in shares:
            yield NotApplicable("the node does not show its load", (node,))
        elif shares[node] > max(BUSY, MORE * usual):
            yield Problem(
                f"the load of {node} is {load.load:.0f} on {load.cpus} CPUs ({shares[node]:.0%}; "
                f"{usual:.0%} on other nodes)",
                FIX,
                nodes=(node,),
                look=True,
                summary="a node is busy before the job starts",
            )
