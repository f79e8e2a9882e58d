"""The lines of a log: bounded, without colours, each with the host and the rank that wrote it where it names them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

MOST_LINES = 200_000  # roughly what a job of a thousand ranks writes at INFO before it starts to train


_AT_EACH_END = MOST_LINES // 2


LONGEST = 2000


# \x1b[36m(RayWorkerWrapper pid=77, ip=10.1.0.3)\x1b[0m
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\^?\[(?:3\d|0|1)m")


# node01:16112:87142 [3] NCCL INFO Using network IB
_HOST = re.compile(r"(?<![\w.-])([A-Za-z0-9][\w.-]{0,252}):\d+:\d+ \[\d+\]")


# [rank12]:[E817 17:53:34.227 ProcessGroupNCCL.cpp:1515], [PG 0 Rank 12], [1,3]<stdout>:
_RANK = re.compile(r"\[[Rr]ank ?(\d+)\]|\[PG [^\]]{0,120}?Rank (\d+)\]|^\[\d+,(\d+)\]<std")


# [2026-04-22 21:47:20], [E817 17:53:34.227531918 ...]
_TIME = re.compile(r"\b(\d\d:\d\d:\d\d(?:\.\d+)?)\b")


@dataclass(frozen=True)
class Line:
    """One line. `number` counts from 0; `host` and `rank` are "" if the line does not name them."""

    number: int
    text: str
    host: str = ""
    rank: str = ""

    @property
    def time(self) -> str:
        """The time of day in the line, as printed; "" if it has none."""
        match = _TIME.search(self.text)
        return match[1] if match else ""


def read_lines(lines: Iterable[str], matters: Callable[[str], bool]) -> list[Line]:
    """Return the lines that are not empty, cut to LONGEST. Of a log of more than MOST_LINES, these are the first and
    the last ones, and at most as many of those between that matter.
    """
    numbered = ((number, raw) for number, raw in enumerate(lines) if raw.strip())
    first = list(islice(numbered, _AT_EACH_END))
    between: list[tuple[int, str]] = []
    last: deque[tuple[int, str]] = deque()
    for number, raw in numbered:
        last.append((number, raw))
        if len(last) > _AT_EACH_END:
            earlier = last.popleft()
            if len(between) < MOST_LINES and matters(earlier[1][:LONGEST]):
                between.append(earlier)
    return [_line(number, raw) for number, raw in (*first, *between, *last)]


def _line(number: int, raw: str) -> Line:
    text = raw[:LONGEST].rstrip()
    if "\x1b" in text or "[0m" in text:
        text = _COLOUR.sub("", text)
    host = _HOST.search(text) if " [" in text else None
    rank = _RANK.search(text) if "[" in text else None
    return Line(
        number, text.replace("**", ""), host[1] if host else "", next(filter(None, rank.groups()), "") if rank else ""
    )
