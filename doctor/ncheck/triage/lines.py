"""One line of a log: without colours, with the host, the rank and the time that it names."""

from __future__ import annotations

import re
from datetime import datetime

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass

LONGEST = 2000

# \x1b[36m(RayWorkerWrapper pid=77, ip=10.1.0.3)\x1b[0m
_COLOUR = expression(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\^?\[(?:3\d|0|1)m")
_HOST_NAME = r"[A-Za-z0-9][\w.-]{0,252}"

# node01:16112:87142 [3] NCCL INFO Using network IB
# [1731326400.000000] [node01:16112:0]  ib_mlx5_log.c:171 UCX ERROR Transport retry count exceeded
_HOST = expression(
    rf"(?<![\w.-])({_HOST_NAME}):\d+:\d+ \[\d+\]|^\[\d+\.\d+\] \[({_HOST_NAME}):\d+:\d+\]"
    # Nov 22 16:14:51 node01 kernel: NVRM: Xid ...      also behind the name of a machine that keeps the logs of others
    rf"|^(?:[\w.-]{{1,64}}: )?[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d ({_HOST_NAME}) \S{{1,64}}: "
    # [node01:04021] *** Process received signal ***
    rf"|^(?:\[\d+,\d+\]<std\w+>: ?)?\[({_HOST_NAME}):\d{{2,8}}\] "
    # (RayWorkerWrapper pid=77, ip=10.1.0.3) Traceback
    rf"|^\(\w{{1,80}} pid=\d+, ip=({_HOST_NAME})\)"
    # node01: Traceback (most recent call last):     as pdsh, clush and DeepSpeed print it
    r"|^([A-Za-z][A-Za-z.-]{0,60}\d[\w.-]{0,60}): (?=\S)"
)

# [rank12]:[E817 17:53:34.227 ProcessGroupNCCL.cpp:1515], [PG 0 Rank 12], [1,3]<stdout>:, srun -l: " 12: "
_RANK = expression(
    r"\[[Rr]ank ?(\d{1,6})\]|\[PG [^\]]{0,120}?Rank (\d{1,6})\]|^\[\d+,(\d{1,6})\]<std|^\[(\d{1,6})\]<std"
    r"|^ {0,6}(\d{1,6}): (?=\S)|global_rank[=: ](\d{1,6})\b"
)

# ranks that a message names itself: "on rank 3", "Rank 12:"
_NAMED_RANK = expression(r"\b[Rr]ank[ =:]{1,2}(\d{1,6})\b(?! of \d)")

# rank3.log, rank_3.out, attempt_0/3/stderr.log, rank.3/stderr
_RANK_OF_FILE = expression(r"(?:^|[/._-])rank[._-]?(\d{1,6})(?=\D|$)|attempt_\d+/(\d{1,6})/std", re.IGNORECASE)

# 2026-04-22 21:47:20,123; 2026-04-22T21:47:20.123Z; 2026/04/22 21:47:20
_DATED = expression(r"\b(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")

# E0817 17:53:34.227531 of glog, [E817 17:53:34.227531918 of torch
_GLOG = expression(r"\b[IWEF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")

# Nov 22 16:14:51
_SYSLOG = expression(
    r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ( ?\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?"
)

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# [21:47:20]
_TIME = expression(r"\b(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\b")


@dataclass(frozen=True)
class Moment:
    """When a line was written, as it says: `day` counts within a year (0 if the line names none), `seconds` in it."""

    day: int
    seconds: float


@dataclass(frozen=True)
class LogLine:
    """One line. `number` counts from 1 in its file; `host` and `rank` are "" if neither line nor file names them."""

    number: int
    text: str
    host: str = ""
    rank: str = ""
    file: str = ""
    order: tuple[int, int] = (0, 0)  # of the file among the files, and of the line in it
    moment: Moment | None = None


def as_utf8(part: bytes) -> bytes:
    """Return lines as UTF-8: those that are not are taken for GBK, in which programs write on older Chinese systems.

    GBK has capital letters and brackets as second bytes, so nothing may be searched or changed in it before.
    """
    if part.isascii():
        return part
    try:
        part.decode()
    except UnicodeDecodeError:
        return b"\n".join(_line_as_utf8(line) for line in part.split(b"\n"))
    return part


def _line_as_utf8(line: bytes) -> bytes:
    try:
        line.decode()
    except UnicodeDecodeError:
        pass
    else:
        return line
    try:
        return line.decode("gb18030").encode()
    except UnicodeDecodeError:
        return line


def cleaned(raw: str) -> str:
    """Return the text of a line, bounded, without colours and bold type."""
    text = raw[:LONGEST].rstrip()
    if "\x1b" in text or "[0m" in text:
        text = _COLOUR.sub("", text)
    return text.replace("**", "")


def host_of(text: str) -> str:
    """Return the host that the beginning of a line names, or ""."""
    match = _HOST.search(text[:300])
    return next(filter(None, match.groups()), "") if match else ""


def rank_of(text: str) -> str:
    """Return the rank that wrote a line, or the only one that its message names, or ""."""
    match = _RANK.search(text[:300])
    if match:
        return _plain(next(filter(None, match.groups()), ""))
    named = {_plain(rank) for rank in _NAMED_RANK.findall(text[:600])}
    return named.pop() if len(named) == 1 else ""


def rank_of_file(path: str) -> str:
    """Return the rank that the name of a log, or of its folder, says, or ""."""
    found = _RANK_OF_FILE.findall(path)
    return _plain("".join(found[-1])) if found else ""


def _plain(rank: str) -> str:
    return str(int(rank)) if rank else ""


def moment_of(text: str) -> Moment | None:
    """Return when a line was written, or None if it does not say."""
    start = text[:300]
    if ":" not in start:
        return None
    if match := _DATED.search(start):
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        return _moment(month, day, (hour, minute, second), match[7], year)
    if match := _SYSLOG.search(start):
        clock = int(match[3]), int(match[4]), int(match[5])
        return _moment(1 + _MONTHS.index(match[1]), int(match[2]), clock, match[6])
    if match := _GLOG.search(start):
        clock = int(match[3]), int(match[4]), int(match[5])
        return _moment(int(match[1]), int(match[2]), clock, match[6])
    if match := _TIME.search(start):
        return Moment(0, _seconds((int(match[1]), int(match[2]), int(match[3])), match[4]))
    return None


def _moment(month: int, day: int, clock: tuple[int, int, int], part: str | None, year: int = 2000) -> Moment:
    """Return the moment; a day that no calendar has counts as none."""
    try:
        number = datetime(year, month, day).timetuple().tm_yday  # noqa: DTZ001  a date alone
    except ValueError:
        number = 0
    return Moment(number, _seconds(clock, part))


def _seconds(clock: tuple[int, int, int], part: str | None) -> float:
    hour, minute, second = clock
    return 3600.0 * hour + 60 * minute + second + (float(f"0.{part}") if part else 0.0)
