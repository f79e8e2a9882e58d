"""Calls that may block for ever in the kernel, such as a look at a network file system, run in child processes.

A child that sleeps in the kernel cannot be ended. It is left behind with none of this process's open files, so that it
holds up neither the agent nor the connection.
"""

import json
import os
import select
import signal
import time
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple, TypeVar

    Item = TypeVar("Item")

OPEN_FILES = "/proc/self/fd"
_ALONE = 1.0  # seconds that the first child has for all items; then each of the rest gets a child of its own
_MOST = 64  # children at the same time


class Child:
    """A child that runs `work(descriptor)`, which writes lines of ASCII there, and has no other open file."""

    def __init__(self, work: "Callable[[int], object]") -> None:
        self.number, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: it has a deadline
            self.pid = os.fork()
        if self.pid == 0:
            try:
                _close_all_but(writing)
                work(writing)
            finally:
                os._exit(0)
        os.close(writing)
        self.data, self.writes = b"", True

    def read(self) -> None:
        """Read what is there. At its end the child has ended."""
        part = os.read(self.number, 65536)
        self.data, self.writes = self.data + part, bool(part)

    def lines(self) -> "List[str]":
        """Return the whole lines that came since this was asked last."""
        whole, _, self.data = self.data.rpartition(b"\n")
        return whole.decode("ascii").split("\n") if whole else []

    def end(self) -> None:
        """End the child. One that sleeps in the kernel is not waited for."""
        os.close(self.number)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, os.WNOHANG if self.writes else 0)


def _close_all_but(kept: int) -> None:
    try:
        numbers: "Iterable[int]" = [int(number) for number in os.listdir(OPEN_FILES)]
    except OSError:
        numbers = range(1024)  # without /proc
    for number in numbers:
        if number != kept:
            try:
                os.close(number)
            except OSError:
                pass  # that of the listing itself


def each(work: "Callable[[Item], object]", items: "Sequence[Item]", seconds: float) -> "List[Tuple[Item, Any]]":
    """Return [(item, what work(item) returned)] in the order of the items, None where it did not come back in time.

    One child does them in turn. Where that takes long, each of the rest gets a child of its own: one item that hangs
    hides no other, and many that are slow do not count as hung because they had to wait. What `work` returns must have
    a form in JSON and not be None; {"error": words} stands for it where the child ended without it.
    """
    ends = time.monotonic() + seconds
    found: "Dict[int, object]" = {}
    children = [_worker(work, list(enumerate(items)))]
    doing = dict.fromkeys(range(len(items)), children[0])
    try:
        _gather(children, found, min(ends, time.monotonic() + _ALONE))
        left = [place for place in range(len(items)) if place not in found]
        for place in left[children[0].writes : _MOST]:  # without the first, where the child is
            doing[place] = _worker(work, [(place, items[place])])
            children.append(doing[place])
        _gather(children, found, ends, enough=len(items))
    finally:
        for child in children:
            child.end()
    for place, child in doing.items():
        if place not in found and not child.writes:
            found[place] = {"error": "the process that looked at it ended"}
    return [(item, found.get(place)) for place, item in enumerate(items)]


def _worker(work: "Callable[[Item], object]", places: "Iterable[Tuple[int, Item]]") -> "Child":
    def work_through(writing: int) -> None:
        for place, item in places:
            os.write(writing, (json.dumps([place, work(item)]) + "\n").encode("ascii"))

    return Child(work_through)


def _gather(
    children: "Sequence[Child]", found: "Dict[int, object]", ends: float, *, enough: float = float("inf")
) -> None:
    """Collect results until all children ended, the time is over, or so many results are there."""
    poll = select.poll()
    writing = {child.number: child for child in children if child.writes}
    for number in writing:
        poll.register(number, select.POLLIN)
    while writing and len(found) < enough and time.monotonic() < ends:
        for number, _ in poll.poll(max(0.0, ends - time.monotonic()) * 1000):
            child = writing[number]
            child.read()
            for line in child.lines():
                place, result = json.loads(line)
                found[place] = result
            if not child.writes:
                poll.unregister(number)
                del writing[number]
