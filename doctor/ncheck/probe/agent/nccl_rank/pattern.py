"""What the ranks sum up, and whether the sum is right, to the last element.

Element i of rank r is v(i) x (r % 7 + 1), v(i) being a small whole number from 1 to 127 that depends on the position:
so every partial sum, in whatever order, is a whole number that a float holds exactly, and a chunk that landed in the
wrong place, that is missing or that was added twice is seen.
"""

import ctypes
from array import array
from operator import ne

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ncheck.probe.agent.nccl_rank.cuda import Cuda

PERIOD = 8191  # a prime: no chunk that NCCL moves is a multiple of it
BLOCK = PERIOD * 1024 * 4  # bytes that are compared at once, about 32 MiB
_SMALLEST = 4096  # bytes that are not split further in the search for differences
_FLOAT = 4


def scale(rank: int) -> int:
    return rank % 7 + 1


def block(factor: int, size: int = BLOCK) -> bytes:
    """Return whole periods of v(i) x factor, enough for `size` bytes or for one block."""
    period = array("f", [float((i % 127 + 1) * factor) for i in range(PERIOD)]).tobytes()
    return period * -(-min(size, BLOCK) // len(period))


class Pattern:
    """Fills and verifies device memory for one rank, sizes up to `largest`."""

    def __init__(self, cuda: "Cuda", rank: int, world: int, largest: int) -> None:
        self.cuda = cuda
        self.own = block(scale(rank), largest)
        self.sum = block(sum(scale(other) for other in range(world)), largest)
        self.staging = cuda.staging(len(self.sum))
        self.memcmp = ctypes.CDLL(None).memcmp
        self.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

    def fill(self, address: int, size: int) -> None:
        """Write this rank's elements: one block from the host, and the rest by copies on the device."""
        done = min(size, len(self.own))
        self.cuda.to_device(address, self.own, done)
        while done < size:
            part = min(done, size - done)
            self.cuda.on_device(address + done, address, part)
            done += part

    def wrong(self, address: int, size: int) -> int:
        """Return how many elements are not the sum."""
        ours, sums = ctypes.addressof(self.staging), ctypes.cast(ctypes.c_char_p(self.sum), ctypes.c_void_p).value or 0
        count = 0
        for offset in range(0, size, len(self.sum)):
            part = min(len(self.sum), size - offset)
            self.cuda.to_host(self.staging, address + offset, part)
            count += self._differing(ours, sums, part)
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
