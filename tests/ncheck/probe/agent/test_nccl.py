"""Ranks of one node over its loopback, by stand-ins for NCCL and the driver: what they tell, and that nothing stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from .driven_ranks import ALL_RIGHT, FAR, DrivenRanks, shape

pytestmark = pytest.mark.slow

SHM = Path("/dev/shm")  # noqa: S108  where NCCL puts its segments


@pytest.mark.parametrize("version", ["22105", "22703"])
def test_each_size_is_measured_out_of_place_and_in_place_and_verified(measured: DrivenRanks, version: str) -> None:
    said = measured([0, 1, 2], nccl=f"version={version}", repeats=6)
    assert said["failure"] is None
    assert shape(said) == ALL_RIGHT
    assert all(0 < row["fastest"] <= row["seconds"] <= row["slowest"] for row in said["rows"])
    timings = [row["timing"] for row in said["rows"]]
    assert [(one["warm_ups"], one["repeats"]) for one in timings] == [(2, 6)] * 4
    assert all(1 <= one["iterations"] <= 20 for one in timings)
    assert said["version"] == {"22105": "2.21.5", "22703": "2.27.3"}[version]
    assert said["library"].endswith("/libnccl.so.2")
    assert (said["log"], said["left"]) == ([], [])
    assert 0 < said["start"] < FAR


def test_a_launch_that_is_in_progress_is_waited_for(measured: DrivenRanks) -> None:
    assert shape(measured([0, 1], nccl="version=22105,lazy=1")) == ALL_RIGHT


def test_a_library_older_than_its_configuration_is_opened_in_the_plain_way(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="version=21210", flags=("-DWITHOUT_CONFIG",))
    assert (said["version"], shape(said)) == ("2.12.10", ALL_RIGHT)


def test_one_gpu_is_measured_alone_and_out_of_place_alone_where_no_more_is_wanted(measured: DrivenRanks) -> None:
    assert shape(measured([0], in_place=False)) == ALL_RIGHT[::2]


def test_two_nodes_sum_together(measured: DrivenRanks) -> None:
    said = measured([0, 1], beside="")
    assert shape(said) == ALL_RIGHT
    assert shape(said["beside"]) == ALL_RIGHT


def test_the_bytes_that_an_interface_moved_are_told(measured: DrivenRanks) -> None:
    moved = measured([0, 1])["carried"]["lo"]
    assert moved["sent"] > 2 * (1 << 20)
    assert moved["received"] > 2 * (1 << 20)


def test_the_log_says_which_network_is_used_once_for_all_ranks(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="ib=1", variables={"NCCL_NET": "IB", "NCCL_SOCKET_IFNAME": "=lo"})
    told = sorted({line.rpartition("NCCL INFO ")[2].rpartition("<")[0] or line[-16:] for line in said["used"]})
    assert [line.partition(":127.0.0.1")[0] for line in told] == [
        "Bootstrap: Using lo", "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB lo", "Using network IB",
    ]  # fmt: skip


def test_gpus_of_amd_sum_by_rccl_and_the_hip_that_it_brings(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="version=22203,wrong=5,rank=1", flags=("-DRCCL",), beside="version=22203")
    assert (said["failure"], said["beside"]["failure"]) == (None, None)
    assert (said["version"], Path(said["library"]).name) == ("2.22.3", "librccl.so.1")
    assert shape(said) == [(8, False, 2), (8, True, 2), (1 << 20, False, 5), (1 << 20, True, 5)]
    assert shape(said["beside"]) == ALL_RIGHT


def test_one_node_sums_by_its_nics_as_it_does_by_itself(measured: DrivenRanks) -> None:
    said = measured([0, 1], method="nics", nccl="ib=1", variables={"NCCL_NET": "IB", "NCCL_SOCKET_IFNAME": "=lo"})
    assert (said["failure"], shape(said)) == (None, ALL_RIGHT)
    assert any("NET/IB : Using [0]mlx5_0:1/IB" in line for line in said["used"])


def test_fewer_gpus_of_amd_than_ranks_are_told(measured: DrivenRanks) -> None:
    said = measured([0, 8], flags=("-DRCCL",), cuda="devices=8")
    words = "a rank wants GPU 8, and this node shows 8: more ranks than GPUs"
    assert (said["failure"]["step"], said["failure"]["words"]) == ("libamdhip64", words)


MIB, BETWEEN = 1 << 20, 65536  # the last is run once, on the way from the smallest size to a much larger one


# Of three ranks: how many elements of the smallest size one rank has afterwards that may be wrong, the bytes that all
# send for 8, 64 Ki and 1 Mi bytes, by the ring that each operation is made of, and whether there is a way in place.
@pytest.mark.parametrize(("op", "few", "sent", "halves"), [
    ("all-reduce", 2, (4 * 8, 4 * BETWEEN, 4 * MIB), (False, True)),
    ("all-gather", 1, (6 * 4, 6 * 21840, 6 * 349520), (False, True)),  # parts of a third, in whole 16 bytes
    ("reduce-scatter", 1, (6 * 4, 6 * 21840, 6 * 349520), (False, True)),
    ("all-to-all", 1, (6 * 4, 6 * 21840, 6 * 349520), (False,)),
    ("broadcast", 2, (2 * 8, 2 * BETWEEN, 2 * MIB), (False, True)),
    ("send-recv", 2, (3 * 8, 3 * BETWEEN, 3 * MIB), (False,)),
])  # fmt: skip
def test_of_each_operation_every_byte_is_sent_and_wrong_elements_of_one_rank_are_counted(  # noqa: PLR0913, PLR0917
    measured: DrivenRanks, tmp_path: Path, op: str, few: int, sent: tuple[int, int, int], halves: tuple[bool, ...]
) -> None:
    job = {"STANDIN_COUNTS": str(tmp_path / "counts")}
    said = measured([0, 1, 2], nccl="wrong=5,rank=1", repeats=2, op=op, job=job)
    assert said["failure"] is None
    assert shape(said) == [(size, half, wrong) for size, wrong in ((8, few), (MIB, 5)) for half in halves]
    launches = {8: 0, MIB: 0}
    for row in said["rows"]:
        launches[row["size"]] += row["timing"]["warm_ups"] + row["timing"]["repeats"] * row["timing"]["iterations"]
    by_rank: dict[str, list[tuple[int, int]]] = {}
    for line in (tmp_path / "counts").read_text().splitlines():
        _, kind, count, size = line.split()
        by_rank.setdefault(kind, []).append((int(count), int(size)))
    made_of = "send-and-receive" if op in ("all-to-all", "send-recv") else op
    launches[8] += op != "all-reduce"  # the first one connects the ranks
    assert set(by_rank) == {made_of, "largest"}
    assert [count for count, _ in by_rank[made_of]] == [launches[8] + 1 + launches[MIB]] * 3
    assert sum(size for _, size in by_rank[made_of]) == launches[8] * sent[0] + sent[1] + launches[MIB] * sent[2]


def test_a_slow_pair_that_no_ring_has_shows_in_an_all_to_all(measured: DrivenRanks) -> None:
    nccl = f"pair=0-2,pace={MIB}"
    (row,) = measured([0, 1, 2, 3], nccl=nccl, repeats=1, op="all-to-all", sizes=[MIB])["rows"]
    assert row["fastest"] > 0.1  # the mean of two ranks that wait 0.25 s, and of two that do not
    assert measured([0, 1, 2, 3], nccl=nccl, repeats=1, op="all-gather", sizes=[MIB])["rows"][0]["fastest"] < 0.1


def test_ranks_that_take_long_to_connect_have_time_for_every_size(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="connect=1", op="all-to-all", sizes=[MIB], timeout=40.0)
    assert (shape(said), said["log"]) == ([(MIB, False, 0)], [])


def test_a_launch_of_sends_and_receives_that_is_in_progress_is_waited_for(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="version=22105,lazy=1", op="all-to-all")
    assert shape(said) == [(8, False, 0), (MIB, False, 0)]


def test_a_segment_that_the_ranks_leave_is_removed_and_told(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="shm=leave")
    assert shape(said) == ALL_RIGHT
    assert len(said["left"]) == 2
    assert all(line.startswith(f"{SHM}/nccl-") and line.endswith(" (4096 bytes) was removed") for line in said["left"])


def test_a_segment_that_came_meanwhile_and_is_nobodys_stays_and_is_told_where_a_rank_died(
    measured: DrivenRanks, tmp_path: Path
) -> None:
    theirs = SHM / f"nccl-of-another-job-{os.getpid()}"  # whose processes are in another container
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\ncase $* in *zlib*) : > {theirs};; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    try:
        said = measured([0, 1], python=str(python), nccl="shm=leave,die=collective,at=4")
        assert theirs.exists()
        removed = [line for line in said["left"] if line.endswith(" (4096 bytes) was removed")]
        rest = [f"{theirs} appeared meanwhile and its owner is unknown: it was not removed"]
        assert (len(removed), said["left"]) == (2, removed + rest)
        theirs.unlink()
        said = measured([0, 1], python=str(python))
        assert (theirs.exists(), said["left"]) == (True, [])  # all ranks told last what they had, and this was not it
    finally:
        theirs.unlink()


def test_sizes_that_do_not_fit_are_left_out_and_told(measured: DrivenRanks) -> None:
    said = measured([0, 1], cuda="memory=16777216", sizes=[8, 1 << 20, 1 << 30])
    assert shape(said) == ALL_RIGHT
    assert said["log"] == ["left out: 1 GiB needs 2 GiB of GPU memory, and 14 MiB can be had"]


def test_a_size_for_which_there_is_no_time_is_left_out_and_told(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="rate=2000000", timeout=40.0, sizes=[8, 65536, 1 << 28])
    assert [row["size"] for row in said["rows"]] == [8, 8, 65536, 65536]
    assert said["log"][0].startswith("left out: 256 MiB may take ")


def test_the_jobs_own_log_file_and_rendezvous_are_not_used(measured: DrivenRanks, tmp_path: Path) -> None:
    job = {"NCCL_DEBUG_FILE": str(tmp_path / "log"), "NCCL_TOPO_DUMP_FILE": str(tmp_path / "topo")}
    said = measured([0, 1], job={**job, "NCCL_COMM_ID": "192.0.2.1:1"})
    assert shape(said) == ALL_RIGHT
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_and_the_newest_python_run_the_ranks(measured: DrivenRanks, python3: str) -> None:
    assert shape(measured([0, 1], python=python3)) == ALL_RIGHT
