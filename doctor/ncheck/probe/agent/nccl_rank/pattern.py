"""What the ranks send, and whether what they received is right, to the last element.

Element i of rank r is v(i) x (r % 7 + 1), v(i) being a small whole number from 1 to 127 that depends on the position:
so every partial sum, in whatever order, is a whole number that a float holds exactly, and a chunk that landed in the
wrong place, that is missing or that was added twice is seen. Where nothing is summed up, each rank begins at a position
of its own, so that the data of one is not taken for that of another.
"""

import ctypes
from array import array
from functools import lru_cache
from operator import ne

from ncheck.probe.agent.nccl_rank.layout import ALL_REDUCE, REDUCE_SCATTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Optional

    from ncheck.probe.agent.nccl_rank.cuda import Cuda
    from ncheck.probe.agent.nccl_rank.layout import Part

PERIOD = 8191  # a prime: no chunk that NCCL moves is a multiple of it
BLOCK = PERIOD * 1024 * 4  # bytes that are compared at once, about 32 MiB
APART = 1021  # elements from where one rank begins to where the next one does
_SMALLEST = 4096  # bytes that are not split further in the search for differences
_FLOAT = 4


def scale(rank: int) -> int:
    return rank % 7 + 1


@lru_cache(maxsize=2)  # what an all-reduce sends, and its sum
def block(factor: int, size: int, start: int = 0) -> bytes:
    """Return whole periods of v(i) x factor from i = `start` on, enough for `size` bytes: one BLOCK at most."""
    period = _period(factor)
    return (period[start * _FLOAT :] + period[: start * _FLOAT]) * -(-size // len(period))


@lru_cache(maxsize=8)  # the seven factors of ranks, and that of their sum
def _period(factor: int) -> bytes:
    return array("f", [float((i % 127 + 1) * factor) for i in range(PERIOD)]).tobytes()


class Pattern:
    """Fills and verifies device memory for one rank, sizes up to `largest`."""

    def __init__(self, cuda: "Cuda", op: str, rank: int, world: int, largest: int) -> None:
        self.cuda, self.rank, self.world = cuda, rank, world
        self.apart = 0 if op in (ALL_REDUCE, REDUCE_SCATTER) else APART
        self.staging = cuda.staging(len(block(1, min(largest, BLOCK))))
        self.memcmp = ctypes.CDLL(None).memcmp
        self.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

    def of(self, rank: "Optional[int]", offset: int, size: int) -> bytes:
        """Return the elements of a rank, or without one the sum of all, from this offset in bytes on: see `block`."""
        factor = sum(scale(other) for other in range(self.world)) if rank is None else scale(rank)
        return block(factor, min(size, BLOCK), (offset // _FLOAT + (rank or 0) * self.apart) % PERIOD)

    def fill(self, address: int, size: int) -> None:
        """Write this rank's elements: one block from the host, and the rest by copies on the device."""
        own = self.of(self.rank, 0, size)
        done = min(size, len(own))
        self.cuda.to_device(address, own, done)
        while done < size:
            part = min(done, size - done)
            self.cuda.on_device(address + done, address, part)
            done += part

    def wrong(self, address: int, parts: "Iterable[Part]") -> int:
        """Return how many elements are not those of these parts."""
        count = 0
        for rank, start, size in parts:
            right, ours = self.of(rank, start, size), ctypes.addressof(self.staging)
            theirs = ctypes.cast(ctypes.c_char_p(right), ctypes.c_void_p).value or 0
            for offset in range(0, size, len(right)):
                part = min(len(right), size - offset)
                self.cuda.to_host(self.staging, address + offset, part)
                count += self._differing(ours, theirs, part)
            address += size
        return count

    def _differing(self, one: int, other: int, size: int) -> int:
        """Count the elements that differ; only parts whose bytes differ are compared one by one."""
        if self.memcmp(one, other, size) == 0:
            return 0
        if size > _SMALLEST:
            half = size // 2 // _FLOAT * _FLOAT
            return self._differing(one, other, half) + self._differing(one + half, other + half, size - half)
        return sum(map(ne, _elements(one, size), _elements(other, size)))


def _elements(address: int, size: int) -> "ctypes.Array[ctypes.c_uint]":
    return (ctypes.c_uint * (size // _FLOAT)).from_address(address)
