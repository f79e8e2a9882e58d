"""ib_write_bw (perftest) and ibv_rc_pingpong (ibverbs-utils): the bandwidth between two HCA ports.

Layouts: perftest, src/perftest_parameters.h (RESULT_FMT, REPORT_FMT); rdma-core, libibverbs/examples/rc_pingpong.c.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import plain_text

MOST_ROWS, MOST_ERRORS = 64, 8
_LONGEST = 400  # characters of a line that is kept
_MEBI = 2**20 * 8 / 1e9  # perftest's MB/sec has 2**20 bytes; in Gb/s

#  #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
_HEADING = expression(r"#bytes\s+#iterations\s+BW peak\[(\w+)/sec\]\s+BW average\[\w+/sec\]")

#  65536      5000             97.52              97.44  		   0.185852
_ROW = expression(r"^\s*(\d{1,19})\s+(\d{1,19})\s+([\d.]{1,20})\s+([\d.]{1,20})(?:\s|$)")

#  #bytes #iterations  t_min[usec]  t_max[usec]  t_typical[usec]  t_avg[usec]  t_stdev[usec]  99% percentile[usec]
_LATENCY_HEADING = expression(r"#bytes\s+#iterations\s+t_min\[usec\].*t_typical\[usec\].*99% percentile\[usec\]")

#  2       1000          1.79           5.41         1.87     	       1.88        	0.18   		2.03    5.41
_LATENCY = expression(r"^\s*(\d{1,19})\s+\d{1,19}((?:\s+[\d.]{1,20}){7})(?:\s|$)")

# 8192000 bytes in 0.01 seconds = 6474.94 Mbit/sec
_PINGPONG = expression(r"^(\d{1,19}) bytes in ([\d.]{1,20}) seconds = ([\d.]{1,20}) Mbit/sec")

# 1000 iters in 0.01 seconds = 10.12 usec/iter
_ITERS = expression(r"^(\d{1,19}) iters in [\d.]{1,20} seconds = ([\d.]{1,20}) usec/iter")

# Couldn't connect to 10.1.0.7:18515     |     Failed to modify QP 0x87 to RTR     |     Failed status 12: wr_id 0 ...
# IB device mlx5_7 not found     |     Unable to find the Infiniband/RoCE device     |     Completion with error
# Failed status transport retry counter exceeded (12) for wr_id 2     |      Port number 1 state is Down
_ERROR = expression(
    r"Couldn't|Could not|Did not detect|Failed"
    r"|Unable|not found|No IB devices|with error|\berror\b|state is (?!Active)|mismatch|ERRNO"
    r"|[Tt]imed out|[Cc]onnection (?:refused|reset)|[Cc]annot|can't",
    re.ASCII,
)

_HARMLESS = ("Conflicting CPU frequency", "WARNING", "Warning", "CPU freq")


@dataclass(frozen=True)
class Written:
    """One result: bytes per message, number of messages, peak and average in Gb/s (1e9 bits per second)."""

    size: int
    iterations: int
    peak: float
    average: float


@dataclass(frozen=True)
class Latency:
    """One result of ib_write_lat: bytes per message; least, median and 99 % in microseconds."""

    size: int
    least: float
    median: float
    most: float


@dataclass(frozen=True)
class Perftest:
    """One output. `rows` is empty if it has no result; `errors` are its own messages, in order."""

    rows: tuple[Written, ...] = ()
    errors: tuple[str, ...] = ()


def parse_write_bw(text: str) -> Perftest:
    """Read ib_write_bw's report, the server's or the client's, with --report_gbits or without."""
    lines = plain_text(text).split("\n")
    return Perftest(tuple(_rows(lines))[:MOST_ROWS], _errors(lines))


def _rows(lines: list[str]) -> Iterator[Written]:
    unit = 0.0
    for line in lines:
        if heading := _HEADING.search(line):
            unit = 1.0 if heading[1] == "Gb" else _MEBI
        elif "t_min[usec]" in line:
            unit = 0.0  # latencies follow
        elif unit and (hit := _ROW.match(line[:_LONGEST])):
            peak, average = (_number(word) * unit for word in (hit[3], hit[4]))
            if average > 0 and math.isfinite(average):
                yield Written(int(hit[1]), int(hit[2]), peak, average)


def parse_write_lat(text: str) -> Latency | None:
    """Read the first size of ib_write_lat's report; None where there is none."""
    heading = False
    for line in plain_text(text).split("\n"):
        heading = heading or _LATENCY_HEADING.search(line[:_LONGEST]) is not None
        if heading and (hit := _LATENCY.match(line[:_LONGEST])):
            least, _, median, _, _, most, _ = map(_number, hit[2].split())
            return Latency(int(hit[1]), least, median, most) if 0 < least <= median <= most else None
    return None


def parse_pingpong(text: str) -> Perftest:
    """Read ibv_rc_pingpong's report. It sends one message at a time, so it does not show the bandwidth of the link."""
    lines = plain_text(text).split("\n")
    moved = next((hit for line in lines if (hit := _PINGPONG.match(line))), None)
    counted = next((hit for line in lines if (hit := _ITERS.match(line))), None)
    errors = _errors(lines)
    if not moved or not counted or not int(counted[1]) or _number(moved[3]) <= 0:
        return Perftest((), errors)
    size = int(moved[1]) // int(counted[1]) // 2  # bytes are counted both ways
    rate = _number(moved[3]) / 1e3
    return Perftest((Written(size, int(counted[1]), rate, rate),), errors)


def _errors(lines: list[str]) -> tuple[str, ...]:
    errors = (line.strip()[:_LONGEST] for line in lines if _ERROR.search(line[:_LONGEST]))
    kept = (line for line in errors if not line.startswith(_HARMLESS))
    return tuple(dict.fromkeys(kept))[:MOST_ERRORS]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
