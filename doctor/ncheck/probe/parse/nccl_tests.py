"""nccl-tests' all_reduce_perf and its like: the table, as releases have printed it since 2.0, and the -J file.

The columns are taken from the table's heading, because they changed: `root` was added, `error` (the largest difference)
became `#wrong` (a count), -I 1 adds four columns after each half, -S 1 a time stamp at the end.
Layout: nccl-tests, src/util.cu and src/common.cu. The environment in the -J file is not read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import plain_text
from ncheck.parse.nccl_version import decode_version

MOST_ROWS, MOST_RANKS, MOST_ERRORS = 1000, 4096, 20
_LONGEST = 2000  # characters of a line
_TIMES = ("time", "cputime")
_MICRO = 1e-6

# # nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007
_VERSION = expression(r"nccl-tests version (\S+)(?:.*nccl-library=(\d{4,6})\b)?")

# # Collective test starting: all_reduce_perf
_STARTING = expression(r"Collective test starting: (\S+)")

# #  Rank  0 Group  0 Pid 4711 on node07 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
# #   Rank  1 Pid   4711 on     node07 device  1 [0x0f] Tesla V100-SXM2-16GB
_RANK = expression(
    r"#\s+Rank\s+(\d{1,6})\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+(\d{1,4}) \[[^\]]*\] ?(.*)"
)

# # nThread 1 nGpus 8 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 ...
_ITERS = expression(r"warmup iters: (\d{1,6}) iters: (\d{1,6})\b")

# # Out of bounds values : 3 FAILED
_OUT_OF_BOUNDS = expression(r"# Out of bounds values +: (\d+) (?:OK|FAILED)")

# # Avg bus bandwidth    : 464.075 FAILED
_AVERAGE = expression(r"# Avg bus bandwidth +: ([0-9.e+]+)")

# node07: Test NCCL failure common.cu:958 'unhandled cuda error ...'    |    # error: ...    |    Invalid number of ...
_ERROR = expression(r"Test (?:NCCL |CUDA )?failure .+|# error: .+|Invalid number of GPUs: .+")


class NotNcclTestsError(ValueError):
    """The text is neither a table of nccl-tests nor its -J file."""


@dataclass(frozen=True)
class TableRow:
    """One half of a row: bytes, seconds of one collective (the mean of its iterations), GB/s (1e9 bytes per second).

    `wrong` counts wrong elements; None: they were not verified, or the release prints no count.
    """

    size: int
    in_place: bool
    seconds: float
    algbw: float
    busbw: float
    wrong: int | None


@dataclass(frozen=True)
class ListedRank:
    """One rank in the tool's list; `host` is the hostname of its machine."""

    rank: int
    host: str
    device: int
    name: str


@dataclass(frozen=True)
class NcclTestsOutput:
    """One output. `tables` counts the tables in it: a build without MPI prints one for each process that mpirun starts.

    `out_of_bounds` is the sum of all wrong elements, None if the output ends before it. `unreadable` counts the rows of
    which a half could not be read; `average` is over all sizes and both halves, in GB/s.
    """

    collective: str = ""
    version: str = ""  # of nccl-tests: "2.19.6", "" up to 2.17
    nccl: str = ""
    ranks: tuple[ListedRank, ...] = ()
    rows: tuple[TableRow, ...] = ()
    tables: int = 0
    out_of_bounds: int | None = None
    average: float | None = None
    iters: tuple[int, int] | None = None  # warm-ups, and those whose mean each row is
    unreadable: int = 0
    errors: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the output is complete and could be read."""
        return self.tables == 1 and bool(self.rows) and self.out_of_bounds is not None and not self.unreadable

    @property
    def world(self) -> int:
        """The number of ranks in one test: 1 if every process ran its own test."""
        return len({rank.rank for rank in self.ranks})


def parse_nccl_tests(text: str) -> NcclTestsOutput:
    """Read a table or a -J file. Raises NotNcclTestsError for what is neither."""
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return _json(text)
    lines = [line[:_LONGEST] for line in plain_text(text).split("\n")]
    found = _table(lines)
    if not (found.tables or found.ranks or found.version or found.errors or found.out_of_bounds is not None):
        raise NotNcclTestsError("not the output of nccl-tests: no table of time, algbw and busbw")
    return found


def _table(lines: Sequence[str]) -> NcclTestsOutput:
    version, starting = _first(_VERSION, lines), _first(_STARTING, lines)
    average = _number((_first(_AVERAGE, lines) or ("",))[0])
    iters = _first(_ITERS, lines)
    rows, unreadable, tables = _rows(lines)
    ranks = (hit for line in lines if (hit := _RANK.search(line)))
    sums = [int(hit[1]) for line in lines if (hit := _OUT_OF_BOUNDS.search(line))]
    errors = (hit[0].strip() for line in lines if (hit := _ERROR.search(line)))
    return NcclTestsOutput(
        collective=starting[0] if starting else "",
        version=version[0] if version else "",
        nccl=decode_version(int(version[1])) if version and version[1] else "",
        ranks=tuple(ListedRank(int(hit[1]), hit[2], int(hit[3]), hit[4].strip()) for hit in ranks)[:MOST_RANKS],
        rows=rows,
        tables=tables,
        out_of_bounds=sum(sums) if sums and len(sums) >= tables else None,
        average=average,
        iters=(int(iters[0]), int(iters[1])) if iters and int(iters[1]) else None,
        unreadable=unreadable,
        errors=tuple(dict.fromkeys(errors))[:MOST_ERRORS],
    )


def _rows(lines: Sequence[str]) -> tuple[tuple[TableRow, ...], int, int]:
    """Return the rows of all tables, how many could not be read, and the number of tables."""
    columns: list[str] = []
    rows: list[TableRow] = []
    unreadable = tables = 0
    for line in lines:
        words = line.split()
        if words[:1] == ["#"] and words.count("busbw") > 1:
            columns, tables = words[1:], tables + 1
        elif columns and words and words[0].isdecimal() and len(words[0]) < len(str(2**64)) and len(rows) < MOST_ROWS:
            found = tuple(_halves(columns, words))
            rows += found
            unreadable += len(found) < len(_BOTH)
    return tuple(rows), unreadable, tables


_BOTH = (False, True)  # in_place: the out-of-place half comes first


def _halves(columns: Sequence[str], words: Sequence[str]) -> Iterator[TableRow]:
    starts = [at for at, name in enumerate(columns) if name in _TIMES]
    for in_place, at in zip(_BOTH, starts, strict=False):
        half = dict(zip(columns[at : at + 4], words[at : at + 4], strict=False))
        micro, algbw, busbw = (_number(half.get(name, "")) for name in (columns[at], "algbw", "busbw"))
        counted = _count(half.get("#wrong", "N/A"))
        if micro and algbw is not None and busbw is not None and counted is not False:
            yield TableRow(int(words[0]), in_place, micro * _MICRO, algbw, busbw, counted)


def _count(word: str) -> int | bool | None:
    """Return the number of wrong elements (0, 1.2e+07), None for N/A, False for anything else."""
    if word == "N/A":
        return None
    number = _number(word)
    return False if number is None else int(number)


def _number(word: object) -> float | None:
    """Return a finite number that is not negative; None for anything else."""
    try:
        number = float(word) if isinstance(word, str | int | float) and not isinstance(word, bool) else -1.0
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> tuple[str, ...] | None:
    return next((hit.groups() for line in lines if (hit := pattern.search(line))), None)


def _json(text: str) -> NcclTestsOutput:
    try:
        content = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise NotNcclTestsError(f"not a complete -J file of nccl-tests: {error}") from None
    results = content.get("results") if isinstance(content, Mapping) else None
    if not isinstance(results, list):
        raise NotNcclTestsError("not a -J file of nccl-tests: it has no results")
    config, code = _mapping(content.get("config")), content.get("nccl_version")
    halves = [list(_json_halves(_mapping(result))) for result in results[:MOST_ROWS]]
    ranks = config.get("devices", content.get("devices"))  # the field lies inside config since JSON_FILE_VERSION 2
    args, errors = content.get("args"), content.get("errors")
    count = _number(_mapping(content.get("out_of_bounds")).get("count"))
    return NcclTestsOutput(
        collective=str(args[0]).rpartition("/")[2][:_LONGEST] if isinstance(args, list) and args else "",
        nccl=decode_version(code) if isinstance(code, int) and 0 < code < 10**6 else "",
        ranks=tuple(_json_ranks(ranks if isinstance(ranks, list) else []))[:MOST_RANKS],
        rows=tuple(row for half in halves for row in half),
        tables=1,
        out_of_bounds=None if count is None else int(count),
        average=_number(_mapping(content.get("average_bus_bandwidth")).get("bandwidth")),
        unreadable=sum(len(half) < len(_BOTH) for half in halves),
        errors=tuple(str(error)[:_LONGEST] for error in (errors if isinstance(errors, list) else []) if error),
    )


def _json_halves(result: Mapping[str, object]) -> Iterator[TableRow]:
    size = result.get("size")
    for in_place, name in zip(_BOTH, ("out_of_place", "in_place"), strict=True):
        half = _mapping(result.get(name))
        micro = _number(half.get("time", half.get("cpu_time")))
        algbw, busbw, wrong = (_number(half.get(key)) for key in ("alg_bw", "bus_bw", "nwrong"))
        checked = half.get("nwrong") is None or wrong is not None
        if isinstance(size, int) and size >= 0 and micro and algbw is not None and busbw is not None and checked:
            yield TableRow(size, in_place, micro * _MICRO, algbw, busbw, None if wrong is None else int(wrong))


def _json_ranks(devices: Sequence[object]) -> Iterator[ListedRank]:
    for device in map(_mapping, devices):
        rank, number = device.get("rank"), device.get("device")
        if isinstance(rank, int) and isinstance(number, int):
            yield ListedRank(rank, str(device.get("hostname", "")), number, str(device.get("device_info", "")))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
