"""Which bytes each operation moves: what a rank sends, what it must have afterwards, and where both lie in place.

A size is what nccl-tests counts: bytes of the larger of a rank's two buffers. Where that has a part for each rank, all
parts are equal, of at least one element, and of 16 bytes or a multiple where they can be; so a little less is moved.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Optional, Tuple

    Part = Tuple[Optional[int], int, int]

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST, SEND_RECV = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv",
)  # fmt: skip
IN_PLACE = frozenset((ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST))  # the others have two buffers in any case
_PARTED = frozenset((ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL))
_FLOAT, _ALIGNED = 4, 16  # bytes


class Layout:
    """Of one size in bytes: `sends` and `receives` are those of this rank's buffers, `part` is for one rank.

    In place the two buffers begin at these offsets of one that holds both.
    """

    def __init__(self, op: str, size: int, rank: int, world: int) -> None:
        self.op, self.rank, self.world, self.part = op, rank, world, size
        self.sends = self.receives = self.whole = size
        self.send_offset = self.receive_offset = 0
        if op in _PARTED:
            share = size // world
            self.part = max(_FLOAT, share // _ALIGNED * _ALIGNED or share // _FLOAT * _FLOAT)
            self.sends = self.receives = self.whole = world * self.part
        if op == ALL_GATHER:
            self.sends, self.send_offset = self.part, rank * self.part
        if op == REDUCE_SCATTER:
            self.receives, self.receive_offset = self.part, rank * self.part

    def expected(self) -> "Iterator[Part]":
        """Yield what the received bytes are made of, in their order: (whose, from where in what it sends, bytes).

        None stands for the sum of what all ranks have there.
        """
        own = self.rank * self.part
        if self.op in (ALL_GATHER, ALL_TO_ALL):
            for other in range(self.world):
                yield other, own if self.op == ALL_TO_ALL else 0, self.part
            return
        whose = {BROADCAST: 0, SEND_RECV: (self.rank - 1) % self.world}.get(self.op)
        yield whose, own if self.op == REDUCE_SCATTER else 0, self.receives
