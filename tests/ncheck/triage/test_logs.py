"""All logs of a job together: the first failure counts, and health needs a sign of it."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from ncheck.model.next_step import Action, NextStep
from ncheck.triage.across_lines.variables import names_note
from ncheck.triage.causes import UNKNOWN
from ncheck.triage.certainty import SURE
from ncheck.triage.diagnosis import Diagnosis, EvidenceLine
from ncheck.triage.logs import LogReport, examine_logs
from ncheck.triage.signature import REGISTER

WATCHDOG = (
    "[rank{0}]:[E822 10:30:00.1 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600034 ms\n"
)
TRACEBACK = "Traceback (most recent call last):\n  File 'train.py', line 7, in step\nValueError: no more data\n"


def report(folder: Path, texts: Mapping[str, str]) -> LogReport:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return examine_logs([str(folder / name) for name in texts], io.BytesIO())


def best(folder: Path, text: str) -> Diagnosis:
    return report(folder, {"job.log": text}).diagnoses[0]


def test_the_traceback_of_one_rank_beats_the_watchdogs_of_the_others(tmp_path: Path) -> None:
    texts = {f"rank{rank}.log": WATCHDOG.format(rank) for rank in (0, 1, 2)}
    texts["rank3.log"] = TRACEBACK
    found = report(tmp_path, texts)
    path = str(tmp_path / "rank3.log")
    assert found.diagnoses == (
        Diagnosis(
            "rank_crashed", 0.85, "a rank stopped with ValueError in its own program", "exception",
            (EvidenceLine(path, 3, "ValueError: no more data"),), (3,), (), "",
            (f"less +3 {path}",), next=NextStep(Action.RESTART, (), 0.77),
        ),
    )  # fmt: skip
    assert (found.healthy, found.files, found.lines) == (False, 4, 6)


def test_the_name_of_a_log_is_cleaned_and_never_typed_uncleaned(tmp_path: Path) -> None:
    (found,) = report(tmp_path, {"a\n\033]0;x\007.log": TRACEBACK}).diagnoses
    assert (found.evidence[0].file, found.fix.isprintable()) == (str(tmp_path / "a??]0;x?.log"), True)


def test_of_two_failures_in_two_files_the_earlier_one_is_first(tmp_path: Path) -> None:
    late = "[2026-04-22 21:47:29] n1:1:1 [0] NCCL WARN Cuda failure 2 'out of memory'\n"
    early = "[2026-04-22 21:47:20] n2:2:2 [0] NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on 1b\n"
    found = report(tmp_path, {"a.log": late, "b.log": early}).diagnoses
    assert [candidate.cause for candidate in found] == ["gpu_mapping", "gpu_oom"]
    midnight = "[2026-04-23 00:01:00] n2:2:2 [0] NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on 1b\n"
    found = report(tmp_path, {"a.log": late, "b.log": midnight}).diagnoses
    assert [candidate.cause for candidate in found] == ["gpu_oom", "gpu_mapping"]


def test_two_failures_of_which_nothing_says_which_came_first_are_not_sure(tmp_path: Path) -> None:
    oom = "n1:1:1 [0] NCCL WARN Cuda failure 2 'out of memory'\n"
    twice = "n2:2:2 [0] NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on 1b\n"
    found = report(tmp_path, {"a.log": oom, "b.log": twice}).diagnoses
    assert [(candidate.cause, candidate.confidence) for candidate in found[:2]] == [
        ("gpu_oom", 0.75), ("gpu_mapping", 0.75),
    ]  # fmt: skip
    assert best(tmp_path, oom + twice).confidence == 0.95


def test_a_traceback_has_the_time_of_the_line_before_it(tmp_path: Path) -> None:
    one = "2026-01-01 10:00:09 step 1 loss 0.3\n" + TRACEBACK.replace("ValueError", "KeyError")
    other = "2026-01-01 10:00:01 loading\n" + TRACEBACK
    found = report(tmp_path, {"rank0.log": one, "rank1.log": other}).diagnoses
    assert (found[0].ranks, found[0].meaning) == ((1, 0), "a rank stopped with ValueError in its own program")


def test_nccls_process_has_the_rank_that_another_of_its_lines_names(tmp_path: Path) -> None:
    text = (
        "node02:4003:5003 [3] NCCL INFO ncclCommInitRank comm 0x1 rank 11 nranks 16 cudaDev 3 - Init START\n"
        "node02:4003:5003 [3] NCCL INFO ncclCommInitRank comm 0x2 rank 1 nranks 2 cudaDev 3 - Init START\n"
        "node02:4003:5003 [3] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'\n"
    )
    found = best(tmp_path, text)
    assert (found.cause, found.ranks, found.nodes) == ("gpu_oom", (11,), ("node02",))


@pytest.mark.parametrize(
    ("line", "ranks", "nodes"),
    [
        ("mpirun noticed that process rank 3 with PID 7 on node n2 exited on signal 9 (Killed).", (3,), ("n2",)),
        ("srun: error: node03: task 12: Out Of Memory", (12,), ("node03",)),
        ("srun: error: Node failure on node03", (), ("node03",)),
        ("[1,5]<stderr>:MemoryError", (5,), ()),
        ("(Worker pid=7, ip=10.1.0.3) torch.OutOfMemoryError: CUDA out of memory. Tried", (), ("10.1.0.3",)),
        (" 12: torch.OutOfMemoryError: CUDA out of memory.", (12,), ()),
        ("Jan  2 03:04:05 node07 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", (), ("node07",)),
    ],
)
def test_rank_and_node_are_those_that_the_line_names(
    tmp_path: Path, line: str, ranks: tuple[int, ...], nodes: tuple[str, ...]
) -> None:
    found = best(tmp_path, line + "\n")
    assert (found.ranks, found.nodes) == (ranks, nodes)


@pytest.mark.parametrize(
    ("lines", "kind", "ranks", "nodes"),
    [
        ("prterun noticed that process rank 3 with PID 4711 on node gpu02 exited on\nsignal 9 (Killed).",
         "killed", (3,), ("gpu02",)),
        ("prterun noticed that process rank 3 with PID 4711 on node gpu02 exited on\nsignal 11 (Segmentation fault).",
         "segfault", (3,), ("gpu02",)),
        ("=   RANK 3 PID 4711 RUNNING AT gpu02\n=   KILLED BY SIGNAL: 9 (Killed)", "killed", (3,), ("gpu02",)),
        ("=   RANK 6 PID 11 RUNNING AT n1\n=   EXIT CODE: 9\n=\n=   RANK 7 PID 12 RUNNING AT n1\n=   EXIT CODE: 9",
         "killed", (6, 7), ("n1",)),
        ("=   PID 4711 RUNNING AT gpu02\n=   EXIT CODE: 9", "killed", (), ("gpu02",)),
        ("  Process name: [[12345,1],3]\n  Exit code:    137", "killed", (3,), ()),
        ("  Process name: [[12345,1],3]\n  Exit code:    1", "", (3,), ()),
    ],
)  # fmt: skip
def test_rank_and_node_are_those_that_the_launcher_names_in_the_line_above(
    tmp_path: Path, lines: str, kind: str, ranks: tuple[int, ...], nodes: tuple[str, ...]
) -> None:
    found = best(tmp_path, lines + "\n")
    assert (found.cause, found.kind, found.ranks, found.nodes) == ("rank_crashed", kind, ranks, nodes)


@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stderr>:", "[default0]:", "2026-01-02T03:04:05.123Z "])
def test_torchruns_summary_names_a_rank_that_was_killed_whatever_a_launcher_writes_before_its_lines(
    tmp_path: Path, prefix: str
) -> None:
    text = (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-26_10:01:02\n  host      : gpu02\n"
        "  rank      : 10 (local_rank: 2)\n  exitcode  : -9 (pid: 4711)\n  error_file: <N/A>\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 4711\n"
    )
    found = best(tmp_path, "".join(prefix + line for line in text.splitlines(keepends=True)))
    assert (found.cause, found.kind, found.ranks, found.nodes) == ("rank_crashed", "killed", (10,), ("gpu02",))


def test_torchruns_summary_names_the_first_rank_and_its_node(tmp_path: Path) -> None:
    text = (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-02_03:04:05\n  host      : node03\n"
        "  rank      : 12 (local_rank: 4)\n  exitcode  : 1 (pid: 14750)\n"
    )
    found = best(tmp_path, text)
    assert (found.cause, found.ranks, found.nodes) == ("rank_crashed", (12,), ("node03",))
    killed = best(tmp_path, text.replace(": 1 (", ": -9 ("))
    assert (killed.kind, killed.ranks, killed.confidence >= SURE) == ("killed", (12,), True)


def test_what_torchruns_summary_calls_a_rank_need_not_be_a_number(tmp_path: Path) -> None:
    found = best(tmp_path, "Root Cause (first observed failure):\n  host      : node03\n  rank      : N/A\n")
    assert (found.cause, found.ranks, found.nodes) == ("rank_crashed", (), ("node03",))


def test_a_rank_that_waits_is_not_the_one_that_failed(tmp_path: Path) -> None:
    found = best(tmp_path, "".join(WATCHDOG.format(rank) for rank in range(4)))
    assert (found.cause, found.ranks, found.confidence < SURE) == ("slow_rank_timeout", (), True)


def test_the_rank_that_did_not_time_out_is_the_one_to_look_at(tmp_path: Path) -> None:
    start = "n1:77:80 [0] NCCL INFO comm 0x1 rank 0 nranks 8 cudaDev 0 - Init COMPLETE\n"
    log = start + "".join(WATCHDOG.format(rank) for rank in range(8) if rank != 5)
    found = best(tmp_path, log)
    assert (found.cause, found.ranks) == ("slow_rank_timeout", (5,))
    assert found.meaning.endswith("look first at rank 5, which did not time out")
    few = best(tmp_path, start + "".join(WATCHDOG.format(rank) for rank in range(3)))
    assert few.ranks == ()


def test_one_interface_name_that_does_not_fit_all_nodes_is_found(tmp_path: Path) -> None:
    text = (
        "node01:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.1.0.1<0>\n"
        "node02:1:1 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"
    )
    assert best(tmp_path, text).cause == "nic_names_differ"
    assert best(tmp_path, text.partition("\n")[2]).cause == "no_interface"


def test_an_answer_that_is_not_sure_has_candidates_and_what_tells_them_apart(tmp_path: Path) -> None:
    text = "n1:1:1 [0] NCCL WARN NET/IB: Got completion from peer 10.0.1.23<4> with status=12 opcode=0 len=0\n"
    found = report(tmp_path, {"job.log": text})
    assert [(candidate.cause, candidate.confidence) for candidate in found.diagnoses] == [
        ("ib_fabric", 0.5), ("roce_gid", 0.3), ("ib_wrong_hca", 0.3), ("routing", 0.3), ("rank_crashed", 0.3),
    ]  # fmt: skip
    assert found.diagnoses[0].looks == ("ibstat", "show_gids", "ibdev2netdev", "ip route")  # fmt: skip


def test_progress_and_an_end_are_healthy(tmp_path: Path) -> None:
    steps = "".join(f"step {step} loss 0.{step}\n" for step in range(5))
    batches = "INFO:root:Epoch[0] Batch [20] Speed: 26.81 samples/sec accuracy=0.109747\n"
    assert report(tmp_path, {"job.log": batches}).healthy
    assert report(tmp_path, {"job.log": steps}) == LogReport(
        (), healthy=True, summary="no failure: the job makes progress", files=1, lines=5, unread=()
    )
    done = report(tmp_path, {"job.log": f"{steps}# Avg bus bandwidth    : 11.93\n"})
    assert (done.healthy, done.summary) == (True, "no failure: the job finished")


@pytest.mark.parametrize(
    ("line", "cause", "kind"),
    [
        ("NaN detected in loss, aborting", "diverged", "nan"),
        ("step 5 loss nan", "diverged", "nan"),
        ("FATAL: the tape is full", UNKNOWN, ""),
        ("MyOwnError: no more data", "rank_crashed", "exception"),
    ],
)
def test_progress_that_ends_in_trouble_is_not_healthy(tmp_path: Path, line: str, cause: str, kind: str) -> None:
    steps = "".join(f"step {step} loss 0.{step}\n" for step in range(5))
    found = report(tmp_path, {"job.log": f"{steps}{line}\nbye\n"})
    assert not found.healthy
    assert (found.diagnoses[0].cause, found.diagnoses[0].kind, found.diagnoses[0].evidence[0].line) == (cause, kind, 6)


@pytest.mark.parametrize(
    "line",
    [
        "[1,0]<stdout>:Iter #{0}: 172.3 img/sec per GPU",
        "625/625 [==============================] - 12s 19ms/step - loss: 0.{0}",
        "iteration: {0}/1000  consumed samples: 640  total_loss: 9.5",
        "completed step: {0}, seconds: 1.2, Tokens/s/device: 123, loss: 9.1",
        "INFO:tensorflow:loss = 0.3, step = {0}",
        "Avg prompt throughput: {0}.1 tokens/s, Avg generation throughput: 120.4 tokens/s, Running: 8 reqs",
        "[2025-06-26 02:04:09 TP0] Decode batch. #running-req: {0}, #token: 10, gen throughput (token/s): 88.2",
        "Training finished iteration {0} at 2026-01-01 10:00:00.",
    ],
)
def test_the_steps_of_each_framework_are_progress(tmp_path: Path, line: str) -> None:
    found = report(tmp_path, {"job.log": "".join(f"{line.format(step)}\n" for step in range(5))})
    assert (found.healthy, found.summary) == (True, "no failure: the job makes progress")


def test_a_start_alone_is_neither_healthy_nor_a_failure(tmp_path: Path) -> None:
    found = report(tmp_path, {"job.log": "n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 - Init COMPLETE\n"})
    assert (found.diagnoses, found.healthy) == ((), False)
    assert found.summary.startswith("NCCL started; no known failure, and no sign that the job made progress")


def test_a_log_of_another_program_is_said_to_be_one(tmp_path: Path) -> None:
    found = report(tmp_path, {"access.log": '10.1.0.3 - - "GET / HTTP/1.1" 200 12\n' * 5})
    assert (found.diagnoses, found.healthy, found.unread) == ((), False, ())
    assert found.summary.startswith("no line of a program that ncheck knows")
    other = report(tmp_path, {"mail.log": "smtpd: fatal: no such user\nsmtpd: killed by signal\n"})
    assert (other.diagnoses, other.healthy) == ((), False)
    assert report(tmp_path, {"empty.log": ""}).summary == "nothing to read: the log is empty"


def test_an_exception_that_python_ignores_is_no_failure(tmp_path: Path) -> None:
    text = "Exception ignored in: <function Comm.__del__ at 0x7f>\nTraceback (most recent call last):\nKeyError: 'x'\n"
    assert [found.cause for found in report(tmp_path, {"job.log": text}).diagnoses] == [UNKNOWN]
    assert best(tmp_path, f"{text}ValueError: y\n").meaning == "a rank stopped with ValueError in its own program"


def test_an_exception_that_the_job_survives_is_no_failure(tmp_path: Path) -> None:
    steps = "".join(f"step {step} loss 0.{step}\n" for step in range(5))
    assert report(tmp_path, {"job.log": TRACEBACK + steps}).healthy
    assert best(tmp_path, f"{steps}{TRACEBACK}step 6 loss 0.1\n").cause == "rank_crashed"


def test_secrets_and_escapes_are_not_repeated(tmp_path: Path) -> None:
    found = best(tmp_path, "\x1b]0;owned\x07ValueError: HF_TOKEN=hf_abcdefghijklmnopqrstuvwx \x1b[31mis wrong\x1b[0m\n")
    assert "hf_abc" not in found.evidence[0].text
    assert found.evidence[0].text.isprintable()


def test_line_numbers_count_line_feeds_only(tmp_path: Path) -> None:
    bar = "".join(f"\r{done}%|###  | {done}/100" for done in range(50))
    found = best(tmp_path, f"start\r\n{bar}\nok\n\rMemoryError\n")
    assert (found.evidence[0].line, found.kind) == (4, "memory")


def test_a_line_of_ten_megabytes_is_one_line(tmp_path: Path) -> None:
    found = report(tmp_path, {"job.log": f"{'x' * 10_000_000}\nMemoryError\n{'y' * 3_000_000} KeyError: 1\n"})
    assert [(item.line, item.text) for item in found.diagnoses[0].evidence] == [(2, "MemoryError")]
    assert found.lines == 3


def test_a_flood_of_one_line_hides_no_other(tmp_path: Path) -> None:
    closed = "n1:1:1 [0] NCCL WARN socketProgress: Connection closed by remote peer n3"
    flood = "".join(f"{closed}<{port}>\n" for port in range(9000))
    oom = "n3:1:1 [0] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'\n"
    found = best(tmp_path, flood + oom + flood)
    assert (found.cause, found.evidence[0].line) == ("gpu_oom", 9001)


def test_a_last_line_without_an_end_is_a_line(tmp_path: Path) -> None:
    found = report(tmp_path, {"job.log": "start\nMemoryError"})
    assert (found.lines, found.diagnoses[0].evidence[0].line) == (2, 2)
    assert report(tmp_path, {"job.log": "MemoryError"}).lines == 1


# What a log of this one line is read as: the cause, how sure it is, and the command that mends it.
LINES = {
    "torch.AcceleratorError: CUDA error: unspecified launch failure": ("gpu_fault", 0.5, ""),
    "torch.AcceleratorError: CUDA error: the launch timed out and was terminated": ("rank_crashed", 0.5, ""),
    "torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error":
        ("gpu_fault", 0.5, ""),
    "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution":
        ("gpu_fault", 0.95, ""),
    "torch.AcceleratorError: CUDA error: an async error has occured in external entity outside of CUDA":
        ("gpudirect_rdma", 0.5, ""),
    "torch.AcceleratorError: CUDA error: no CUDA-capable device is detected": ("gpu_mapping", 0.85, ""),
    "torch.AcceleratorError: CUDA error: operation not permitted": ("rank_crashed", 0.5, ""),
    "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA_ERROR_CONTAINED: Invalid access": ("gpu_fault", 0.5, ""),
    "UNAVAILABLE: unhealthy tasks: /job:jax_worker/replica:0/task:3": ("rank_crashed", 0.5, ""),
    "Expected 8 threads to join the rendezvous, but only 7 of them arrived on time.": ("slow_rank_timeout", 0.3, ""),
    "n1:7:8 [0] NCCL WARN socketStartConnect: exceeded timeouts (3)": ("firewall", 0.5, ""),
    "n1:7:8 [0] NCCL WARN socketStartConnect: exceeded retries (20000)": ("rank_crashed", 0.5, ""),
    "ctrl_server.cpp:52] Check failed: port() == bound_port (9988 vs. 0) Port 9988 is unavailable":
        ("port_in_use", 0.85, ""),
    "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory":
        ("version_mismatch", 0.85, REGISTER.format(library="libmpi.so.40")),
    "/usr/bin/ld: cannot find -lnuma: No such file or directory":
        ("version_mismatch", 0.95, "sudo apt-get install libnuma-dev || sudo dnf install numactl-devel"),
    "/usr/bin/ld: cannot find -lmycode": ("version_mismatch", 0.95, ""),
    'dali.cc:52] CUDA runtime api error "2" : "out of memory"': ("gpu_oom", 0.95, ""),
    "/opt/ompi/bin/orted: error while loading shared libraries: libnuma.so.1: cannot open shared object file":
        ("version_mismatch", 0.95, "sudo apt-get install libnuma1"),
    "dali: CUDA runtime api error 2: out of memory": ("gpu_oom", 0.95, ""),
    "There are not enough slots available in the system to satisfy the 16":
        ("launcher_mismatch", 0.85,
         "export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"),
    "ValueError: MPI support has not been built.  If this is not expected, reinstall Horovod with HOROVOD_WITH_MPI=1":
        ("launcher_mismatch", 0.95,
         "HOROVOD_WITH_MPI=1 python3 -m pip install --no-cache-dir --force-reinstall horovod"),
    "WARNING: There is at least non-excluded one OpenFabrics device found, but there are no active ports detected":
        ("ib_fabric", 0.3, "export OMPI_MCA_btl=^openib"),
    "train.py: error: unrecognized arguments: --local-rank=0": ("launcher_mismatch", 0.85, ""),
    "train.py: error: unrecognized arguments: --lr=0": ("rank_crashed", 0.85, ""),
    "AttributeError: module 'tensorflow' has no attribute 'ConfigProto'": ("version_mismatch", 0.85, ""),
    "ImportError: cannot import name 'amp' from 'torch.cuda'": ("version_mismatch", 0.85, ""),
    "AttributeError: module 'model' has no attribute 'Net'": ("rank_crashed", 0.85, ""),
    "n1:7:8 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory":
        ("memlock_limit", 0.5, "ulimit -l unlimited"),
    "DistStoreError: Timed out after 301 seconds waiting for clients. 1/2 clients joined.":
        ("rendezvous_misconfig", 0.5, ""),
    "Error: No available node types can fulfill resource request {'CPU': 1.0}": ("launcher_mismatch", 0.5, ""),
    "[n1:4021] Read -1, expected 65536, errno = 1":
        ("ptrace_refused", 0.5, "export OMPI_MCA_btl_vader_single_copy_mechanism=none"),
    "n1:7:8 [0] NCCL WARN ncclP2pImportShareableBuffer: cuMemImportFromShareableHandle failed : error 400":
        ("fabric_manager", 0.85, "sudo systemctl restart nvidia-imex"),
    "n1:7:8 [0] transport/p2p.cc:272 NCCL WARN Cuda failure 400 'invalid resource handle'":
        ("fabric_manager", 0.5, "sudo systemctl restart nvidia-imex"),
    "[c10d] The client socket has failed to connect to [1207]:29500 (errno: 22 - Invalid argument)":
        ("numeric_hostname", 0.85, ""),
    "n1:7:8 [0] NCCL WARN Connect to 0.0.4.183<4021> failed : Invalid argument": ("numeric_hostname", 0.85, ""),
    "ssh: connect to host 1207 port 22: Invalid argument": ("numeric_hostname", 0.85, ""),
    "Warning  FailedScheduling  0/4 nodes are available: 4 Insufficient nvidia.com/gpu.":
        ("pod_unschedulable", 0.85, ""),
    "docker: OCI runtime create failed: stderr: nvidia-container-cli: initialization error: driver error":
        ("container_start", 0.85, ""),
    "[n1:77:0] ib_iface.c:480 UCX ERROR There is no valid pkey with full membership on mlx5_0:1":
        ("ib_partition", 0.85, ""),
    "mlx5_0/ports/1/hw_counters/local_ack_timeout_err:2705": ("roce_congestion", 0.5, ""),
    "RuntimeError: can't start new thread": ("process_limit", 0.85, "ulimit -u unlimited"),
    "BlockingIOError: [Errno 11] Resource temporarily unavailable": ("process_limit", 0.85, "ulimit -u unlimited"),
}  # fmt: skip


def test_each_of_these_lines_has_its_own_cause_and_is_no_surer_than_it_may_be(tmp_path: Path) -> None:
    found = {line: best(tmp_path, f"{line}\n") for line in LINES}
    assert {line: (one.cause, one.confidence, one.fix) for line, one in found.items()} == LINES


def test_a_second_clue_makes_the_limit_on_locked_memory_sure(tmp_path: Path) -> None:
    line = "n1:7:8 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
    limit = "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.\n"
    assert (best(tmp_path, line + limit).cause, best(tmp_path, line + limit).confidence) == ("memlock_limit", 0.85)


def test_an_exit_with_code_0_is_no_crash(tmp_path: Path) -> None:
    assert report(tmp_path, {"job.log": "epoch 3\nSystemExit: 0\n"}).diagnoses == ()
    assert best(tmp_path, "epoch 3\nSystemExit: 3\n").cause == "rank_crashed"


def test_what_ncheck_itself_printed_is_no_evidence(tmp_path: Path) -> None:
    unresolved = "ssh: Could not resolve hostname gpu03: Name or service not known\n"
    printed = (
        "  ncheck 0.2.0 · 4 nodes: gpu[01-04] · 2026-01-02 03:04:05+00:00\n"
        "x error NC131 hostname-unresolvable  gpu03\n"
        f"  {unresolved}  look here: getent hosts gpu03\nexit code 1: NC131\n"
        "ncheck: warning: gpu03: Name or service not known; the job goes on\n"
    )
    assert report(tmp_path, {"job.log": printed}).diagnoses == ()
    assert best(tmp_path, f"{printed}{unresolved}").evidence[0].line == 7
    assert best(tmp_path, "command terminated\nexit code 137\n").kind == "killed"


def test_tcp_for_want_of_libibverbs_is_a_note_and_no_fault(tmp_path: Path) -> None:
    tcp = "n1:7:8 [0] NCCL INFO Failed to open libibverbs.so[.1]\nn1:7:8 [0] NCCL INFO Using network Socket\n"
    found = report(tmp_path, {"job.log": f"{tcp}step 1 loss 0.2\n"})
    assert (found.diagnoses, found.healthy, len(found.notes)) == ((), True, 1)
    assert "ibverbs_missing" in found.notes[0]
    for other in (tcp.replace("Failed", "NCCL_IB_DISABLE set by environment to 1. Failed"), "step 1 loss 0.2\n"):
        assert report(tmp_path, {"job.log": other}).notes == ()


VERSION = "n1:7:8 [0] NCCL INFO NCCL version 2.21.5+cuda12.4"


def test_a_variable_with_a_slip_in_its_name_is_a_note(tmp_path: Path) -> None:
    launch = "+ mpirun -np 16 -x NCCL_IB_HCAS=mlx5_0 -x NCCL_DEBUG=INFO python train.py"
    ucx = "[n1:7:0] parser.c:2033 UCX  WARN  unused environment variable: UCX_NET_DEVICE (maybe: UCX_NET_DEVICES?)"
    assert report(tmp_path, {"job.log": f"{launch}\n{VERSION}\n{ucx}\n"}).notes == (
        (
            "without effect: NCCL_IB_HCAS: NCCL 2.21.5 has no such variable, but NCCL_IB_HCA; UCX_NET_DEVICE:"
            " UCX_NET_DEVICES is meant"
        ),
    )


@pytest.mark.parametrize(("line", "note"), [
    ("mpirun -np 16 --mca btl_tcp_if_inculde eth0 python t.py", "btl_tcp_if_inculde: btl_tcp_if_include is meant"),
    ('+ horovodrun -np 8 --mpi-args="-mca oob_tcp_if_includes eth0" python t.py',
     "oob_tcp_if_includes: oob_tcp_if_include is meant"),
    ("+ mpirun -x UCX_NET_DEVICE=mlx5_0:1 python t.py",
     "UCX_NET_DEVICE: UCX has no such variable, but UCX_NET_DEVICES"),
    ("export GLOO_SOCKET_IFNAMES=eth0", "GLOO_SOCKET_IFNAMES: gloo has no such variable, but GLOO_SOCKET_IFNAME"),
    ("+ mpiexec.hydra -genv GLOO_SOCKET_IFNAMES eth0 python t.py",
     "GLOO_SOCKET_IFNAMES: gloo has no such variable, but GLOO_SOCKET_IFNAME"),
])  # fmt: skip
def test_a_slip_on_a_launch_line_is_a_note_where_nothing_else_says_it(tmp_path: Path, line: str, note: str) -> None:
    assert report(tmp_path, {"job.log": f"{line}\nstep 1 loss 0.2\n"}).notes == (f"without effect: {note}",)


@pytest.mark.skipif(shutil.which("ompi_info") is None, reason="Open MPI is not installed")
def test_no_parameter_of_this_open_mpi_is_a_slip() -> None:
    listed = subprocess.run(
        ["ompi_info", "--param", "all", "all", "--level", "9", "--parsable"], capture_output=True, text=True, check=True
    ).stdout
    names = set(re.findall(r":param:(\w+):", listed))
    assert len(names) > 500
    assert names_note(f"mpirun --mca {name} 1" for name in names) == ""


@pytest.mark.parametrize("lines", [
    ("mpirun -x NCCL_IB_HCAS=mlx5_0 python train.py",),  # the version of NCCL is not known
    ("mpirun -x NCCL_IB_HCA=mlx5_0 -x NCCL_OUR_OWN=1 --env-NCCL_DEBUGS=1 python train.py", VERSION),
    ("mpirun -x NCCL_IB_HCAS=mlx5_0 python train.py", VERSION.replace("2.21.5", "2.99.1")),
    ("UCX  WARN  unused environment variable: UCX_HOME", VERSION),
    ("mpirun --mca btl_tcp_if_include eth0 -mca pml ob1 --mca btl ^openib --mca mtl_ofi_av table python t.py", VERSION),
    ("mpirun -x UCX_TLS=rc -x UCX_NET_DEVICES -x UCX_HOME=/opt/ucx python train.py --mca-like btl_tcp_if_inculde",),
])  # fmt: skip
def test_a_name_that_something_may_read_is_no_note(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert report(tmp_path, {"job.log": "\n".join(lines)}).notes == ()
