"""What ranks left in /dev/shm that a launcher started and may have killed: removed, once no process has it any more."""

import time

from ncheck.probe.agent import segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Arguments

READS = ("what ranks under mpirun were seen to have in /dev/shm of NCCL's, and left: removed, if no process has it",)

_BETWEEN = 0.1  # seconds between two looks: the launcher's daemon may be about to kill a rank


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return {"left": [what was removed, and what had to stay]}.

    Asked after a step whose ranks a launcher started, as {"segments": {path: inode}} that ranks of this node had in
    /dev/shm and may have left.
    """
    left = arguments["segments"]
    ends = time.monotonic() + timeout
    removed = segments.removed({}, segments.unused(left, timeout))
    while segments.still(left) and time.monotonic() < ends:
        time.sleep(_BETWEEN)
        removed += segments.removed({}, segments.unused(left, max(0.0, ends - time.monotonic())))
    return {"left": removed + ["{} stays: a process seems to have it".format(path) for path in segments.still(left)]}
