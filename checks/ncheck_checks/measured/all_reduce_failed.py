"""The all-reduce failed, and this is why

## What it finds
Steps of the probe that did not come to their end, one finding a cause. The words of every rank and NCCL's own log are
read for what is wrong: versions that differ, a wrong interface, a connection that is refused or vanishes, locked
memory, /dev/shm, InfiniBand, the driver, a GPU used twice or out of memory. A node whose own log names the cause is
named; those that only lost it are told apart. Where a connection does not come about, the node is named that came
through with nobody, though its partners did with others; where nothing tells which end is to blame, both are named. A
step that ran out of the probe's own time is unknown and blames nobody.

## Why it matters
The job does the same all-reduce, over the same network and libraries: it stops or hangs where the probe did.

## What to type
What the finding says. Where no rank says why: `ncheck nodes.txt --mesh all --probe none` tries each way between the
nodes by itself, and `ncheck probe nodes.txt --probe-time 300` gives a slow cluster more time.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import split

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.login import LoginFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.probe import ProbeFacts
from ncheck.network.link_problems import there
from ncheck.probe.failures import breakdowns, holders, told, unfinished
from ncheck.probe.gaps import gaps


@cluster_check("NC701", Severity.ERROR, ProbeFacts, also=(NicFacts, LoginFacts), alone=True)
def all_reduce_failed(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    probed = cluster.facts(ProbeFacts)
    for broken in breakdowns(probed, holders(cluster.facts(NicFacts))):
        fix = broken.fix or "ncheck nodes.txt --mesh all --probe none"
        if broken.to_type_on:
            fix = there(broken.to_type_on, cluster.facts(LoginFacts), *split(fix))
        yield Problem(told(broken), fix, broken.evidence, broken.nodes)
    for doubt in unfinished(probed):
        yield Inconclusive(doubt.why, doubt.nodes)
    for why, nodes in gaps(probed):
        yield Inconclusive(why, nodes)
