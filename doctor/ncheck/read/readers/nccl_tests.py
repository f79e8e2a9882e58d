"""nccl-tests and rccl-tests: the table of all_reduce_perf and its like, or the -J file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ncheck.model.remark import Remark, error, info, warning
from ncheck.probe.parse.nccl_tests import NcclTestsOutput, NotNcclTestsError, parse_nccl_tests
from ncheck.read.reading import Reader, Reading, Record


def _facts(found: NcclTestsOutput) -> Record:
    return {
        "collective": found.collective or None,
        "nccl_tests": found.version or None,
        "nccl": found.nccl or None,
        "ranks": [{"rank": rank.rank, "host": rank.host, "gpu": rank.name} for rank in found.ranks],
        "rows": [asdict(row) for row in found.rows],
        "tables": found.tables,
        "out_of_bounds": found.out_of_bounds,
        "average_busbw": found.average,
        "whole": found.whole,
        "error": "; ".join(found.errors) or None,
    }


def _remarks(found: NcclTestsOutput) -> Iterator[Remark]:
    for problem in found.errors:
        yield error(problem)
    wrong = sum(1 for row in found.rows if row.wrong)
    if wrong or found.out_of_bounds:
        yield error(f"wrong results: {wrong or found.out_of_bounds} rows; data was damaged, do not trust the bandwidth")
    if not found.whole:
        yield warning("the text ends before the last line of the test: it was cut, or the test hung or crashed")
    if best := max(found.rows, key=lambda row: row.busbw or 0.0, default=None):
        hosts = len({rank.host for rank in found.ranks})
        across = f" with {len(found.ranks)} ranks on {hosts} nodes" if found.ranks else ""
        yield info(f"best bus bandwidth: {best.busbw} GB/s at {best.size} bytes{across}")


def _read(text: str) -> Reading | None:
    try:
        found = parse_nccl_tests(text)
    except NotNcclTestsError:
        return None
    return Reading("nccl-tests", "nccl-tests", _facts(found)).saying(_remarks(found))


def _failed(text: str) -> Reading:
    return Reading("nccl-tests", "", _facts(parse_nccl_tests(text)))


READER = Reader(
    "nccl-tests",
    ("rccl-tests", "all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf", "broadcast_perf",
     "reduce_perf", "sendrecv_perf"),
    40, _read, _failed,
)  # fmt: skip
