"""What gloo will do on nodes without a GPU: each rank sends over TCP, by the one interface of its node.

Source: gloo's source (https://github.com/pytorch/gloo); torch.distributed names no other algorithm. allreduce.cc and
allgather.cc: rings, in which one rank of each node sends to the next node. alltoall.cc: every rank sends to all others
at once. Two ranks have one connection for both directions (transport/tcp/pair.cc), and the word that a rank is ready to
receive waits behind what it sends: more or less they take turns, but in an all-reduce, whose segments are small.
broadcast.cc: a binomial tree, whose ranks send to all of their children at once, and how these share the link decides
how long it takes; among four ranks 2.4 times one message was measured, where fair shares would be 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncheck.model.op import Op

SOURCE = "https://github.com/pytorch/gloo (gloo/allreduce.cc, gloo/alltoall.cc)"
ALGORITHMS = {Op.ALL_REDUCE: "Ring", Op.ALL_GATHER: "Ring"}
_STEP = 200e-6  # seconds at most until a message of TCP is there, in one data centre
_HIDDEN = 0.1  # of the time of the links: with less, the start-up does not show


def unknown(op: Op, ranks: Sequence[int]) -> str:
    """Return what is not known of large messages among so many ranks of each node, "" if all is."""
    if len(ranks) == 1:
        return "how fast ranks of one node copy"
    if op is Op.REDUCE_SCATTER:
        return "what torch makes a reduce-scatter of, which gloo leaves to it"
    if op is Op.BROADCAST:
        return "how the messages of a broadcast share a link"
    if op is not Op.ALL_REDUCE and sum(ranks) == 2:  # noqa: PLR2004  two ranks
        return "how far two ranks, which have one connection, send at the same time"
    return ""


def share(op: Op, ranks: Sequence[int]) -> float:
    """Return the bus bandwidth as a share of what the interface of a node carries."""
    world = sum(ranks)
    if op is Op.ALL_TO_ALL:
        return (world - 1) / max(own * (world - own) for own in ranks)
    return 1


def start_up_hidden(op: Op, world: int, seconds: float) -> bool:
    """Return whether so long a transfer hides the start-up, which is not known."""
    steps = op.bus_factor(world) * world if op in ALGORITHMS else 1
    return steps * _STEP <= _HIDDEN * seconds
