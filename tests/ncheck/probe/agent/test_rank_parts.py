"""The parts of a rank and of its step that need neither a library nor a process."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import pytest
from ncheck.decode import decoded
from ncheck.probe.agent.nccl_log import Log
from ncheck.probe.agent.nccl_rank.layout import Layout
from ncheck.probe.agent.nccl_rank.measure import shown
from ncheck.probe.agent.nccl_rank.messages import RankError
from ncheck.probe.agent.nccl_rank.pace import Pace
from ncheck.probe.agent.nccl_rank.pattern import BLOCK, PERIOD, Pattern, block, scale
from ncheck.probe.agent.nccl_rank.place import gpu_of, placed
from ncheck.probe.agent.nccl_rank.watch import ASKED_TO_END
from ncheck.probe.agent.ranks import first_cause
from ncheck.probe.node_result import UsedLines

WORLD = 10_000  # ranks: more than any cluster of today has
EXACT = 2**24  # whole numbers up to which a float has each


class HostMemory:
    """Stands in for a device whose memory is the host's."""

    def staging(self, size: int) -> Any:
        return ctypes.create_string_buffer(size)

    def to_device(self, address: int, data: bytes, size: int) -> None:
        ctypes.memmove(address, data, size)

    def on_device(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def to_host(self, data: Any, address: int, size: int) -> None:
        ctypes.memmove(data, address, size)


HOST: Any = HostMemory()


def floats(data: bytes) -> list[float]:
    return list(memoryview(data).cast("f"))


def test_sums_of_the_pattern_are_whole_numbers_that_a_float_holds() -> None:
    assert max(floats(block(sum(map(scale, range(WORLD))), 8))) < EXACT
    assert floats(block(3, 8))[:3] == [3.0, 6.0, 9.0]
    assert len(block(1, 8)) == PERIOD * 4
    assert len(block(1, BLOCK)) == BLOCK


@pytest.mark.parametrize("size", [4, 4 * PERIOD, 4 * PERIOD * 3 + 4, 1 << 22, BLOCK + (1 << 20)])
def test_one_wrong_element_is_found_wherever_it_is(size: int) -> None:
    pattern = Pattern(HOST, "all-reduce", 0, 1, size)
    memory = ctypes.create_string_buffer(size)
    address = ctypes.addressof(memory)
    pattern.fill(address, size)
    assert pattern.wrong(address, [(None, 0, size)]) == 0
    for place in {0, size // 2 // 4 * 4, size - 4}:
        kept = ctypes.string_at(address + place, 4)
        ctypes.memset(address + place, 0, 4)
        assert pattern.wrong(address, [(None, 0, size)]) == 1
        ctypes.memmove(address + place, kept, 4)
    assert pattern.wrong(address, [(None, 0, size)]) == 0


@pytest.mark.parametrize("shift", [1, 128, 1 << 15, 1 << 18])
def test_a_chunk_that_landed_elsewhere_is_found(shift: int) -> None:
    size = 1 << 21
    pattern = Pattern(HOST, "all-reduce", 0, 1, size)
    memory = ctypes.create_string_buffer(size + 4 * shift)
    pattern.fill(ctypes.addressof(memory), size + 4 * shift)
    assert pattern.wrong(ctypes.addressof(memory) + 4 * shift, [(None, 0, size)]) > size // 8


@pytest.mark.parametrize("apart", [1, 2, 7, 127, 889])
def test_the_data_of_one_rank_is_not_taken_for_that_of_another(apart: int) -> None:
    size, world = 1 << 12, 1024
    memory = ctypes.create_string_buffer(size)
    address = ctypes.addressof(memory)
    Pattern(HOST, "all-gather", 5, world, size).fill(address, size)
    pattern = Pattern(HOST, "all-gather", 0, world, size)
    assert pattern.wrong(address, [(5, 0, size)]) == 0
    assert pattern.wrong(address, [(5 + apart, 0, size)]) > size // 4 // 2


def layouts(op: str, size: int = 1 << 20) -> list[tuple[int, int, int, int, list[object]]]:
    found = [Layout(op, size, rank, 3) for rank in range(3)]
    return [(one.sends, one.receives, one.send_offset, one.receive_offset, [*one.expected()]) for one in found]


def test_what_each_rank_sends_and_receives_is_what_nccl_tests_count() -> None:
    third = 349_520  # of a mebibyte, in whole 16 bytes
    assert layouts("all-reduce") == [(1 << 20, 1 << 20, 0, 0, [(None, 0, 1 << 20)])] * 3
    assert layouts("all-gather") == [
        (third, 3 * third, rank * third, 0, [(other, 0, third) for other in range(3)]) for rank in range(3)
    ]
    assert layouts("reduce-scatter") == [
        (3 * third, third, 0, rank * third, [(None, rank * third, third)]) for rank in range(3)
    ]
    assert layouts("all-to-all") == [
        (3 * third, 3 * third, 0, 0, [(other, rank * third, third) for other in range(3)]) for rank in range(3)
    ]
    assert layouts("broadcast") == [(1 << 20, 1 << 20, 0, 0, [(0, 0, 1 << 20)])] * 3
    assert layouts("send-recv") == [(1 << 20, 1 << 20, 0, 0, [(rank, 0, 1 << 20)]) for rank in (2, 0, 1)]
    assert [part[:2] for part in layouts("all-gather", 8)] == [(4, 12)] * 3  # an element each, though 8 bytes are less


def test_a_buffer_that_was_never_written_is_wholly_wrong() -> None:
    pattern = Pattern(HOST, "all-reduce", 0, 2, 1 << 16)
    memory = ctypes.create_string_buffer(1 << 16)
    assert pattern.wrong(ctypes.addressof(memory), [(None, 0, 1 << 16)]) == 1 << 14


def test_small_sizes_are_launched_often_and_slow_ones_seldom() -> None:
    assert Pace(60.0).plan(1e-5, 5, is_last=False) == (20, 5)
    assert Pace(60.0).plan(5e-3, 5, is_last=False) == (10, 5)
    assert Pace(60.0).plan(0.1, 5, is_last=False) == (1, 5)
    assert Pace(60.0).plan(2.0, 5, is_last=True) == (1, 5)
    assert Pace(20.0).plan(4.0, 5, is_last=True) == (1, 3)


def test_repeats_are_as_many_as_wanted_and_fewer_only_where_one_iteration_of_each_takes_too_long() -> None:
    pace = Pace(60.0)
    assert pace.plan(1e-5, 500, is_last=False) == (1, 500), "a stream queues no more launches"
    assert pace.plan(1e-5, 1, is_last=False) == (20, 1)
    assert pace.plan(0.01, 100, is_last=False) == (3, 100)
    assert pace.plan(0.1, 100, is_last=False) == (1, 37)
    assert pace.plan(0.1, 100, is_last=True) == (1, 100), "the largest size has the most time"
    assert pace.plan(10.0, 2, is_last=True) == (1, 2)


def test_the_way_to_a_much_larger_size_is_felt() -> None:
    pace = Pace(60.0)
    assert pace.next_stride(65536) is None
    assert pace.next_stride(1 << 30) == 65536
    pace.learn(65536, 0.001, 0.0, 59.0)
    assert pace.next_stride(1 << 30) == 1 << 20
    pace.learn(1 << 20, 1.0, 0.0, 50.0)
    assert pace.next_stride(1 << 30) is None, "the next would take longer than is left"
    assert pace.expected(1 << 30) > pace.left
    assert pace.expected(65536) == 0.0


def test_verifying_counts_as_time() -> None:
    pace = Pace(60.0)
    pace.learn(1 << 20, 0.0, 1.0, 60.0)
    assert pace.expected(1 << 21) == pytest.approx(3.0)


def test_a_rank_takes_its_own_gpu() -> None:
    assert gpu_of({"gpus": [4, 5], "rank": 9}, 1, {"CUDA_VISIBLE_DEVICES": "7"}) == 5
    assert gpu_of({"gpus": [4, 5]}, 1, {}) == 5
    assert gpu_of({}, 3, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}) == 3
    assert gpu_of({}, 3, {"CUDA_VISIBLE_DEVICES": "3"}) == 0, "the launcher shows each rank one"
    with pytest.raises(RankError, match="rank 2 of this node has no GPU: 2 were found for it"):
        gpu_of({"gpus": [0, 1]}, 2, {})


ENDS = """
from ncheck.probe.agent.nccl_rank.messages import Messages
from ncheck.probe.agent.nccl_rank.watch import ASKED_TO_END, Watch

class Opening(Messages):
    def removed(self, words, gone):
        watch.abort = print  # the other thread has opened NCCL

watch = Watch(Opening(0), 0.0)
watch.end(ASKED_TO_END)
"""


def test_a_rank_ends_that_opens_nccl_while_it_is_asked_to_end() -> None:
    assert subprocess.run([sys.executable, "-c", ENDS], check=False, timeout=60).returncode == ASKED_TO_END


def test_a_parents_word_outweighs_a_launchers_variables() -> None:
    slurm = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "4"}
    assert placed({}, slurm) == (3, 1, 4)
    assert placed({"rank": 0, "local": 0, "world": 2}, slurm) == (0, 0, 2)
    assert placed({}, {**slurm, "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}) == (2, 0, 4)


def test_sizes_are_shown_as_people_write_them() -> None:
    assert [shown(size) for size in (8, 65536, 3 << 19, 8 << 30)] == ["8 bytes", "64 KiB", "1.5 MiB", "8 GiB"]


INFO = "node01:{}:99 [{}] NCCL INFO {}"


def test_the_log_keeps_the_networks_and_the_warnings_of_several_ranks_once() -> None:
    log = Log()
    for pid in (11, 12):
        log.take(INFO.format(pid, 0, "Bootstrap: Using eth0:10.0.0.1<0>"))
        log.take(INFO.format(pid, 0, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"))
        log.take(INFO.format(pid, 0, "Using network IB"))
        log.take(INFO.format(pid, 0, "NCCL_NET set by environment to IB."))
        log.take(f"node01:{pid}:99 [0] init.cc:1 NCCL WARN Mismatched NCCL version detected")
    assert log.used == [
        INFO.format(11, 0, "Bootstrap: Using eth0:10.0.0.1<0>"),
        INFO.format(11, 0, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"),
        INFO.format(11, 0, "Using network IB"),
    ]
    assert log.lines(None) == ["node01:11:99 [0] init.cc:1 NCCL WARN Mismatched NCCL version detected"]
    assert log.lines({"step": "init"})[-2] == INFO.format(12, 0, "NCCL_NET set by environment to IB.")


def test_a_line_that_names_32_adapters_is_kept_whole() -> None:
    adapters = " ".join(f"[{index}]roceP{index}p3s0f0:1/RoCE" for index in range(32))
    line = INFO.format(11, 0, f"NET/IB : Using {adapters} [RO]; OOB eth0:10.0.0.1<0>")
    log = Log()
    log.take(line)
    assert log.used == [line]
    assert decoded([line], UsedLines) == (line,)


def test_a_log_without_end_is_kept_small() -> None:
    log = Log()
    for number in range(10_000):
        log.take(f"h:1:2 [0] x.cc:1 NCCL WARN {number} " + "x" * 10_000)
    kept = log.lines({"step": "init"})
    assert len(kept) == 40 + 30
    assert max(map(len, kept)) == 400


def failed(rank: int, code: int | None, *, late: bool = False) -> dict[str, object]:
    return {"step": "init", "words": "", "rank": rank, "code": code, "late": late}


def test_who_failed_by_itself_outweighs_who_lost_it_and_who_only_waited() -> None:
    late, lost, puzzled, own = failed(0, None, late=True), failed(1, 6), failed(2, 3), failed(3, -11)
    assert first_cause([late, lost, None, puzzled, own]) == own
    assert first_cause([late, lost, puzzled]) == puzzled
    assert first_cause([late, lost]) == lost
    assert first_cause([late]) == late
    assert first_cause([None]) is None
