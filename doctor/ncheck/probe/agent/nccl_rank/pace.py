"""How often each size is repeated, and which sizes there is no time for, from the times of smaller ones.

All of it follows from numbers that the ranks have agreed on, so all ranks decide the same.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

FEW = 3  # repeats where there is little time
MOST_A_REPEAT = 20  # iterations, as nccl-tests has by default
MOST_QUEUED = 500  # iterations of a row: a stream takes about 1000 launches before it lets the host wait
PART, LAST = 1 / 16, 1 / 4  # of the time that is left, for one row: the largest size has the most
REPEAT = 0.05  # seconds of one repeat, about
AT_LEAST = 2 + FEW  # launches of one row: verified, warmed up, timed
SAFE = 1.5  # a larger size takes at most so many times the time that a smaller one predicts
STRIDE = 16  # how much larger a size may be than the last whose time is known
NOTHING = 4096  # bytes: up to a stride above it a size takes what a launch takes


class Pace:
    """`left` are the seconds to the earliest deadline of a rank, as of the last measurement."""

    def __init__(self, left: float) -> None:
        self.left = left
        self.size, self.seconds = NOTHING, 0.0  # the largest that is known
        self.verifying = 0.0  # seconds a byte, to fill and to compare

    def learn(self, size: int, seconds: float, verifying: float, left: float) -> None:
        """Note the seconds of one launch of a size, and of its verification."""
        self.left = left
        if size >= self.size:
            self.size, self.seconds = size, seconds
            self.verifying = verifying / size

    def next_stride(self, size: int) -> "Optional[int]":
        """Return a size between the largest so far and a much larger one; None if none is needed or takes too long."""
        too_long = STRIDE * self.seconds * AT_LEAST > self.left
        return None if size <= STRIDE * self.size or too_long else STRIDE * self.size

    def expected(self, size: int) -> float:
        """Return the seconds that one row of a size may take."""
        if size < self.size:
            return 0.0
        return SAFE * (AT_LEAST * self.seconds * size / self.size + self.verifying * size)

    def plan(self, once: float, wanted: int, *, is_last: bool) -> "Tuple[int, int]":
        """Return (iterations a repeat, repeats) for an operation that took `once` seconds, to be repeated as `wanted`.

        Where there is little time, a repeat has fewer iterations; where that is not enough, there are fewer repeats.
        """
        once = max(once, 1e-6)
        fit = int(self.left * (LAST if is_last else PART) / once)
        each = min(fit, MOST_QUEUED) // wanted
        iterations = max(1, min(MOST_A_REPEAT, int(REPEAT / once), each))
        return iterations, min(wanted, max(FEW, fit // iterations))
