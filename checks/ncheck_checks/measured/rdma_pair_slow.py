"""RDMA between two HCA ports is slow

## What it finds
Pairs of HCA ports of the same rail between which ib_write_bw, from host memory, stays below 0.9 of the port's rate
(0.875 at 200 Gb/s). A port that is fast with another partner is not named.

## Why it matters
An all-reduce over all rails is as slow as its slowest rail. Causes are a port that came up with fewer lanes or a lower
speed, a card in a narrow PCIe slot, a cable with errors, or a shared switch port. `ibstat` shows only the first.

## What to type
The command of the finding repeats the test. Then, on the named node: `sudo lspci -vv` to compare the card's LnkSta with
its LnkCap, and /sys/class/infiniband/mlx5_0/ports/1/counters for symbol_error and link_error_recovery.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.tools import ToolFacts
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.rails import line_to_repeat, rails, slow, slow_message, unjudged


@cluster_check("NC741", Severity.WARNING, ProbeFacts, InfinibandFacts, also=(ToolFacts, LoginFacts))
def rdma_pair_slow(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    tried = rails(cluster.facts(ProbeFacts), cluster.facts(InfinibandFacts))
    for found in slow(tried):
        yield Problem(
            slow_message(found), line_to_repeat(found.shown[0], cluster.facts(LoginFacts)), nodes=found.nodes,
            where=HERE, look=True, summary="RDMA is slow",
        )  # fmt: skip
    for why, nodes in unjudged(tried, cluster.facts(ProbeFacts), cluster.facts(ToolFacts)).items():
        yield NotApplicable(why, nodes)
