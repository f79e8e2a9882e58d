"""A node's file systems by hand: healthy, but for what a test names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncheck.facts.storage import FileSystem, JobFolder, StorageFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Outcome
from ncheck.steps.judge import Judgement

GIB = 2**30
NFS = FileSystem("/data", "nfs4", "fs01:/data", ("hard", "rw", "vers=4.2"), network=True)
DISK = FileSystem("/", "ext4", "/dev/sda1", ("rw",))
HOME = JobFolder("/home/me", "home", DISK, size=200 * GIB, free=100 * GIB, files_free=10**6, inode=7)
DATA = JobFolder("/data", "--data", NFS, free=0, writable=False, inode=128, changed=1000)
CURRENT = JobFolder(
    "/work", "current folder", replace(NFS, point="/work", source="fs01:/work"), size=200 * GIB, free=100 * GIB
)


def node(*folders: JobFolder, **facts: Any) -> Facts:
    return {
        StorageFacts: StorageFacts((*folders, *(() if "home" in {f.named_by for f in folders} else (HOME,))), **facts)
    }


def named(*nodes: Facts) -> dict[str, Facts]:
    """Return the nodes as n1, n2 and so on."""
    return {f"n{number}": facts for number, facts in enumerate(nodes, 1)}


def outcomes(judgement: Judgement) -> list[Outcome]:
    return [verdict.outcome for verdict in judgement.verdicts]


def messages(judgement: Judgement) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each finding by its message."""
    return {finding.message: finding.nodes for finding in judgement.findings}
