"""The measuring: each size out of place and in place, verified once, then timed on the device's own clock.

Every rank must launch the same number of collectives. So what that number depends on (how long one takes, the time and
the memory that are left) is agreed upon by an all-reduce of its own.
"""

import ctypes

from doctor.agent.rank.nccl import MAX, SUM
from doctor.agent.rank.pattern import Pattern
from doctor.agent.rank.telling import RankError

MARGIN = 256 * 1024 * 1024  # bytes of device memory that NCCL and CUDA may still want
MARGIN_PART = 16  # and never more than this part of what is free
REPEATS_FAST, REPEATS, REPEATS_SLOW = 7, 5, 3
MOST_A_REPEAT = 20  # iterations, as nccl-tests has by default
REPEAT = 0.05  # seconds that one repeat lasts about
AT_A_SIZE = 2 * (2 + REPEATS_SLOW)  # all-reduces of a size at least: verified, warmed up, timed; out of place and in
STRIDE = 16  # how much larger a size may be than the last whose time is known
NOTHING = 4096  # bytes: up to a stride above it a size takes what a launch takes
_FLOAT = 4
_MEBI = 1024 * 1024


class Measure:
    """One rank's part in one communicator; `tell` says a line, `watch` knows the time."""

    def __init__(self, cuda, nccl, watch, tell):
        self.cuda, self.nccl, self.watch, self.tell = cuda, nccl, watch, tell
        self.stream = cuda.stream()
        self.events = [cuda.event() for _ in range(REPEATS_FAST + 1)]
        self.small = cuda.memory(2 * _FLOAT)
        self.known, self.left = (NOTHING, 0.0), watch.left()  # the largest size that is known and its seconds; agreed
        self.meet = nccl.all_reduce(self.small, self.small, 2, MAX, self.stream)

    def agree(self, largest, smallest):
        """Return the largest of one number over all ranks and the smallest of another."""
        data = (ctypes.c_float * 2)(largest, -smallest)
        self.cuda.to_device(self.small, data, ctypes.sizeof(data))
        self.meet(1)
        self._settle(self.events[0])
        self.cuda.to_host(data, self.small, ctypes.sizeof(data))
        return data[0], -data[1]

    def fitting(self, sizes):
        """Return the sizes that fit into every rank's memory twice; the others are told of."""
        here = self.cuda.free()
        room = self.agree(0.0, max(0, here - min(MARGIN, here // MARGIN_PART)) // _MEBI)[1] * _MEBI
        for size in sizes:
            if 2 * size > room:
                words = "left out: {} needs {} of GPU memory, and {} can be had".format(
                    *map(shown, (size, 2 * size, room))
                )
                self.tell("note", words=words)
        fitting = sorted({max(_FLOAT, size // _FLOAT * _FLOAT) for size in sizes if 2 * size <= room})
        if not fitting:
            raise RankError("out of memory: no size fits, for {} of GPU memory can be had".format(shown(room)))
        return fitting

    def run(self, sizes, rank, world):
        """Measure all sizes that memory and time allow."""
        sizes = self.fitting(sizes)
        send, receive = self.cuda.memory(sizes[-1]), self.cuda.memory(sizes[-1])
        self.pattern = Pattern(self.cuda, rank, world, sizes[-1])
        for size in sizes:
            expected, left = AT_A_SIZE * self._expected(size, receive), self.left
            if expected > left:
                words = "left out: {} would take about {:.0f} s, and {:.0f} s are left"
                self.tell("note", words=words.format(shown(size), expected, left))
                continue
            self._size(size, send, receive)
            self._felt(size, self._size(size, receive, receive))

    def _expected(self, size, buffer):
        """Return the seconds that one may take at most, by the largest that is known; feel the way to a much larger."""
        while size > STRIDE * self.known[0] and AT_A_SIZE * self.known[1] * STRIDE < self.left:
            felt = STRIDE * self.known[0]
            self.meet(1)
            self.cuda.record(self.events[0], self.stream)
            self.nccl.all_reduce(buffer, buffer, felt // _FLOAT, SUM, self.stream)(1)
            self._settle(self.events[1])
            self._felt(felt, self.cuda.seconds(*self.events[:2]))
        return self.known[1] * size / self.known[0] if size > self.known[0] else 0.0

    def _felt(self, size, seconds):
        seconds, self.left = self.agree(seconds, self.watch.left())
        if size > self.known[0]:
            self.known = (size, seconds)

    def _size(self, size, send, receive):
        in_place = send == receive
        self.watch.at("all-reduce of {} bytes{}".format(size, " in place" if in_place else ""))
        launch = self.nccl.all_reduce(send, receive, size // _FLOAT, SUM, self.stream)
        wrong, once = self._verified(size, send, receive, launch)
        once, self.left = self.agree(once, self.watch.left())
        iterations, repeats = plan(once, self.left)
        times = sorted(self._timed(launch, iterations, repeats))
        self.tell(
            "row", size=size, in_place=in_place, seconds=times[repeats // 2], fastest=times[0], slowest=times[-1],
            wrong=wrong,
        )  # fmt: skip
        return times[-1]

    def _verified(self, size, send, receive, launch):
        """Sum the pattern once; return how many elements are wrong, and the seconds that it took."""
        if receive != send:
            self.cuda.zero(receive, size)
        self.pattern.fill(send, size)
        self.meet(1)
        self.cuda.record(self.events[0], self.stream)
        launch(1)
        self._settle(self.events[1])
        return self.pattern.wrong(receive, size), self.cuda.seconds(*self.events[:2])

    def _timed(self, launch, iterations, repeats):
        """Return the seconds of one iteration, one number a repeat.

        All is queued at once, behind a small all-reduce that lets every rank's device begin together: no rank waits for
        a host between two repeats.
        """
        launch(1)
        self.meet(1)
        self.cuda.record(self.events[0], self.stream)
        for repeat in range(repeats):
            launch(iterations)
            self.cuda.record(self.events[repeat + 1], self.stream)
        self.cuda.wait(self.events[repeats], self.nccl.heed)
        pairs = zip(self.events, self.events[1 : repeats + 1])  # noqa: B905  Python 3.6 knows no strict
        return [self.cuda.seconds(before, after) / iterations for before, after in pairs]

    def _settle(self, event):
        self.cuda.record(event, self.stream)
        self.cuda.wait(event, self.nccl.heed)


def plan(once, left):
    """Return (iterations a repeat, repeats) for an all-reduce that takes `once` seconds, with `left` seconds to go."""
    once = max(once, 1e-6)
    iterations = max(1, min(MOST_A_REPEAT, int(REPEAT / once)))
    if REPEATS_FAST * iterations * once < min(1.0, left / 8):
        return iterations, REPEATS_FAST
    return (iterations, REPEATS) if REPEATS * iterations * once < left / 4 else (1, REPEATS_SLOW)


def shown(size):
    """Write bytes as people do: 8 GiB, 1.5 MiB."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return "{:.4g} {}".format(size, unit)
        size /= 1024.0
    return "{:.4g} GiB".format(size)
