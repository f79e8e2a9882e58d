"""The network between two groups of nodes is slow

## What it finds
All nodes together are slow, or hang, although pairs of them are well; the probe then measures parts of them. If each
group of nodes is well by itself and all that crosses from one to another is slow, the trouble is between the groups: an
uplink, a cable run or a switch that they do not share. Different nodes of both sides must show it. Groups come from
`--groups`, from Slurm's topology or from NVLink domains. Where nobody names them, neighbours in the list of nodes are
compared, and of fewer than three such groups nothing is claimed. Plain TCP and gloo can only measure pairs: there the
search begins where a link between two groups is slow that `--groups` or Slurm names, or where two slow links or more
part the nodes. If there was no time for all of the search, the check is unknown.

## Why it matters
Every all-reduce crosses the boundary, and all ranks wait for it. No node is at fault: to replace one changes nothing.

## What to type
`sudo iblinkinfo` shows the links between InfiniBand switches that are down, narrow or slow. On Ethernet `tracepath -n
NODE` shows the path to a node on the other side; read the uplink counters of the switches on it. Until it is
repaired, a job whose nodes are all on one side does not cross it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.probe.facts import GroupFacts, ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS, hardware_in
from ncheck.probe.slow_groups import slow_groups
from ncheck.probe.slow_nodes import search_slow


@cluster_check("NC736", Severity.WARNING, ProbeFacts, also=(*HARDWARE_FACTS, GroupFacts), explains=SLOW_NETWORK)
def slow_between_groups(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    named = cluster.facts(GroupFacts).values()
    yield from slow_groups(search_slow(cluster.facts(ProbeFacts), hardware_in(cluster), named)[0])
