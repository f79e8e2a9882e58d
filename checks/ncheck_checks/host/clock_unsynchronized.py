"""Nothing keeps a node's clock right, although the other clocks are kept

## What it finds
Nodes whose kernel says that its clock is not synchronized (its error may be more than 16 s, as adjtimex(2) tells; the
same rule as `timedatectl` uses), while most of the nodes are. Where no clock is synchronized, as in a cluster that uses
PTP without telling the kernel, there is no finding: clock-differs and clock-far-off compare the clocks themselves.

## Why it matters
The clock is right today and drifts by seconds in days. Then certificates and tickets are refused, Slurm's munge
rejects the node ("Expired credential"), and logs of different nodes cannot be put in order.

## What to type
`timedatectl; chronyc tracking` on the node shows what should keep it right.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.facts.host_settings import HostSettingsFacts


@cluster_check("NC623", Severity.WARNING, HostSettingsFacts)
def clock_unsynchronized(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    known = {node: held.synchronized for node, held in cluster.facts(HostSettingsFacts).items()}
    if hidden := tuple(node for node, synchronized in known.items() if synchronized is None):
        yield NotApplicable("the kernel does not show its clock to this user", hidden)
    free = tuple(node for node, synchronized in known.items() if synchronized is False)
    if free and len(free) < sum(map(bool, known.values())):
        message = f"the clock of {fold(free)} is not synchronized"
        yield Problem(message, "timedatectl; chronyc tracking", nodes=free, look=True)
