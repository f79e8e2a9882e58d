"""RDMA between two HCA ports fails

## What it finds
Pairs of HCA ports of the same rail between which ib_write_bw (perftest) or ibv_rc_pingpong fails although both ports
are Active. A port that works with another partner is not named. If neither program is on the PATH, nothing is tested.

## Why it matters
Active only means that the port has a neighbour. Partitions, a wrong GID, a filter for RoCE or a switch that lost its
routes can still stop the data. NCCL then hangs, or ends with "unhandled system error" when a rank first uses the rail.

## What to type
The command of the finding repeats the test: it starts the server on one node, then the client on the other. For RoCE
compare `show_gids` on both nodes; for InfiniBand use `ibv_devinfo -v`, and ask the fabric's administrator for
`iblinkinfo`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.tools import ToolFacts
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.rails import failing, failure_message, line_to_repeat, not_tested, rails, unmet


@cluster_check("NC740", Severity.ERROR, ProbeFacts, InfinibandFacts, also=(ToolFacts, LoginFacts))
def rdma_pair_fails(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    tried = rails(cluster.facts(ProbeFacts), cluster.facts(InfinibandFacts))
    for found in failing(tried):
        evidence = tuple(rail.failure.words for rail in found.shown if rail.failure)
        yield Problem(
            failure_message(found), line_to_repeat(found.shown[0], cluster.facts(LoginFacts)), evidence, found.nodes,
            where=HERE, look=True, summary="RDMA fails",
        )  # fmt: skip
    for node, why in unmet(tried):
        yield Inconclusive(why, (node,))
    for why, nodes in not_tested(tried, cluster.facts(ProbeFacts), cluster.facts(ToolFacts)).items():
        yield NotApplicable(why, nodes)
