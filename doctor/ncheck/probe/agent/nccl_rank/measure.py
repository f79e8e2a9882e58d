"""The measuring: each size out of place and, if wanted, in place, verified once, then timed on the device's own clock.

An operation that needs two buffers is measured out of place alone.

Every rank must launch the same number of collectives. So what that number depends on (how long one takes, the time and
the memory that are left) is the result of an all-reduce of its own.
"""

import ctypes
import time
from statistics import median

from ncheck.probe.agent.nccl_rank.layout import ALL_REDUCE, IN_PLACE, Layout
from ncheck.probe.agent.nccl_rank.messages import RankError
from ncheck.probe.agent.nccl_rank.pace import Pace
from ncheck.probe.agent.nccl_rank.pattern import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Sequence, Tuple

    from ncheck.probe.agent.nccl_rank.cuda import Cuda, Pointer
    from ncheck.probe.agent.nccl_rank.nccl import Launch, Nccl
    from ncheck.probe.agent.nccl_rank.watch import Watch

REPEATS = 5  # of each size, if the task does not say it
WARM_UPS = 2  # the verified one, and one more
MARGIN = 256 * 1024 * 1024  # bytes of device memory that NCCL and CUDA may still need
MARGIN_PART = 16  # but at most this part of the free memory
_FLOAT, _AGREED = 4, 3
_MEBI = 1024 * 1024


class Measure:
    """One rank in one communicator; `send` writes a message, `watch` knows the time."""

    def __init__(self, cuda: "Cuda", nccl: "Nccl", watch: "Watch", send: "Callable[..., object]", repeats: int) -> None:
        self.cuda, self.nccl, self.watch, self.send, self.repeats = cuda, nccl, watch, send, repeats
        self.stream = cuda.stream()
        self.events = [cuda.event() for _ in range(repeats + 1)]
        self.small = cuda.memory(_AGREED * _FLOAT)
        self.meet = nccl.largest(self.small, _AGREED, self.stream)
        self.pace = Pace(watch.left())

    def agree(self, *numbers: float) -> "List[float]":
        """Return the largest of each number over all ranks, three at most."""
        data = (ctypes.c_float * _AGREED)(*numbers)
        self.cuda.to_device(self.small, data, ctypes.sizeof(data))
        self.meet(1)
        self._settle(self.events[0])
        self.cuda.to_host(data, self.small, ctypes.sizeof(data))
        return data[: len(numbers)]

    def fitting(self, sizes: "Sequence[int]") -> "List[int]":
        """Return the sizes that fit into every rank's memory twice; a note names the others."""
        free = self.cuda.free()
        room = -self.agree(-(max(0, free - min(MARGIN, free // MARGIN_PART)) // _MEBI))[0] * _MEBI
        for size in sizes:
            if 2 * size > room:
                words = "left out: {} needs {} of GPU memory, and {} can be had"
                self.send("note", words=words.format(shown(size), shown(2 * size), shown(room)))
        fitting = sorted({max(_FLOAT, size // _FLOAT * _FLOAT) for size in sizes if 2 * size <= room})
        if not fitting:
            raise RankError("out of memory: no size fits, for {} of GPU memory can be had".format(shown(room)))
        return fitting

    def run(self, op: str, sizes: "Sequence[int]", rank: int, world: int, *, in_place: bool) -> None:
        """Measure all sizes that memory and time allow.

        An operation's first launch connects the ranks, which takes long among many: no size is judged by it.
        """
        sizes = self.fitting(sizes)
        halves = (False, True) if in_place and op in IN_PLACE else (False,)
        largest = Layout(op, sizes[-1], rank, world)
        self.buffers = self.cuda.memory(largest.whole), self.cuda.memory(largest.whole)
        self.pattern = Pattern(self.cuda, op, rank, world, largest.part)
        if op != ALL_REDUCE:  # of which `agree` had the first
            self.watch.at("first {}".format(op))
            self._once(self.nccl.operation(Layout(op, sizes[0], rank, world), *self.buffers, self.stream))
        for size in sizes:
            self._approach(op, size, rank, world)
            layout = Layout(op, size, rank, world)
            for half in halves:
                expected = self.pace.expected(size)
                if expected > self.pace.left:
                    what = shown(size) + (" in place" if half else "")
                    words = "left out: {} may take {:.0f} s, and {:.0f} s are left"
                    self.send("note", words=words.format(what, expected, self.pace.left))
                    break
                self._row(size, layout, in_place=half, is_last=size == sizes[-1])

    def _approach(self, op: str, size: int, rank: int, world: int) -> None:
        """Run sizes between, once each, before one that is much larger than the known ones."""
        between = self.pace.next_stride(size)
        while between:
            launch = self.nccl.operation(Layout(op, between, rank, world), *self.buffers, self.stream)
            self._learn(between, self._once(launch))
            between = self.pace.next_stride(size)

    def _learn(self, size: int, seconds: float, verifying: float = 0.0) -> float:
        """Agree upon what a size took, and on the time that is left; return the seconds."""
        seconds, verifying, left = self.agree(seconds, verifying, -self.watch.left())
        self.pace.learn(size, seconds, verifying, -left)
        return seconds

    def _row(self, size: int, layout: "Layout", *, in_place: bool, is_last: bool) -> None:
        self.watch.at("{} of {} bytes{}".format(layout.op, size, " in place" if in_place else ""))
        send, receive = self.buffers
        if in_place:
            send, receive = receive + layout.send_offset, receive + layout.receive_offset
        launch = self.nccl.operation(layout, send, receive, self.stream)
        began = time.monotonic()
        wrong, once = self._verified(layout, send, receive, launch, in_place=in_place)
        once = self._learn(size, once, time.monotonic() - began - once)
        iterations, repeats = self.pace.plan(once, self.repeats, is_last=is_last)
        times = sorted(self._timed(launch, iterations, repeats))
        self.send(
            "row", size=size, in_place=in_place, seconds=median(times), fastest=times[0], slowest=times[-1],
            wrong=wrong, timing={"warm_ups": WARM_UPS, "repeats": repeats, "iterations": iterations},
        )  # fmt: skip
        self._learn(size, times[-1], time.monotonic() - began - iterations * sum(times))

    def _verified(
        self, layout: "Layout", send: int, receive: int, launch: "Launch", *, in_place: bool
    ) -> "Tuple[int, float]":
        """Move the pattern once; return how many elements are wrong, and the seconds that it took."""
        if not in_place or layout.sends < layout.receives:
            self.cuda.zero(receive, layout.receives)
        self.pattern.fill(send, layout.sends)
        seconds = self._once(launch)
        return self.pattern.wrong(receive, layout.expected()), seconds

    def _once(self, launch: "Launch") -> float:
        """Return the seconds of one launch, which all ranks begin together."""
        self.meet(1)
        self.cuda.record(self.events[0], self.stream)
        launch(1)
        self._settle(self.events[1])
        return self.cuda.seconds(*self.events[:2])

    def _timed(self, launch: "Launch", iterations: int, repeats: int) -> "List[float]":
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
        self.cuda.wait(self.events[repeats], self.nccl.raise_failure)
        pairs = zip(self.events, self.events[1 : repeats + 1])  # noqa: B905  Python 3.6 knows no strict
        return [self.cuda.seconds(before, after) / iterations for before, after in pairs]

    def _settle(self, event: "Pointer") -> None:
        self.cuda.record(event, self.stream)
        self.cuda.wait(event, self.nccl.raise_failure)


def shown(size: float) -> str:
    """Write bytes as people do: 8 GiB, 1.5 MiB."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return "{:.4g} {}".format(size, unit)
        size /= 1024.0
    return "{:.4g} GiB".format(size)
