"""Horovod is not the same on every node

## What it finds
Nodes whose Horovod has another version, or was built with other frameworks, controllers or tensor operations than the
rest, as `horovodrun --check-build` tells. Nodes without Horovod fail where others of their kind have it.

## Why it matters
Ranks agree on each operation before they run it. A build without NCCL beside one with it, or one without MPI beside
one with it, waits for a partner that speaks another way: the first all-reduce never ends.

## What to type
Build the majority's on the named nodes, in the job's environment, such as `HOROVOD_GPU_OPERATIONS=NCCL python3 -m pip
install --no-cache-dir horovod==VERSION`, then `horovodrun --check-build`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ncheck import Severity, parity_check
from ncheck.facts.horovod import HorovodFacts


def _told(names: Iterable[str]) -> str:
    return "+".join(sorted(names)) or "none"


@parity_check(
    "NC204", Severity.ERROR, HorovodFacts, everywhere=True, what="Horovod differs",
    fix="HOROVOD_GPU_OPERATIONS=NCCL python3 -m pip install --no-cache-dir --force-reinstall horovod",
)  # fmt: skip
def horovod_differs(horovod: HorovodFacts) -> str:
    built = (_told(horovod.frameworks), _told(horovod.controllers), _told(horovod.operations))
    return f"{horovod.version} (for {built[0]}, by {built[1]}, with {built[2]})"
