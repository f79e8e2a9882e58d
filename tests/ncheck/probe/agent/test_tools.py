"""The steps that run somebody else's program: stand-ins of nccl-tests and perftest, and what the head makes of them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import MissingError
from ncheck.agent.sources import Sources
from ncheck.decode import decoded
from ncheck.model.op import Op
from ncheck.probe.agent.step import answer
from ncheck.probe.node_result import Method, Stage, Step, StepAnswer, Timing
from ncheck.probe.program_output import with_output

STANDINS = Path(__file__).parents[3] / "lab" / "standins"
SIZES = (1 << 20, 1 << 21)
INSIDE = Step(1, Stage.INSIDE, Method.NCCL_TESTS, ("n1",), (2,), SIZES)
PAIR = Step(1, Stage.RAIL, Method.RDMA, ("n1", "n2"), (1, 1), (65536,))
OPTIONS = ["-b", "1048576", "-e", "2097152", "-f", "2", "-n", "7", "-w", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler here")
    made: Path = tmp_path_factory.mktemp("tools")
    source = STANDINS / "all_reduce_perf.c"
    subprocess.run(["gcc", "-O1", "-o", str(made / "all_reduce_perf"), str(source)], check=True)
    for name in ("ib_write_bw", "ib_write_lat"):
        shutil.copy(STANDINS / "ib_write_bw", made / name)
    return made


def sources(folder: Path, **environment: str) -> Sources:
    return Sources({"PATH": f"{folder}:/usr/bin:/bin", **environment})


def read(step: Step, asked: dict[str, Any], answered: dict[str, Any]) -> StepAnswer:
    held: StepAnswer = decoded(answered, StepAnswer)
    if not held.output or held.failure:
        return held
    return with_output(held, held.output, step, asked.get("tool", ""), serves=asked.get("serves", False))


def inside(folder: Path, *, limit: float = 60.0, op: Op = Op.ALL_REDUCE, ranks: int = 2, **environment: str) -> Any:
    asked: Any = {
        "method": "nccl-tests", "op": op.value, "options": OPTIONS, "ranks": [ranks], "timeout": limit, "variables": {},
    }  # fmt: skip
    step = replace(INSIDE, op=op, ranks=(ranks,))
    return read(step, asked, answer(sources(folder, **environment), asked, limit))


def test_the_table_of_all_reduce_perf_becomes_rows(folder: Path) -> None:
    told = inside(folder)
    assert [(row.size, row.in_place, row.wrong) for row in told.rows] == [
        (size, in_place, 0) for size in SIZES for in_place in (False, True)
    ]
    assert all(row.fastest == row.seconds == row.slowest > 0 for row in told.rows)
    assert [row.timing for row in told.rows] == [Timing(1, 7)] * 4
    assert (told.failure, told.version, told.library) == (None, "2.32.3", str(folder / "all_reduce_perf"))
    assert told.used == ("NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",)


def test_each_operation_has_its_program_and_what_has_two_buffers_is_not_in_place(folder: Path) -> None:
    for name in ("alltoall_perf", "reduce_scatter_perf"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to("all_reduce_perf")
    told = inside(folder, op=Op.ALL_TO_ALL, ranks=3)  # its table has 1048560 and 2097120 bytes: three equal parts
    assert (told.failure, told.library) == (None, str(folder / "alltoall_perf"))
    assert [(row.size, row.in_place, row.wrong) for row in told.rows] == [(size, False, 0) for size in SIZES]
    told = inside(folder, op=Op.REDUCE_SCATTER, ranks=3)
    assert (told.failure, told.library) == (None, str(folder / "reduce_scatter_perf"))
    assert [(row.size, row.in_place) for row in told.rows] == [(size, half) for size in SIZES for half in (False, True)]
    with pytest.raises(MissingError, match=r"^no sendrecv_perf beside all_reduce_perf$"):
        inside(folder, op=Op.SEND_RECV)


def test_wrong_elements_are_rows_and_no_failure_to_run(folder: Path) -> None:
    told = inside(folder, STANDIN_WRONG="3")
    assert (told.failure, {row.wrong for row in told.rows}) == (None, {3})


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("STANDIN_CUT", "its table is not whole: it was cut off, or not readable"),
        ("STANDIN_DIES", "Test CUDA failure common.cu:730 'out of memory'"),
    ],
)
def test_a_table_without_its_end_is_a_failure_in_the_programs_words(folder: Path, trouble: str, words: str) -> None:
    environment: Any = {trouble: "1"}
    told = inside(folder, **environment)
    assert (told.rows, told.failure.words, told.failure.late) == ((), words, False)


def test_one_that_hangs_is_ended_with_the_time_and_is_late(folder: Path) -> None:
    told = inside(folder, limit=1.0, STANDIN_HANG="1")
    assert (told.rows, told.failure.late) == ((), True)


def test_without_the_program_there_is_no_step(tmp_path: Path) -> None:
    asked: Any = {
        "method": "nccl-tests",
        "op": "all-reduce",
        "options": [],
        "ranks": [2],
        "timeout": 5.0,
        "variables": {"PATH": str(tmp_path)},
    }
    with pytest.raises(MissingError, match="no all_reduce_perf on the PATH"):
        answer(Sources({"PATH": str(tmp_path)}), asked, 5.0)


def test_separate_tests_of_each_process_are_not_taken_for_one_of_all(folder: Path) -> None:
    two = Step(1, Stage.PAIR, Method.NCCL_TESTS, ("n1", "n2"), (1, 1), SIZES, "mpirun")
    line = [str(folder / "all_reduce_perf"), *OPTIONS, "-g", "1"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout * 2
    output: Any = {"stdout": said, "stderr": "", "exit_status": 0, "status": "ok", "seconds": 1.0}
    failure: Any = read(two, {}, {"rows": [], "output": output}).failure
    assert failure.words == (
        "all_reduce_perf ran 2 tables of 1 rank each instead of 2 ranks together: it was built without MPI"
    )


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def rdma(folder: Path, limit: float = 60.0, *, ports: list[int] | None = None, **environment: str) -> list[Any]:
    """Return what the server and the client of one pair tell."""
    asked: Any = {
        "method": "rdma", "tool": "ib_write_bw", "device": "mlx5_0", "hca_port": 1, "bytes": 65536, "iterations": 100,
        "gid": None, "ports": ports or free_ports(3), "address": "127.0.0.1", "timeout": limit, "variables": {},
    }  # fmt: skip
    told: dict[bool, Any] = {}

    def take(*, serves: bool) -> None:
        own = {**asked, "serves": serves}
        told[serves] = read(PAIR, own, answer(sources(folder, **environment), own, limit))

    threads = [threading.Thread(target=take, kwargs={"serves": serves}) for serves in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [told[True], told[False]]


def test_a_server_and_a_client_find_each_other_and_tell_the_bandwidth(folder: Path) -> None:
    server, client = rdma(folder, STANDIN_GBITS="392.11")
    assert (server.failure, client.failure, client.version) == (None, None, "ib_write_bw")
    (row,) = client.rows
    assert (row.size, row.wrong) == (65536, None)
    assert row.size * 8 / row.seconds / 1e9 == pytest.approx(392.11)


def test_a_port_that_is_taken_is_passed_over_by_both(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))  # it does not listen: whoever calls is refused
        server, client = rdma(folder, ports=[taken.getsockname()[1], *free_ports(2)], STANDIN_GBITS="100")
    assert (server.failure, client.failure) == (None, None)


def test_hcas_that_do_not_reach_each_other_fail_in_the_programs_words(folder: Path) -> None:
    words = " Failed to modify QP 0x87 to RTR\n Unable to Connect the HCA's through the link"
    failures = [told.failure for told in rdma(folder, STANDIN_FAILS=words)]
    said = "Failed to modify QP 0x87 to RTR; Unable to Connect the HCA's through the link"
    assert [(one.step, one.words, one.late) for one in failures] == [("write", said, False)] * 2


@pytest.mark.slow
def test_a_pair_that_falls_silent_is_late_and_one_that_never_met_says_so(folder: Path) -> None:
    server, client = rdma(folder, 8.0, STANDIN_HANG="1")
    assert [(one.failure.step, one.failure.late) for one in (server, client)] == [("write", True)] * 2
    asked: Any = {
        "method": "rdma", "tool": "ib_write_bw", "device": "mlx5_0", "hca_port": 1, "bytes": 65536, "iterations": 9,
        "gid": None, "ports": free_ports(2), "address": "127.0.0.1", "timeout": 1.0, "variables": {}, "serves": False,
    }  # fmt: skip
    alone: Any = read(PAIR, asked, answer(sources(folder), asked, 1.0))
    assert alone.failure.step == "connect"


def to_itself(folder: Path, **environment: str) -> StepAnswer:
    """Return what a port tells that writes to itself, from the memory of GPU 3 if that can be."""
    asked: Any = {
        "method": "loopback", "tool": "ib_write_bw", "device": "mlx5_0", "hca_port": 1, "bytes": 65536, "serves": None,
        "iterations": 100, "gid": None, "ports": free_ports(3), "timeout": 20.0, "variables": {},
        "gpu": {"index": 3, "pci": "0000:5d:00.0"},
    }  # fmt: skip
    step = Step(1, Stage.NICS, Method.LOOPBACK, ("n1",), (1,), (2, 65536))
    own = {**asked, "serves": False}  # of which the head knows no more
    return read(step, own, answer(sources(folder, STANDIN_GBITS="391", **environment), asked, 20.0))


def test_a_port_writes_to_itself_from_a_gpu_where_it_can_and_tells_its_latency(folder: Path) -> None:
    told = to_itself(folder, STANDIN_CUDA_PERFTEST="1")
    small, large = told.rows
    assert (told.failure, told.used) == (None, ("GPU 3",))
    assert (small.size, large.size) == (2, 65536)
    assert (small.seconds, small.slowest) == pytest.approx((1.87e-6, 2.03e-6))
    assert large.size * 8 / large.seconds / 1e9 == pytest.approx(391)


@pytest.mark.parametrize("built", ["", "fails"])
def test_a_program_without_cuda_or_whose_gpu_fails_writes_from_the_host(folder: Path, built: str) -> None:
    told = to_itself(folder, STANDIN_CUDA_PERFTEST=built)
    assert (told.failure, told.used, [row.size for row in told.rows]) == (None, (), [2, 65536])


def test_a_device_whose_name_is_an_option_is_not_run(folder: Path) -> None:
    asked: Any = {"method": "rdma", "tool": "ib_write_bw", "device": "--help;", "serves": True, "timeout": 5.0}
    with pytest.raises(ValueError, match="a device of that name cannot be"):
        answer(sources(folder), asked, 5.0)
