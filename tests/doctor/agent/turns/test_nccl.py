"""Ranks of one node over its loopback, by stand-ins for NCCL and the driver: what they tell, and that nothing stays."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from doctor.agent.answers import meeting, turn
from doctor.agent.sources import Sources
from doctor.transport.modules import module_text

Told = dict[str, Any]
Turn = Callable[..., Told]
Standins = Callable[..., Path]
FAR = 120.0  # seconds: an end for what hangs, far beyond what a busy machine needs
VARIABLES = {"NCCL_SOCKET_IFNAME": "=lo"}
SIZES = [8, 1 << 20]
SHM = Path("/dev/shm")  # noqa: S108  where NCCL puts its segments


def arguments(gpus: list[int], name: str, more: Told) -> Told:
    return {
        "means": "nccl", "round": 1, "stage": "inside", "group": ["here"], "ranks": [len(gpus)], "sizes": SIZES,
        "launcher": "agents", "net": "", "expect": None, "node": "here", "planned": ["lo"], "timeout": FAR,
        "variables": VARIABLES, "id": name, "first": 0, "gpus": gpus, **more,
    }  # fmt: skip


@pytest.fixture
def measured(standins: Standins, alone_in_shm: None) -> Iterator[Turn]:  # noqa: ARG001  for as long as it runs
    """Return a function that runs a turn of this node's ranks. Afterwards no process and no segment may be left."""
    mark = os.urandom(8).hex()
    opened: list[Sources] = []

    def node(python: str, flags: tuple[str, ...], job: dict[str, str]) -> Sources:
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "NCCL_", "CUDA_"))}
        sources = Sources({**plain, "LD_LIBRARY_PATH": str(standins(*flags)), "STANDIN_MARK": mark, **job})
        sources.fetch = module_text
        sources.start({"environment": {"python": python}})
        opened.append(sources)
        return sources

    def asked(  # noqa: PLR0913  what a test says of a node
        gpus: list[int],
        *,
        nccl: str = "",
        cuda: str = "",
        python: str = sys.executable,
        flags: tuple[str, ...] = (),
        job: dict[str, str] | None = None,
        **more: object,
    ) -> Told:
        sources = node(python, flags, {"STANDIN_NCCL": nccl, "STANDIN_CUDA": cuda, **(job or {})})
        met = meeting.answer(sources, {"means": "nccl", "count": 1, "variables": VARIABLES}, FAR)
        beside = more.pop("beside", None)
        ranks = [len(gpus), len(gpus)] if beside is not None else [len(gpus)]
        parts = [(sources, arguments(gpus, met["ids"][0], {"ranks": ranks, **more}))]
        if beside is not None:
            second = node(python, flags, {"STANDIN_NCCL": str(beside), "STANDIN_CUDA": cuda, "NCCL_HOSTID": "second"})
            parts.append((second, {**parts[0][1], "first": len(gpus)}))
        with ThreadPoolExecutor() as pool:
            told = list(pool.map(lambda part: turn.answer(part[0], part[1], FAR), parts))
        return {**told[0], "beside": told[1]} if beside is not None else dict(told[0])

    yield asked
    for sources in opened:
        for child in sources.kept.get("meetings", ()):
            child.end()
            child.process.stdin.close()
            child.process.stdout.close()
    assert marked(mark) == []
    assert list(SHM.glob(f"nccl-{mark}*")) == []


def marked(mark: str) -> list[str]:
    """Return the processes that carry the mark of a test in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and f"STANDIN_MARK={mark}".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text()[:200])
        except OSError:  # noqa: PERF203  it has ended meanwhile, or is another user's
            continue
    return found


def shape(said: Told) -> list[tuple[int, bool, int | None]]:
    return [(row["size"], row["in_place"], row["wrong"]) for row in said["rows"]]


ALL_RIGHT = [(8, False, 0), (8, True, 0), (1 << 20, False, 0), (1 << 20, True, 0)]


@pytest.mark.parametrize("version", ["22105", "22703"])
def test_each_size_is_measured_out_of_place_and_in_place_and_verified(measured: Turn, version: str) -> None:
    said = measured([0, 1, 2], nccl=f"version={version}")
    assert said["failure"] is None
    assert shape(said) == ALL_RIGHT
    assert all(0 < row["fastest"] <= row["seconds"] <= row["slowest"] for row in said["rows"])
    assert said["version"] == {"22105": "2.21.5", "22703": "2.27.3"}[version]
    assert said["library"].endswith("/libnccl.so.2")
    assert (said["log"], said["left"]) == ([], [])
    assert 0 < said["start"] < FAR


def test_a_launch_that_is_in_progress_is_waited_for(measured: Turn) -> None:
    assert shape(measured([0, 1], nccl="version=22105,lazy=1")) == ALL_RIGHT


def test_a_library_older_than_its_configuration_is_opened_in_the_plain_way(measured: Turn) -> None:
    said = measured([0, 1], nccl="version=21210", flags=("-DWITHOUT_CONFIG",))
    assert (said["version"], shape(said)) == ("2.12.10", ALL_RIGHT)


def test_one_gpu_is_measured_alone(measured: Turn) -> None:
    assert shape(measured([0])) == ALL_RIGHT


def test_two_nodes_sum_together(measured: Turn) -> None:
    said = measured([0, 1], beside="")
    assert shape(said) == ALL_RIGHT
    assert shape(said["beside"]) == ALL_RIGHT


@pytest.mark.parametrize("version", ["22105", "22703"])
def test_versions_that_differ_fail_on_both_nodes_in_the_words_of_nccl(measured: Turn, version: str) -> None:
    said = measured([0], nccl=f"version={version}", beside="version=22605")
    words = "Mismatched NCCL version detected : rank {} version {} rank {} version {}"
    assert words.format(0, version, 1, 22605) in said["failure"]["words"]
    assert words.format(1, 22605, 0, version) in said["beside"]["failure"]["words"]
    assert said["failure"]["code"] == said["beside"]["failure"]["code"] == 5


def test_a_rank_that_dies_on_one_node_ends_the_other_nodes_ranks_before_their_deadline(measured: Turn) -> None:
    said = measured([0, 1], nccl="version=22105", beside="version=22105,die=collective,at=4,rank=3")
    assert (said["failure"]["code"], said["failure"]["late"]) == (6, False)
    assert said["beside"]["failure"] == {
        "step": "all-reduce of 8 bytes", "words": "it died of SIGSEGV in: all-reduce of 8 bytes", "rank": 3,
        "code": -11, "late": False,
    }  # fmt: skip


def test_a_node_whose_part_never_comes_lets_the_other_end_at_its_deadline(measured: Turn) -> None:
    said = measured([0], ranks=[1, 1], timeout=8.0)
    assert said["failure"] == {
        "step": "init", "words": "its time was over in: init", "rank": 0, "code": None, "late": True,
    }  # fmt: skip


def test_the_bytes_that_an_interface_moved_are_told(measured: Turn) -> None:
    moved = measured([0, 1])["carried"]["lo"]
    assert moved["sent"] > 2 * (1 << 20)
    assert moved["received"] > 2 * (1 << 20)


def test_the_log_says_which_network_is_used_once_for_all_ranks(measured: Turn) -> None:
    said = measured([0, 1], nccl="ib=1", variables={"NCCL_NET": "IB", "NCCL_SOCKET_IFNAME": "=lo"})
    told = sorted({line.rpartition("NCCL INFO ")[2].rpartition("<")[0] or line[-16:] for line in said["used"]})
    assert [line.partition(":127.0.0.1")[0] for line in told] == [
        "Bootstrap: Using lo", "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB lo", "Using network IB",
    ]  # fmt: skip


def test_wrong_elements_are_counted(measured: Turn) -> None:
    said = measured([0, 1], nccl="wrong=5,rank=1")
    assert said["failure"] is None
    assert shape(said) == [(8, False, 2), (8, True, 2), (1 << 20, False, 5), (1 << 20, True, 5)]


def test_two_ranks_on_one_gpu_are_told_in_the_words_of_nccl(measured: Turn) -> None:
    said = measured([0, 0])
    assert said["failure"]["step"] == "init"
    assert said["failure"]["code"] == 5
    assert "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device" in said["failure"]["words"]
    assert any("NCCL WARN Duplicate GPU" in line for line in said["log"])
    assert said["rows"] == []


@pytest.mark.parametrize(("version", "where", "timeout"), [
    ("22105", "init", 8.0), ("22703", "init", 8.0), ("22703", "collective", 30.0),
])  # fmt: skip
def test_what_hangs_is_ended_at_the_deadline(measured: Turn, version: str, where: str, timeout: float) -> None:
    said = measured([0, 1], nccl=f"version={version},hang={where},at=4", timeout=timeout)
    step = {"init": "init", "collective": "all-reduce of 8 bytes"}[where]
    assert said["failure"] == {
        "step": step, "words": f"its time was over in: {step}", "rank": 0, "code": None, "late": True,
    }  # fmt: skip


@pytest.mark.parametrize("where", ["init", "collective"])
def test_a_rank_that_dies_is_named_whatever_the_others_say(measured: Turn, where: str) -> None:
    said = measured([0, 1, 2], nccl=f"version=22105,die={where},at=4,rank=1")
    step = {"init": "init", "collective": "all-reduce of 8 bytes"}[where]
    assert said["failure"] == {
        "step": step, "words": f"it died of SIGSEGV in: {step}", "rank": 1, "code": -11, "late": False,
    }  # fmt: skip


def test_who_failed_by_itself_comes_before_who_was_left_alone(measured: Turn) -> None:
    said = measured([0, 1], nccl="fail=collective,at=4,rank=1")
    assert (said["failure"]["rank"], said["failure"]["code"]) == (1, 2)
    assert "NET/IB: Got completion from peer" in said["failure"]["words"]


def test_a_segment_that_the_ranks_leave_is_removed_and_told(measured: Turn) -> None:
    said = measured([0, 1], nccl="shm=leave")
    assert shape(said) == ALL_RIGHT
    assert len(said["left"]) == 2
    assert all(line.startswith(f"{SHM}/nccl-") and line.endswith(" (4096 bytes) was removed") for line in said["left"])


def test_a_segment_that_came_meanwhile_and_is_nobodys_stays_and_is_told_where_a_rank_died(
    measured: Turn, tmp_path: Path
) -> None:
    theirs = SHM / f"nccl-of-another-job-{os.getpid()}"  # whose processes are in another container
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\ncase $* in *zlib*) : > {theirs};; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    try:
        said = measured([0, 1], python=str(python), nccl="shm=leave,die=collective,at=4")
        assert theirs.exists()
        removed = [line for line in said["left"] if line.endswith(" (4096 bytes) was removed")]
        rest = [f"{theirs} came meanwhile, and nothing shows whose it is: it was not removed"]
        assert (len(removed), said["left"]) == (2, removed + rest)
        theirs.unlink()
        said = measured([0, 1], python=str(python))
        assert (theirs.exists(), said["left"]) == (True, [])  # all ranks told last what they had, and this was not it
    finally:
        theirs.unlink()


def test_a_shared_memory_that_is_full_is_told_in_the_words_of_nccl(measured: Turn) -> None:
    said = measured([0, 1], nccl="shm=full")
    assert "error: No space left on device (28)" in said["failure"]["words"]
    assert said["left"] == []


def test_a_library_without_a_symbol_is_named(measured: Turn) -> None:
    said = measured([0, 1], flags=("-DWITHOUT_ALL_REDUCE",))
    assert said["failure"]["step"] == "libnccl"
    assert said["failure"]["words"].endswith("libnccl.so.2 lacks ncclAllReduce: it is no NCCL that can be driven")


@pytest.mark.parametrize(("code", "words"), [
    (100, "cuInit: no CUDA-capable device is detected (CUDA error 100)"),
    (803, "cuInit: system has unsupported display driver / cuda driver combination (CUDA error 803)"),
    (35, "cuInit: CUDA driver version is insufficient for CUDA runtime version (CUDA error 35)"),
])  # fmt: skip
def test_a_driver_that_does_not_start_is_told_in_its_words(measured: Turn, code: int, words: str) -> None:
    said = measured([0, 1], cuda=f"init={code}")
    assert said["failure"] == {"step": "libcuda", "words": words, "rank": 0, "code": None, "late": False}


def test_no_driver_at_all_is_said(measured: Turn, tmp_path: Path, standins: Standins) -> None:
    (tmp_path / "libnccl.so.2").symlink_to(standins() / "libnccl.so.2")
    said = measured([0], job={"LD_LIBRARY_PATH": str(tmp_path)})
    assert said["failure"]["step"] == "libcuda"
    assert said["failure"]["words"].endswith("this node has no NVIDIA driver, or the container was not given it")


def test_more_ranks_than_gpus_are_told_as_that(measured: Turn) -> None:
    said = measured([0, 1, 2], cuda="devices=2")
    assert said["failure"]["words"] == "a rank wants GPU 2, and this node shows 2: more ranks than GPUs"
    assert said["failure"]["rank"] == 2


def test_sizes_that_do_not_fit_are_left_out_and_told(measured: Turn) -> None:
    said = measured([0, 1], cuda="memory=16777216", sizes=[8, 1 << 20, 1 << 30])
    assert shape(said) == ALL_RIGHT
    assert said["log"] == ["left out: 1 GiB needs 2 GiB of GPU memory, and 14 MiB can be had"]


def test_a_device_that_gives_no_memory_is_out_of_memory(measured: Turn) -> None:
    said = measured([0, 1], cuda="oom=1")
    assert said["failure"]["words"] == "cuMemAlloc_v2: out of memory (CUDA error 2)"


def test_a_size_for_which_there_is_no_time_is_left_out_and_told(measured: Turn) -> None:
    said = measured([0, 1], nccl="rate=2000000", timeout=40.0, sizes=[8, 65536, 1 << 28])
    assert [row["size"] for row in said["rows"]] == [8, 8, 65536, 65536]
    assert said["log"][0].startswith("left out: 256 MiB may take ")


def test_infiniband_that_is_not_there_fails_where_it_is_pinned(measured: Turn) -> None:
    said = measured([0, 1], variables={"NCCL_NET": "IB", "NCCL_SOCKET_IFNAME": "=lo"})
    assert (said["failure"]["step"], said["failure"]["code"]) == ("init", 5)
    assert "network IB not found" in said["failure"]["words"]


def test_the_jobs_own_log_file_and_rendezvous_are_not_used(measured: Turn, tmp_path: Path) -> None:
    job = {"NCCL_DEBUG_FILE": str(tmp_path / "log"), "NCCL_TOPO_DUMP_FILE": str(tmp_path / "topo")}
    said = measured([0, 1], job={**job, "NCCL_COMM_ID": "192.0.2.1:1"})
    assert shape(said) == ALL_RIGHT
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_that_cannot_run_it_is_named(measured: Turn, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\ncase $* in *zlib*) echo "no module named zlib" >&2; exit 1;; esac\n'
                      f'exec {sys.executable} "$@"\n')  # fmt: skip
    python.chmod(0o755)
    said = measured([0], python=str(python))
    assert said["failure"]["words"] == "it ended with exit status 1 in: start: no module named zlib"


def test_every_python_from_3_6_on_runs_the_ranks(measured: Turn, python3: str) -> None:
    assert shape(measured([0, 1], python=python3)) == ALL_RIGHT
