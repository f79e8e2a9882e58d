"""Ranks that fail, by stand-ins for NCCL and the driver: who is named, in whose words, and that nothing stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .driven_ranks import DrivenRanks, Standins

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("version", ["22105", "22703"])
def test_versions_that_differ_fail_on_both_nodes_in_the_words_of_nccl(measured: DrivenRanks, version: str) -> None:
    said = measured([0], nccl=f"version={version}", beside="version=22605")
    words = "Mismatched NCCL version detected : rank {} version {} rank {} version {}"
    assert words.format(0, version, 1, 22605) in said["failure"]["words"]
    assert words.format(1, 22605, 0, version) in said["beside"]["failure"]["words"]
    assert said["failure"]["code"] == said["beside"]["failure"]["code"] == 5


def test_a_rank_that_dies_on_one_node_ends_the_other_nodes_ranks_before_their_deadline(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="version=22105", beside="version=22105,die=collective,at=4,rank=3")
    assert (said["failure"]["code"], said["failure"]["late"]) == (6, False)
    assert said["beside"]["failure"] == {
        "step": "all-reduce of 8 bytes", "words": "it died of SIGSEGV in: all-reduce of 8 bytes", "rank": 3,
        "code": -11, "late": False,
    }  # fmt: skip


def test_a_node_whose_part_never_comes_lets_the_other_end_at_its_deadline(measured: DrivenRanks) -> None:
    said = measured([0], ranks=[1, 1], timeout=8.0)
    assert said["failure"] == {
        "step": "init", "words": "its time was over in: init", "rank": 0, "code": None, "late": True,
    }  # fmt: skip


def test_two_ranks_on_one_gpu_are_told_in_the_words_of_nccl(measured: DrivenRanks) -> None:
    said = measured([0, 0])
    assert said["failure"]["step"] == "init"
    assert said["failure"]["code"] == 5
    assert "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device" in said["failure"]["words"]
    assert any("NCCL WARN Duplicate GPU" in line for line in said["log"])
    assert said["rows"] == []


@pytest.mark.parametrize(("version", "where", "timeout"), [
    ("22105", "init", 8.0), ("22703", "init", 8.0), ("22703", "collective", 15.0),
])  # fmt: skip
def test_what_hangs_is_ended_at_the_deadline(measured: DrivenRanks, version: str, where: str, timeout: float) -> None:
    said = measured([0, 1], nccl=f"version={version},hang={where},at=4", timeout=timeout)
    step = {"init": "init", "collective": "all-reduce of 8 bytes"}[where]
    assert said["failure"] == {
        "step": step, "words": f"its time was over in: {step}", "rank": 0, "code": None, "late": True,
    }  # fmt: skip


@pytest.mark.parametrize("where", ["init", "collective"])
def test_a_rank_that_dies_is_named_whatever_the_others_say(measured: DrivenRanks, where: str) -> None:
    said = measured([0, 1, 2], nccl=f"version=22105,die={where},at=4,rank=1")
    step = {"init": "init", "collective": "all-reduce of 8 bytes"}[where]
    assert said["failure"] == {
        "step": step, "words": f"it died of SIGSEGV in: {step}", "rank": 1, "code": -11, "late": False,
    }  # fmt: skip


def test_who_failed_by_itself_comes_before_who_was_left_alone(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="fail=collective,at=4,rank=1")
    assert (said["failure"]["rank"], said["failure"]["code"]) == (1, 2)
    assert "NET/IB: Got completion from peer" in said["failure"]["words"]


def test_a_shared_memory_that_is_full_is_told_in_the_words_of_nccl(measured: DrivenRanks) -> None:
    said = measured([0, 1], nccl="shm=full")
    assert "error: No space left on device (28)" in said["failure"]["words"]
    assert said["left"] == []


def test_a_library_without_a_symbol_is_named(measured: DrivenRanks) -> None:
    said = measured([0, 1], flags=("-DWITHOUT_ALL_REDUCE",))
    assert said["failure"]["step"] == "libnccl"
    assert said["failure"]["words"].endswith("libnccl.so.2 lacks ncclAllReduce: it is no NCCL that can be driven")


@pytest.mark.parametrize(("code", "words"), [
    (100, "cuInit: no CUDA-capable device is detected (CUDA error 100)"),
    (803, "cuInit: system has unsupported display driver / cuda driver combination (CUDA error 803)"),
    (35, "cuInit: CUDA driver version is insufficient for CUDA runtime version (CUDA error 35)"),
])  # fmt: skip
def test_a_driver_that_does_not_start_is_told_in_its_words(measured: DrivenRanks, code: int, words: str) -> None:
    said = measured([0, 1], cuda=f"init={code}")
    assert said["failure"] == {"step": "libcuda", "words": words, "rank": 0, "code": None, "late": False}


def test_no_driver_at_all_is_said(measured: DrivenRanks, tmp_path: Path, standins: Standins) -> None:
    (tmp_path / "libnccl.so.2").symlink_to(standins() / "libnccl.so.2")
    said = measured([0], job={"LD_LIBRARY_PATH": str(tmp_path)})
    assert said["failure"]["step"] == "libcuda"
    assert said["failure"]["words"].endswith("this node has no NVIDIA driver, or the container was not given it")


def test_more_ranks_than_gpus_are_told_as_that(measured: DrivenRanks) -> None:
    said = measured([0, 1, 2], cuda="devices=2")
    assert said["failure"]["words"] == "a rank wants GPU 2, and this node shows 2: more ranks than GPUs"
    assert said["failure"]["rank"] == 2


def test_a_device_that_gives_no_memory_is_out_of_memory(measured: DrivenRanks) -> None:
    said = measured([0, 1], cuda="oom=1")
    assert said["failure"]["words"] == "cuMemAlloc_v2: out of memory (CUDA error 2)"


def test_infiniband_that_is_not_there_fails_where_it_is_pinned(measured: DrivenRanks) -> None:
    said = measured([0, 1], variables={"NCCL_NET": "IB", "NCCL_SOCKET_IFNAME": "=lo"})
    assert (said["failure"]["step"], said["failure"]["code"]) == ("init", 5)
    assert "network IB not found" in said["failure"]["words"]


def test_an_interpreter_that_cannot_run_it_is_named(measured: DrivenRanks, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\ncase $* in *zlib*) echo "no module named zlib" >&2; exit 1;; esac\n'
                      f'exec {sys.executable} "$@"\n')  # fmt: skip
    python.chmod(0o755)
    said = measured([0], python=str(python))
    assert said["failure"]["words"] == "it ended with exit status 1 in: start: no module named zlib"
