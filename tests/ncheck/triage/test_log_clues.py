"""From a log to its cause: a sure cause outweighs a likely one, and a consequence gives way to its cause."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pytest
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.lines import LONGEST, LogLine
from ncheck.triage.log_clues import clues_in, progress, scanned, trouble_at_the_end

MANY = 200_000  # lines: roughly what a job of a thousand ranks writes at INFO before it starts to train
HOSTS = ("node01", "node02", "node03", "node04")


def causes(lines: Iterable[str]) -> list[str]:
    return [clue.cause for clue in clues_in(lines)]


def start(host: str, rank: int) -> Iterator[str]:
    """Yield the lines that NCCL prints for a rank that starts well, some of which look like failures."""
    who = f"{host}:{4000 + rank}:{5000 + rank} [{rank % 8}] NCCL INFO "
    for text in (
        "Bootstrap: Using eth0:10.1.0.7<0>", "cudaDriverVersion 12040", "NCCL version 2.24.3+cuda12.4",
        "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
        "NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.", "Failed to open libibverbs.so[.1]",
        "NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file No plugin found",
        "NET/IB : No device found.", "NET/Socket : Using [0]eth0:10.1.0.7<0>", "Using network Socket",
        "Could not find real path of /sys/class/net/eth0/device", "TUNER/Plugin: Could not find: libnccl-tuner.so.",
        "PROFILER/Plugin: Could not find: libnccl-profiler.so.",
        "Could not enable P2P between dev 0(=1b000) and dev 1(=1c000)",
        "NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)", "comm 0x55d0 rank 0 nRanks 16 nNodes 2",
        "socketPollConnect: connect returned Connection refused, retrying (1/34) after sleep for 100 msec",
        "RAS failed to establish a client listening socket at localhost:28028",
        "Call to bind failed: Address already in use", "Continuing in spite of a RAS initialization error",
        "NCCL_IB_TIMEOUT set by environment to 22.", "TORCH_NCCL_ASYNC_ERROR_HANDLING set by environment to 1",
        "Connected all rings", "ncclCommInitRankConfig comm 0x55d0 rank 3 nranks 16 - Init COMPLETE",
    ):  # fmt: skip
        yield who + text


def many(ranks: int = 16) -> list[str]:
    """Return the lines of many ranks that started well, interleaved as by mpirun."""
    logs = [list(start(HOSTS[rank % len(HOSTS)], rank)) for rank in range(ranks)]
    return [line for lines in itertools.zip_longest(*logs) for line in lines if line]


def test_a_diagnosis_has_a_meaning_its_evidence_a_confidence_and_a_fix() -> None:
    line = "n2:77:78 [0] NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1"
    (found,) = clues_in(["n2:77:78 [0] NCCL INFO Using network IB", line])
    assert found == Clue(
        "logs", "ib_fabric", Grade.POSSIBLE, "", nodes=("n2",), others=("roce_gid", "ib_wrong_hca", "routing"),
        meaning="the other HCA does not answer at its address: rail, cable, GID or route", looks=("ibstat",),
    )  # fmt: skip
    assert found.lines == (LogLine(2, line, "n2", order=(0, 2)),)


def test_the_command_for_a_missing_module_is_in_the_interpreter_and_not_in_the_kernel_log() -> None:
    (found,) = clues_in(["ModuleNotFoundError: No module named 'torch.distributed'"])
    assert (found.cause, found.fix, found.looks) == ("rank_crashed", None, ("python3 -m pip check",))
    (found,) = clues_in(["ValueError: could not convert string to float"])
    assert (found.cause, found.kind, found.looks) == ("rank_crashed", "exception", ())
    (found,) = clues_in(["train.py: error: unrecognized arguments: --local-rank=0"])
    assert (found.cause, found.looks) == ("launcher_mismatch", ("python3 -m torch.distributed.run --help",))


def test_a_healthy_start_of_many_ranks_gives_no_diagnosis() -> None:
    assert clues_in(many(64)) == ()
    assert progress(scanned(many(2))) is Grade.POSSIBLE
    assert progress(scanned([*many(2), "# Avg bus bandwidth    : 11.93"])) is Grade.CERTAIN
    assert progress(scanned(["hello"])) is None


def test_a_job_that_goes_on_gives_no_diagnosis_for_earlier_lines() -> None:
    log = [
        "[W socket.cpp:663] [c10d] The client socket has failed to connect to [node01]:29500 (errno: 111 - refused).",
        "[c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
        'n1:7:8 [0] NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
        "n1:7:8 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",
        "n1:7:8 [0] graph/xml.h:77 NCCL WARN Attribute class of node nic not found",
        "n1:7:8 [0] NCCL WARN NET/OFI Unable to find a device of this type, trying the next one",
        "Epoch: [0][ 10/625]  Time 1.4  Loss 0.61 errors 0 failed 0",
    ]  # fmt: skip
    assert clues_in(log) == ()
    assert causes(log[:1]) == ["rendezvous_misconfig"]


def test_a_benchmark_that_finished_gives_no_diagnosis() -> None:
    log = ["[1] UCX ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory", "# Out of bounds values : 0 OK",
           "# Avg bus bandwidth    : 11.93"]  # fmt: skip
    assert clues_in(log) == ()
    assert causes(log[:1]) == ["memlock_limit"]


CAUSE = {
    "gpu_oom": "node03:4002:5002 [2] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'",
    "memlock_limit": "node02:4001:5001 [1] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
    "shm_too_small": "node01:4000:5000 [0] NCCL WARN Error: failed to extend /dev/shm/nccl-Ab to 9637892 bytes, error: "
                     "No space left on device (28)",
    "firewall": "node04:4003:5003 [3] NCCL WARN Net : Connect to 10.1.0.9<401> failed : No route to host",
    "gpu_fault": "node02: kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.",
    "gpu_mapping": "node01:4000:5000 [0] NCCL WARN Duplicate GPU detected : rank 0 and rank 8 both on CUDA device 1b",
    "version_mismatch": "RuntimeError: Mismatched NCCL version detected : rank 1 version 22705 rank 0 version 22703",
    "rank_crashed": "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 9)",
}  # fmt: skip


def echoes(rank: int) -> list[str]:
    """Return what the other ranks print after one has failed."""
    who = f"node01:{4000 + rank}:{5000 + rank} [{rank % 8}] "
    return [
        f"{who}misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node03<51159>",
        f"{who}proxy.cc:1143 NCCL WARN Socket recv failed while polling for opId=0x88c8",
        f"{who}NCCL INFO misc/socket.cc:749 -> 6",
        f"[rank{rank}]: DistBackendError: remote process exited or there was a network error, NCCL version 2.24.3",
        f"[E] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=19, OpType=ALLREDUCE, N",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        f"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: {rank} (pid: 77)",
        "Sending process 78 closing signal SIGTERM",
        "[node01:00071] ORTE has lost communication with a remote daemon.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False], ids=["the echoes come first", "the cause comes first"])
@pytest.mark.parametrize("cause", CAUSE)
def test_the_one_rank_that_names_the_cause_outweighs_thousands_of_lines_of_the_others(
    cause: str, *, before: bool
) -> None:
    lost = [line for rank in range(1, 64) for line in echoes(rank)]
    log = [*many(64), *((*lost, CAUSE[cause]) if before else (CAUSE[cause], *lost))]
    found = clues_in(log)
    assert found[0].cause == cause
    assert found[0].evidence[0].strip() == CAUSE[cause]


def test_consequences_alone_give_low_confidence() -> None:
    (best, *_) = clues_in(echoes(3))
    assert (best.cause, best.grade, best.grade.word) == ("rank_crashed", Grade.ECHO, "low")


def test_two_sure_causes_are_ordered_by_time_if_every_line_has_one() -> None:
    late = "[2026-04-22 21:47:29] n1:1:1 [0] NCCL WARN Cuda failure 2 'out of memory'"
    early = "[2026-04-22 21:47:20] n2:2:2 [0] NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes, error: No space left on device (28)"  # noqa: E501
    assert causes([late, early]) == ["shm_too_small", "gpu_oom"]
    assert causes([late, early.partition("] ")[2]]) == ["gpu_oom", "shm_too_small"]


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (["Bootstrap : Using [0]docker0:172.17.0.1<0>", "Call to connect timeout : Connection refused"], "wrong_nic"),
        (["Bootstrap : Using eth0:10.1.0.1<0>", "Call to connect timeout : Connection refused"], "rank_crashed"),
        (["Gloo connectFullMesh failed with [pair.cc:144] no error",
          "Warning: Unable to resolve hostname to a (local) address. Using the loopback address"], "hostname_loopback"),
        (["# nThread 1 nGpus 10 minBytes 8", "NCCL WARN Cuda failure 2 'out of memory'"], "peer_limit"),
        (["Call to bind failed : Address already in use (98)", "accept: Too many open files"], "nofile_limit"),
        (["NCCL WARN Call to ibv_modify_qp failed with error Invalid argument", "State: Down"], "ib_fabric"),
        (["Map:  36%|###   | 24/67 [23:16<30:00, 41.87s/it]",
          "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3"], "slow_rank_timeout"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_fault_by_itself_explains_one_that_is(lines: list[str], cause: str) -> None:
    assert causes(lines)[0] == cause


@pytest.mark.parametrize(
    "line",
    [
        "Bootstrap : Using [0]docker0:172.17.0.1<0>",
        "Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback.",
        "# nThread 1 nGpus 16 minBytes 8 maxBytes 134217728 step: 2(factor)",
        "State: Down",
        "Map:  36%|###   | 24/67 [23:16<30:00, 41.87s/it]",
        "NVRM: Xid (PCI:0000:3b:00): 63, pid=77, Row Remapper: New row marked for remapping",
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152. Proceeding without NVLS support.",
    ],
)
def test_such_a_line_alone_gives_no_diagnosis(line: str) -> None:
    assert clues_in([line]) == ()


def test_the_port_of_nccls_ras_service_does_not_hide_a_port_that_the_job_needs() -> None:
    own = ["RAS failed to establish a client listening socket", "Call to bind failed: Address already in use"]
    assert clues_in(own) == ()
    assert causes([*own, "[E] [c10d] The server socket has failed to listen on any local network address."]) == [
        "port_in_use"
    ]


def test_a_full_gpu_names_the_other_process_that_uses_it() -> None:
    full = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has 0.20 GiB free."
    left = " Process 28114 has {} memory in use. Including non-PyTorch memory, this process has 6.99 GiB memory in use."
    looks = {used: clues_in([full + left.format(used)])[0].command for used in ("71.90 GiB", "2.04 GiB", "514.00 MiB")}
    shown = "ps -o user,lstart,args -p 28114"
    assert looks == {"71.90 GiB": shown, "2.04 GiB": shown, "514.00 MiB": "nvidia-smi"}


def test_a_process_that_may_be_the_rank_itself_in_a_container_is_no_other_one() -> None:
    full = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 2.25 MiB free."
    own = " Process 2562803 has 79.14 GiB memory in use. Of the allocated memory 77.06 GiB is allocated by PyTorch."
    assert clues_in([full + own])[0].command == "nvidia-smi"


def test_symptoms_alone_have_no_cause() -> None:
    (found,) = clues_in(
        ["RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:518, unhandled system error, NCCL version 2.4.8"]
    )
    assert (found.cause, found.grade, found.command) == ("", Grade.ECHO, "export NCCL_DEBUG=INFO")


def test_evidence_is_printable_and_bounded() -> None:
    bad = "\x1b]0;owned\x07NCCL WARN Duplicate GPU detected : rank 0 and rank 1 \x1b[31mboth\x1b[0m \u202e" + "x" * 9999
    (found,) = clues_in([bad])
    assert found.evidence[0].isprintable()
    assert len(found.evidence[0]) <= 300
    assert clues_in(["x" * (2 * LONGEST) + "Duplicate GPU detected"]) == ()
    assert len(clues_in([CAUSE["gpu_oom"] + str(n) for n in range(999)])[0].evidence) == 6


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 2 * MANY], ids=["at the end", "in the middle"])
def test_the_cause_is_found_wherever_it_stands_in_a_long_log(after: int) -> None:
    flood = "n1:1:1 [0] NCCL INFO a line"
    log = itertools.chain(itertools.repeat(flood, 2 * MANY), [CAUSE["gpu_oom"]], itertools.repeat(flood, after))
    assert causes(log) == ["gpu_oom"]


@pytest.mark.slow
def test_a_flood_of_consequences_does_not_hide_the_cause_after_them() -> None:
    lost = "n1:1:1 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node03<51159>"
    assert causes([*itertools.repeat(lost, 50_000), CAUSE["gpu_fault"]])[0] == "gpu_fault"


@pytest.mark.parametrize(
    "line",
    [
        "NaN detected in loss, aborting",
        "step 513 loss nan",
        "FATAL: the checkpoint is corrupt",
        "Traceback (most recent call last):",
        "MyOwnException: no more data",
        "terminated by the scheduler",
    ],
)
def test_a_log_that_ends_in_such_a_line_shows_trouble_after_its_progress(line: str) -> None:
    log = ["step 511 loss 0.3", "step 512 loss 0.2", line, "cleaning up"]
    assert trouble_at_the_end(scanned(log)) == line
    assert trouble_at_the_end(scanned([line.replace("loss", "x"), *log[:2]])) == ""


@pytest.mark.parametrize(
    "line", ["# size count type redop time algbw busbw error", "Epoch 3 loss 0.1 errors 0", "done"]
)
def test_lines_of_a_healthy_job_show_no_trouble(line: str) -> None:
    assert trouble_at_the_end(scanned(["step 512 loss 0.2", line])) == ""


@pytest.mark.parametrize("text", ["", "\x00" * 999, "[" * 1999, "Rank  0 " * 200, "-> " * 600, "1" * 1999, " " * 1999])
def test_nonsense_gives_no_diagnosis(text: str) -> None:
    assert clues_in([text] * 50) == ()
