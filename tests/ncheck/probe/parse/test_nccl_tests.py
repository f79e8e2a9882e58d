"""The table and the -J file of nccl-tests."""

from __future__ import annotations

import json

import pytest
from ncheck.probe.parse.nccl_tests import ListedRank, NcclTestsOutput, NotNcclTestsError, TableRow, parse_nccl_tests


def row(size: int, seconds: float, bandwidth: float, wrong: int | None, *, in_place: bool) -> TableRow:
    return TableRow(size, in_place, seconds, bandwidth, bandwidth, wrong)


NEW = """# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23203
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1073741824 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on     gpu-a device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4711 on     gpu-a device  1 [0000:1b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    22.61   46.38   46.38      0    22.40   46.81   46.81      0
  1073741824     268435456     float     sum      -1   4478.8  239.74  239.74      0  1.2e+06  240.55  240.55    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 143.37
#
# Collective test concluded: all_reduce_perf
"""
ROWS = (
    row(1048576, 22.61e-6, 46.38, 0, in_place=False),
    row(1048576, 22.40e-6, 46.81, 0, in_place=True),
    row(1073741824, 4478.8e-6, 239.74, 0, in_place=False),
    row(1073741824, 1.2e6 * 1e-6, 240.55, None, in_place=True),
)
RANKS = tuple(ListedRank(rank, "gpu-a", rank, "NVIDIA H100 80GB HBM3") for rank in range(2))


def near(rows: tuple[TableRow, ...]) -> list[tuple[object, ...]]:
    return [(row.size, row.in_place, pytest.approx(row.seconds), row.algbw, row.busbw, row.wrong) for row in rows]


def plain(rows: tuple[TableRow, ...]) -> list[tuple[object, ...]]:
    return [(row.size, row.in_place, row.seconds, row.algbw, row.busbw, row.wrong) for row in rows]


def test_a_table_of_today_is_read_with_exponents_and_what_was_not_verified() -> None:
    found = parse_nccl_tests(NEW)
    assert plain(found.rows) == near(ROWS)
    assert (found.collective, found.version, found.nccl) == ("all_reduce_perf", "2.19.6", "2.32.3")
    assert (found.ranks, found.world, found.tables, found.iters) == (RANKS, 2, 1, (1, 20))
    assert (found.out_of_bounds, found.average, found.errors, found.whole) == (0, 143.37, (), True)


OLD = """# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 1048576(bytes) warmup iters: 5 iters: 20
#
# Using devices
#   Rank  0 Pid   4711 on      gpu-a device  0 [0x0f] Tesla V100-SXM2-16GB
#   Rank  1 Pid   4711 on      gpu-a device  1 [0x10] Tesla V100-SXM2-16GB
#
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum    30.05   34.89   34.89  1e-07    29.70   35.31   35.31  1e-07
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 35.1015
"""


def test_a_table_of_2019_has_no_root_and_a_difference_instead_of_a_count() -> None:
    found = parse_nccl_tests(OLD)
    assert [(row.in_place, row.busbw, row.wrong) for row in found.rows] == [(False, 34.89, None), (True, 35.31, None)]
    assert [(rank.rank, rank.name) for rank in found.ranks] == [
        (0, "Tesla V100-SXM2-16GB"),
        (1, "Tesla V100-SXM2-16GB"),
    ]
    assert found.whole


def test_time_stamps_and_the_columns_of_each_iteration_are_passed_over() -> None:
    stamped = NEW.replace("#wrong\n", "#wrong           timestamp\n").replace(
        "46.81      0\n", "46.81      0  2026-03-03 09:00:00\n"
    )
    assert plain(parse_nccl_tests(stamped).rows) == near(ROWS)
    heads = "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv%"
    body = "  8 2 float sum -1 10.0 0.01 0.02 0 9.0 12.0 11.0 3.0"
    each = f"{heads} time algbw busbw #wrong i_min i_max i_p99 i_cv%\n{body} 20.0 0.03 0.04 1 9.0 12.0 11.0 3.0\n"
    assert [(row.in_place, row.busbw, row.wrong) for row in parse_nccl_tests(each).rows] == [
        (False, 0.02, 0),
        (True, 0.04, 1),
    ]


def test_the_prefix_of_mpirun_is_removed() -> None:
    tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in NEW.splitlines())
    assert plain(parse_nccl_tests(tagged).rows) == near(ROWS)


def test_wrong_elements_are_counted_and_a_table_without_its_end_is_not_whole() -> None:
    wrong = NEW.replace("46.38      0", "46.38  1.5e+06").replace(": 0 OK", ": 3 FAILED")
    found = parse_nccl_tests(wrong)
    assert (found.rows[0].wrong, found.out_of_bounds, found.whole) == (1500000, 3, True)
    cut = parse_nccl_tests(NEW.partition("# Out of bounds")[0])
    assert (cut.out_of_bounds, cut.whole) == (None, False)


@pytest.mark.parametrize("word", ["nan", "inf", "-1", "0.00", "zinc-1:97271:57913"])
def test_a_half_that_is_no_number_is_no_row_and_the_table_not_whole(word: str) -> None:
    found = parse_nccl_tests(NEW.replace("22.61", word))
    assert (len(found.rows), found.unreadable, found.whole) == (3, 1, False)


def test_a_build_without_mpi_prints_a_table_for_each_process_and_that_is_no_whole_test() -> None:
    alone = NEW.replace(
        "#  Rank  1 Group  0 Pid   4711 on     gpu-a device  1 [0000:1b:00] NVIDIA H100 80GB HBM3\n", ""
    )
    found = parse_nccl_tests(alone + alone.replace("gpu-a", "gpu-b"))
    assert (found.tables, found.world, found.whole) == (2, 1, False)
    assert [rank.host for rank in found.ranks] == ["gpu-a", "gpu-b"]


def test_its_own_words_of_a_failure_are_kept() -> None:
    text = "gpu-a: Test NCCL failure common.cu:958 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '\n"
    assert parse_nccl_tests(text).errors == (
        "Test NCCL failure common.cu:958 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '",
    )


def half(micro: float, wrong: float | None = 0.0) -> dict[str, object]:
    return {"time": micro, "alg_bw": 46.38, "bus_bw": 46.38, "nwrong": wrong}


ENVIRONMENT = "WANDB_API_KEY=hunter2"
FILE = {
    "version": 2, "start_time": "2026-03-03 09:00:00", "args": ["./build/all_reduce_perf", "-J", "o.json"],
    "env": [ENVIRONMENT], "nccl_version": 23203,
    "config": {"nthreads": 1, "devices": [
        {"rank": rank, "group": 0, "pid": 4711, "hostname": "gpu-a", "device": rank, "device_hex": "0000:0f:00",
         "device_info": "NVIDIA H100 80GB HBM3"} for rank in range(2)]},
    "results": [{"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1",
                 "out_of_place": half(22.61), "in_place": half(22.40, None)}],
    "out_of_bounds": {"count": 0, "okay": "true"}, "average_bus_bandwidth": {"bandwidth": 46.6, "okay": "unchecked"},
    "errors": [],
}  # fmt: skip


def test_a_j_file_is_read_and_its_environment_is_not() -> None:
    found = parse_nccl_tests(json.dumps(FILE))
    assert plain(found.rows) == near(
        (
            row(1048576, 22.61e-6, 46.38, 0, in_place=False),
            row(1048576, 22.40e-6, 46.38, None, in_place=True),
        )
    )
    assert (found.collective, found.nccl, found.ranks) == ("all_reduce_perf", "2.32.3", RANKS)
    assert (found.out_of_bounds, found.average, found.whole) == (0, 46.6, True)
    assert "hunter2" not in repr(found)


def test_a_j_file_with_its_devices_outside_of_config_reads_alike() -> None:
    moved = {**FILE, "config": {}, "devices": FILE["config"]["devices"]}  # type: ignore[index]
    assert parse_nccl_tests(json.dumps(moved)) == parse_nccl_tests(json.dumps(FILE))


@pytest.mark.parametrize("broken", [{"time": "nan"}, {"time": None}, {"nwrong": "nan"}, {"bus_bw": -1}, {"time": True}])
def test_a_j_file_with_nonsense_for_a_number_is_not_whole(broken: dict[str, object]) -> None:
    result = {**FILE["results"][0], "out_of_place": {**half(1.0), **broken}}  # type: ignore[index]
    found = parse_nccl_tests(json.dumps({**FILE, "results": [result]}))
    assert (len(found.rows), found.unreadable, found.whole) == (1, 1, False)


@pytest.mark.parametrize("text", ["", "bash: all_reduce_perf: command not found", "{", "{}", '{"results": 3}', "[1]"])
def test_any_other_text_is_an_error(text: str) -> None:
    with pytest.raises(NotNcclTestsError):
        parse_nccl_tests(text)


def test_nothing_at_all_is_not_whole() -> None:
    assert not NcclTestsOutput().whole
