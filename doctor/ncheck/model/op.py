"""The collective operations that jobs are made of, named as nccl-tests names them, and their bus bandwidth."""

from __future__ import annotations

from enum import Enum


class Op(str, Enum):
    """One operation. Its size is what nccl-tests counts: bytes of the larger of a rank's two buffers."""

    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"
    BROADCAST = "broadcast"
    SEND_RECV = "send-recv"  # each rank sends to the next one and receives from the one before, in a ring

    def bus_factor(self, ranks: int) -> float:
        """Return bus bandwidth over algorithm bandwidth (size over seconds) for so many ranks.

        Source: doc/PERFORMANCE.md of nccl-tests. A single rank moves nothing to another one: 1.
        """
        if ranks < 2 or self in (Op.BROADCAST, Op.SEND_RECV):  # noqa: PLR2004  it takes two
            return 1.0
        return (2 if self is Op.ALL_REDUCE else 1) * (ranks - 1) / ranks


# What --op takes beside the operations: what kinds of training use.
SETS = {
    "training": (Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER),
    "moe": (Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL),
}
