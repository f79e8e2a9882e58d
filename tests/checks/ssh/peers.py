"""Nodes that tried ssh to each other, as the checks of NC13 see them."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts, SshFromHereFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause
from ncheck.model.fact import Absent

ELSEWHERE = Absent("the launch line is typed on another machine than this")
WORKS = SshFromHereFacts(PeerSsh("n1", None))  # the line is typed on a machine that is no node
ITSELF = SshFromHereFacts(None)


def node(*peers: PeerSsh, here: object = ELSEWHERE, job: JobFacts | None = None, facts: object = None) -> Facts:
    """Return the facts of a node that tried these peers. Without `here`, mpirun is assumed to run on the first node."""
    return {PeerSshFacts: facts or PeerSshFacts(peers), SshFromHereFacts: here, JobFacts: job or JobFacts()}


def mesh(
    *names: str, failing: Mapping[tuple[str, str], Cause], here: object = ELSEWHERE, job: JobFacts | None = None
) -> dict[str, Facts]:
    """Return nodes that all tried each other; `failing` maps (node, target) to the cause."""

    def edge(name: str, other: str) -> PeerSsh:
        cause = failing.get((name, other))
        return PeerSsh(other, cause, f"no way to {other}" if cause else "")

    return {name: node(*(edge(name, to) for to in names if to != name), here=here, job=job) for name in names}
