"""A node's file systems by hand: healthy, but for what a test names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncheck.facts.storage import FileSystem, JobFolder, StorageFacts
from ncheck.judge import judge
from ncheck.model.check import Check
from ncheck.model.cluster import Facts
from ncheck.model.finding import Outcome

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


def outcomes(check: Check, *nodes: Facts) -> list[Outcome]:
    judgement = judge([check], {f"n{number}": facts for number, facts in enumerate(nodes, 1)})
    return [verdict.outcome for verdict in judgement.verdicts]


def messages(check: Check, *nodes: Facts) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each finding by its message."""
    judgement = judge([check], {f"n{number}": facts for number, facts in enumerate(nodes, 1)})
    return {finding.message: finding.nodes for finding in judgement.findings}
