"""Nodes that do not answer while ranks of the job are on none of the others."""

from __future__ import annotations

from collections.abc import Iterator

from ncheck.facts.login import LoginFacts
from ncheck.facts.ranks import ranks_text
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job
from ncheck.text import printable
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Sign

READS = (LoginFacts,)


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield the nodes that could not be reached, if they can be where the missing ranks are."""
    logins = {name: facts.login for name, facts in cluster.facts(LoginFacts).items()}
    silent = [name for name in cluster.names if name in logins and not logins[name].reached]
    if not job.missing or not silent:
        return
    reasons = "; ".join(printable(f"{name}: {logins[name].detail}", 200) for name in silent[:3])
    text = f"{ranks_text(job.missing)} can only be on nodes that do not answer: {reasons}"
    yield Clue("processes", "node_failed", Grade.LIKELY, text, job.missing, tuple(silent),
               meaning="a node of the job does not answer", others=("rank_missing", "firewall"))  # fmt: skip
