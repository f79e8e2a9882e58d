"""Logs of programs that nobody here wrote: what their forms say, in the real form of each program."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from ncheck.triage.causes import UNKNOWN
from ncheck.triage.log_clues import scanned, trouble_at_the_end
from ncheck.triage.logs import LogReport, examine_logs


def report(folder: Path, *lines: str) -> LogReport:
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return examine_logs([str(path)], io.BytesIO())


def first(folder: Path, *lines: str) -> str:
    found = report(folder, *lines).diagnoses
    return found[0].cause if found else ""


# Lines whose form alone says that they report an error: the words are of no program that is known.
BY_FORM = (
    "E0605 17:54:16.878770 178707 frobnicator.cpp:198] Could not frob the widget 0x7f56e6600000",
    "F20250605 17:54:16.878770 178707 frobnicator.cpp:198] Widget table overflow",
    "E0704 12:00:00.000000       1 reflector.go:127] pkg/mod: cannot list the widgets",
    "[rank3]:[E605 17:54:16.878770124 Frob.cpp:616] [Rank 3] the widget did not answer",
    "[ERROR] FROB(2717288,python3):2025-07-23-03:47:57.070.463 [frob.cc:100] [2717288][Frob][Listen] widget fail.",
    "[2025-07-23 03:47:57] [error] [frob.c:12] no widget for slot 4",
    "2025:08:14-14:34:47:(19220) |FROB_ERROR| comm_selector.cpp:57 create: condition frob_data was not met",
    "[1744331142.028115] [gpu51:2802608:3]      frob.c:1903 UCX  ERROR   no widget for rc_mlx5/mlx5_2:1",
    "frobfabric:85:1747438790::core:core:frob():1392<critical> frob: no widget",
    "(EngineCore_0 pid=19220) ERROR 08-14 14:34:47 [core.py:684] EngineCore could not frob.",
    "2025-07-23 03:47:57,070 - trainer.frob - ERROR - no widget for slot 4",
    "2025-07-23 03:47:57.070 | CRITICAL | frob.main:start:12 - no widget for slot 4",
    "ERROR:frob.agent:no widget for slot 4",
    'time="2025-07-23T03:47:57Z" level=error msg="no widget for slot 4"',
    '{"level":"fatal","ts":1753242477.07,"msg":"no widget for slot 4"}',
    "EI0077: 2024-08-05-18:15:21.270.506 The widget did not answer. Reason: unknown",
    "[ERROR] 2024-08-05-18:15:21 (PID:12, Device:0, RankID:-1) ERR02200 FROB call failed",
    "n1:7:8 [0] transport/frob.cc:12 NCCL WARN Frob: no widget for peer 3",
    "CRITICAL ** frob: no widget",
    "  Warning  FailedFrob  3m (x12 over 40m)  kubelet  the widget of volume frob-0 is not ready",
)


@pytest.mark.parametrize("line", BY_FORM, ids=[line[:50] for line in BY_FORM])
@pytest.mark.parametrize("around", [(), ("hello", "world")], ids=["alone", "among other lines"])
def test_a_line_in_the_form_of_an_error_is_an_error_whatever_its_program_is(
    tmp_path: Path, line: str, around: tuple[str, ...]
) -> None:
    (found,) = report(tmp_path, *around, line, *around).diagnoses
    assert (found.cause, found.confidence, [one.line for one in found.evidence]) == (UNKNOWN, 0.3, [1 + len(around)])
    steps = ("step 1 loss 0.5", "step 2 loss 0.4")
    assert report(tmp_path, line, *steps).healthy


# What only looks like it: counts of no errors, names of settings, losses that are called errors, retries that went
# well, and lines that these programs print on every healthy start.
QUIET = (
    "validating:  57%|#### | 57/100 [00:10<00:08, error: 0]",
    "Epoch 3 | train error 0.123 | test error 0.456",
    "epoch=3 error=0.0123 val_error=0.0456",
    "errors=0 warnings=0",
    "ERROR: 0, WARNING: 0",
    "ERRORS: 0",
    "0 ERROR(s) found",
    "no ERROR found",
    "mean squared error: 0.0123",
    "Mean Absolute Error = 3.21",
    "export NCCL_ASYNC_ERROR_HANDLING=1",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING: 1",
    "export NCCL_DEBUG=ERROR",
    "LOGLEVEL=ERROR",
    "log level: ERROR",
    "--log-level ERROR --deepspeed",
    "log_level='ERROR'",
    "+ set -o errexit",
    "INFO attempt 2 of 5 succeeded after an ERROR",
    "2025-07-23 03:47:57,070 - trainer - INFO - the request succeeded after 2 retries (last error: 503)",
    "E0000 00:00:1731326400.123456  77 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register",
    "2024-01-01 12:00:00.000001: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cu",
    "2024-01-01 12:00:00.000001: E external/local_xla/xla/stream_executor/cuda/cuda_blas.cc:15] Unable to register cu",
    "I0605 17:54:16.878770 178707 transfer_engine.cpp:86] Transfer Engine uses address 10.1.0.1 and port 16490",
    "W0605 17:54:16.878770 178707 worker_pool.cpp:86] retry 1 of 8 went well",
    "[INFO] HCCL(1595259,alltoall_test):2026-01-06-15:38:29.881 [externalinput.cc:598] HCCL_EXEC_TIMEOUT set",
    "2025:08:14-14:34:47:(19220) |CCL_WARN| value of CCL_ATL_TRANSPORT changed to be ofi (default:mpi)",
    "libfabric:85:1747438790::core:core:fi_getinfo_():1392<info> fi_getinfo: provider shm returned -61",
    "n1:7:8 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
)  # fmt: skip


@pytest.mark.parametrize("line", QUIET, ids=[line[:60] for line in QUIET])
def test_a_line_that_only_looks_like_an_error_is_none(tmp_path: Path, line: str) -> None:
    assert trouble_at_the_end(scanned([line])) == ""
    assert [found.cause for found in report(tmp_path, line).diagnoses] == []
    assert trouble_at_the_end(scanned(["step 1 loss 0.5", "step 2 loss 0.4", line])) == ""


HCCL = "[ERROR] HCCL(27172,python3):2025-07-23-03:47:57.070.463 "
CCL = "2025:08:14-14:34:47:(19220) |CCL_ERROR| "
UCX = "[1744331142.028115] [gpu51:2802608:3]      "
EVENT = "n1:7:8 [0] transport/net_ib.cc:80 NCCL WARN NET/IB : mlx5_0:1 Got async event : "


def log(*lines: str) -> tuple[str, ...]:
    return lines


# What a log says in the words of its library, with how sure it is: 0.3 for what only a consequence shows.
LOGS: dict[str, tuple[str, float, tuple[str, ...]]] = {
    # HCCL, by its words and by its codes
    "HCCL's port": ("port_in_use", 0.95, log(
        f"{HCCL}[hccl_socket.cc:100] [1][HcclSocket][Listen] socket type[1], listen on ip[10.1.0.1] and specific"
        " port[16666] fail. Please check the port status and whether the port is been using by other process.",
        f"{HCCL}[hccl_socket_manager.cc:778] [1][Wait][LinkEstablish]wait socket establish timeout, role[1]",
        "RuntimeError: createHCCLComm:build/CMakeFiles/ProcessGroupHCCL.cpp:12 HCCL function error")),
    "HCCL's code of a port": ("port_in_use", 0.95, log("EI0019: 2025-10-02-18:15:21.270 Failed to bind the port.")),
    "HCCP": ("port_in_use", 0.85, log("EJ0001: 2025-10-02-18:15:21 Failed to initialize the HCCP process.")),
    "HCCL waits for a peer": ("slow_rank_timeout", 0.3, log(
        "EI0006: 2024-08-05-18:15:21.270.506 Getting socket times out. Reason: Remote Rank did not send the data")),
    "HCCL waits in a collective": ("slow_rank_timeout", 0.3, log(
        f"{HCCL}[task_exception_handler.cc:908] [1][TaskExecStage][Timeout][Host]Task run failed, base information")),
    "HCCL's parameters": ("collective_mismatch", 0.85, log(
        f"{HCCL}[transport.cc:9] [1][InitChannelStage][ParameterConflict]CMD information dataType check fail.")),
    "HCCL's rank table": ("rendezvous_misconfig", 0.85, log(
        f"{HCCL}[topoinfo_ranktable.cc:727][1][InitGroupStage][RanktableCheck]super_device_id[] is invalid")),
    "HCCL's root waits": ("rank_missing", 0.5, log(
        f"{HCCL}[topoinfo_exchange_server.cc:314] [5590][Get][Connection]topo exchange server get socket timeout!")),
    "HCCL's versions": ("version_mismatch", 0.95, log("EI0008: 2025-10-02-18:15:21 The HCCL versions differ.")),
    "HCCL's network": ("ib_fabric", 0.85, log("EI0013: 2025-10-02-18:15:21 An error CQE occurred. Remote rank: 3")),
    "HCCL's copies": ("gpu_fault", 0.85, log("EI0012: 2025-10-02-18:15:21 SDMA memory copy task exception occurred.")),
    "an NPU's memory": ("gpu_oom", 0.95, log("EL0004: 2025-10-02-18:15:21 Failed to allocate memory.")),
    # oneCCL and Level Zero
    "oneCCL's devices": ("container_isolation", 0.85, log(
        "2026:08:27-10:12:31:(   61) |CCL_WARN| pidfd is not supported, fallbacks to drmfd exchange mode",
        "RuntimeError: oneCCL: ze_fd_manager.cpp:143 init_device_fds: EXCEPTION: opendir failed: could not open"
        " device directory")),
    "oneCCL's local ranks": ("launcher_mismatch", 0.5, log(
        f"{CCL}global.cpp:150 getenv_local_coord: condition ze_ipc_exchange == sockets failed to get local_idx/count"
        " from ATL, set CCL_ZE_IPC_EXCHANGE=sockets explicitly")),
    "oneCCL without a GPU": ("gpu_mapping", 0.5, log(
        f"{CCL}comm_selector.cpp:57 create_comm_impl: condition ccl::global_data::get().ze_data failed",
        "ze_data was not initialized")),
    "oneCCL's store": ("rendezvous_misconfig", 0.5, log(
        f"{CCL}pmi_resizable_simple_internal.cpp kvs_get_value: KVS get error: timeout",
        f"{CCL}atl_mpi_comm.cpp:94 init_transport: comm_create error")),
    "Level Zero's device": ("gpu_fault", 0.95, log("RuntimeError: level_zero backend failed with error: 20"
                                                " (UR_RESULT_ERROR_DEVICE_LOST)")),
    "Level Zero's memory": ("gpu_oom", 0.95, log("Error code: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY")),
    "an Intel GPU that was reset": ("gpu_fault", 0.85, log(
        "kernel: i915 0000:4d:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python3 [4021]")),
    # Mooncake
    "Mooncake registers GPU memory": ("gpudirect_rdma", 0.85, log(
        "E0605 17:54:16.878770 178707 rdma_context.cpp:198] Failed to register memory 0x7f56e6600000: Bad address [14]",
        "RuntimeError: mooncake.engine register_memory failed")),
    "Mooncake registers too much": ("memlock_limit", 0.5, log(
        "E0605 17:54:16.878770 178707 rdma_context.cpp:198] Failed to register memory 0x7f: Cannot allocate memory"
        " [12]")),
    "Mooncake's peer does not answer": ("ib_fabric", 0.5, log(
        "E0605 17:54:16.878770 178707 rdma_endpoint.cpp:646] Failed to modify QP to RTR, check mtu, gid, peer lid, peer"
        " qp num: Connection timed out [110]")),
    "Mooncake's GID": ("roce_gid", 0.85, log(
        "E0605 17:54:16.878770 178707 rdma_endpoint.cpp:646] Failed to modify QP to RTR, check mtu, gid, peer lid, peer"
        " qp num: Invalid argument [22]")),
    "Mooncake's NIC there": ("ib_wrong_hca", 0.85, log(
        "E0605 17:54:16.878770 1787 rdma_endpoint.cpp:219] Peer nic not found in that server: 10.1.0.9:16650@mlx5_5")),
    "Mooncake's transfer": ("ib_fabric", 0.5, log(
        "E0605 17:54:16.878770 1787 worker_pool.cpp:408] Worker: Process failed for slice (opcode: 0), local_nic:"
        " mlx5_0, peer_nic: n2@mlx5_4: transport retry counter exceeded")),
    "Mooncake's metadata": ("rendezvous_misconfig", 0.5, log(
        "E0605 17:54:16.878770 1787 transfer_metadata.cpp:412] Failed to retrieve segment descriptor, name 10.1.0.9")),
    # NIXL and UCX
    "NIXL registers GPU memory": ("gpudirect_rdma", 0.5, log(
        f"{UCX}ucp_context.c:1268 UCX  WARN  transports 'cuda_ipc','cuda_copy' are not available, please use one or"
        " more of: mm, posix, self, shm, sm, sysv, tcp",
        "    self.agent.registerMem(reg_descs, handle_list)",
        "nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND")),
    "NIXL's peer": ("rank_crashed", 0.3, log("E0717 07:30:06.719567  994396 nixl_agent.cpp:359] getXferStatus: status"
                                          " NIXL_ERR_REMOTE_DISCONNECT")),
    "UCX's completion": ("ib_fabric", 0.5, log(f"{UCX}ib_mlx5_log.c:171 UCX  ERROR Transport retry count exceeded on"
                                            " mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)")),
    # libfabric
    "libfabric's devices": ("net_plugin", 0.5, log(
        "libfabric:85:1747438790::core:core:fi_getinfo_():1392<warn> fi_getinfo: provider efa output empty list")),
    "libfabric's queue": ("ib_fabric", 0.5, log(
        "libfabric:85:1747438790::efa:cq:efa_rdm_cq_poll():12<warn> err: 9, message: Unresponsive receiver (reachable"
        " by EFA device but handshake failed)")),
    # the events of verbs
    **{f"event: {words}": (cause, confidence, log(f"{EVENT}{words}")) for words, cause, confidence in (
        ("CQ error", "ib_fabric", 0.85),
        ("local work queue catastrophic error", "ib_fabric", 0.85),
        ("invalid request local work queue error", "ib_fabric", 0.85),
        ("local access violation work queue error", "mtu_mismatch", 0.5),
        ("path migration request error", "ib_fabric", 0.85),
        ("local catastrophic error", "ib_fabric", 0.85),
        ("port error", "ib_fabric", 0.85),
        ("SRQ catastrophic error", "ib_fabric", 0.85),
        ("WQ fatal", "ib_fabric", 0.85),
        ("device fatal", "ib_fabric", 0.85),
        ("LID change", "ib_fabric", 0.5),
        ("SM change", "ib_fabric", 0.5),
        ("client reregistration", "ib_fabric", 0.5),
        ("P_Key change", "ib_partition", 0.5),
        ("GID table change", "roce_gid", 0.5),
    )},
    "NCCL's newer words for an event": ("ib_fabric", 0.85, log(
        "n1:7:8 [0] transport/net_ib.cc:90 NCCL WARN NET/IB : mlx5_0:1 async fatal event: local catastrophic error(8)"
    )),
    "UCX's words for an event": ("ib_fabric", 0.85, log(
        f"{UCX}ib_device.c:480  UCX  ERROR IB Async event on mlx5_0: port error on port 1")),
    "Mooncake's words for an event": ("ib_fabric", 0.85, log(
        "W0605 17:54:16.878770 1787 worker_pool.cpp:512] Worker: Received context async event port error for context"
        " mlx5_0")),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_each_library_is_read_in_its_own_words(tmp_path: Path, name: str) -> None:
    cause, confidence, lines = LOGS[name]
    found = report(tmp_path, *lines).diagnoses[0]
    assert (found.cause, found.confidence) == (cause, confidence)


# What the same libraries print in jobs that are well.
WELL = (
    *(f"{EVENT}{words}" for words in ("communication established", "send queue drained", "path migrated",
                                      "port active", "SRQ limit reached", "last WQE reached")),
    "I0605 17:54:16.878770 1787 rdma_context.cpp:125] RDMA device: mlx5_0, LID: 0, GID: (GID_Index 3) 00:00:ff:ff",
    "2025:08:14-14:34:47:(19220) |CCL_WARN| could not get local_idx/count from environment variables",
    "2026:08:27-10:12:31:(   61) |CCL_WARN| pidfd is not supported, fallbacks to drmfd exchange mode",
    f"{UCX}ucp_context.c:1268 UCX  WARN  transports 'cuda_ipc','cuda_copy' are not available, please use one or more",
    "[INFO] HCCL(1595259,t):2026-01-06-15:38:29 [externalinput.cc:598] [HCCL_ENV] HCCL_EXEC_TIMEOUT set to [1836]s",
    "Backend UCX was instantiated",
    "NIXL is available",
)  # fmt: skip


@pytest.mark.parametrize("line", WELL, ids=[line[:60] for line in WELL])
def test_lines_of_these_libraries_in_a_job_that_is_well_are_no_failure(tmp_path: Path, line: str) -> None:
    steps = ("step 1 loss 0.5", "step 2 loss 0.4", "step 3 loss 0.3")
    assert report(tmp_path, line).diagnoses == report(tmp_path, *steps, line).diagnoses == ()


# Each signal in the form of each launcher: the cause, how sure it is, and what kind of end it was.
HANGUP, CTRL_C = ("job_ended", 0.85, "hangup"), ("job_ended", 0.5, "cancelled")
ABORTED, TERMINATED = ("rank_crashed", 0.3, "abort"), ("job_ended", 0.3, "cancelled")
KILLED, SEGFAULT = ("rank_crashed", 0.85, "killed"), ("rank_crashed", 0.85, "segfault")
SIGNALS = {
    1: (HANGUP, "Hangup", "SIGHUP"), 2: (CTRL_C, "Interrupt", "SIGINT"), 6: (ABORTED, "Aborted", "SIGABRT"),
    9: (KILLED, "Killed", "SIGKILL"), 11: (SEGFAULT, "Segmentation fault", "SIGSEGV"),
    15: (TERMINATED, "Terminated", "SIGTERM"),
}  # fmt: skip
ENDS = (
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -{number}) local_rank: 0 (pid: 77)",
    "[2026-01-02 03:04:05,678] [ERROR] [launch.py:321:sigkill_handler] ['t.py'] exits with return code = -{number}",
    "srun: error: node03: task 12: {words}",
    "srun: error: node03: tasks 8-15: {words}",
    "mpirun noticed that process rank 3 with PID 4021 on node n2 exited on signal {number} ({words}).",
    "prterun noticed that process rank 3 with PID 4021 on node n2 exited on signal {number} ({words}).",
    "=   KILLED BY SIGNAL: {number} ({words})",
    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {words} (signal {number})",
    "./run.sh: line 28:  8156 {words}                  python3 train.py",
    "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal {name}",
    "      Exit Code:    {code}",
    "command terminated with exit code {code}",
    "srun: error: node03: task 12: Exited with exit code {code}",
)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("form", ENDS, ids=[form[:40] for form in ENDS])
def test_each_signal_is_read_in_each_launchers_form(tmp_path: Path, form: str, number: int) -> None:
    end, words, name = SIGNALS[number]
    line = form.format(number=number, words=words, name=name, code=128 + number)
    found = report(tmp_path, "step 1 loss 0.5", line).diagnoses[0]
    assert (found.cause, found.confidence, found.kind) == end


SETSID = (
    "start it outside of the terminal's session, with setsid before the same command: setsid COMMAND > job.log 2>&1"
    " < /dev/null &"
)
NOHUP = "; torchrun handles this signal itself, so that nohup alone does not keep it away"


@pytest.mark.parametrize(
    ("line", "more", "do"),
    [
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 1", NOHUP, SETSID),
        ("W1030 17:53:58.738 1404 api.py:704] Received Signals.SIGHUP death signal, shutting down", NOHUP, SETSID),
        ("prterun noticed that process rank 3 with PID 4021 on node n2 exited on signal 1 (Hangup).", "", SETSID),
        ("srun: error: node03: task 12: Hangup", "", "submit the job by sbatch, which needs no terminal"),
    ],
)  # fmt: skip
def test_a_job_that_ended_with_its_terminal_is_to_be_started_without_one(
    tmp_path: Path, line: str, more: str, do: str
) -> None:
    found = report(tmp_path, "step 1 loss 0.5", line).diagnoses[0]
    meaning = "the terminal or ssh session in which the job was started was closed (SIGHUP)"
    assert (found.kind, found.meaning, found.do, found.fix) == ("hangup", meaning + more, do, "")


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        (("torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 1",), HANGUP),
        (("WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers",
          "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 44 closing signal SIGHUP"), HANGUP),
        (("W1030 17:53:58.738 1404 api.py:704] Received Signals.SIGHUP death signal, shutting down workers",), HANGUP),
        (("torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 2",), CTRL_C),
        (("SignalException: Process 7 got signal: 15",), TERMINATED),
        (("Received Signals.SIGTERM death signal, shutting down workers",), TERMINATED),
        (("srun: interrupt (one more within 1 sec to abort)", "srun: sending Ctrl-C to StepId=812.0"), CTRL_C),
        (("^Cmpirun: killing job...",), CTRL_C),
        (("KeyboardInterrupt",), ("job_ended", 0.3, "cancelled")),
        (("mpirun noticed that process rank 0 with PID 7 on node n1 exited on signal 13 (Broken pipe).",),
         ("rank_crashed", 0.3, "")),
        (("mpirun noticed that process rank 0 with PID 7 on node n1 exited on signal 24 (CPU time limit exceeded).",),
         ("job_ended", 0.85, "time-limit")),
        (("Received Signals.SIGUSR1 death signal, shutting down workers",), ("job_ended", 0.5, "cancelled")),
        # what torchrun sends to the others after one has failed is no cause
        (("W1204 07:19:47.027 1846 torch/distributed/x/api.py:897] Sending process 18562 closing signal SIGTERM",
          "ValueError: no more data"), ("rank_crashed", 0.85, "exception")),
        (("srun: error: n1: tasks 0-7: Terminated", "srun: error: n3: task 12: Segmentation fault"), SEGFAULT),
    ],
)  # fmt: skip
def test_who_ended_a_job_is_told_from_those_that_were_ended_with_it(
    tmp_path: Path, lines: tuple[str, ...], end: tuple[str, float, str]
) -> None:
    found = report(tmp_path, "step 1 loss 0.5", *lines).diagnoses[0]
    assert (found.cause, found.confidence, found.kind) == end


MPIRUN = "mpirun -np 4 -H 10.240.209.120:2,10.240.208.206:2 python train.py"
REFUSED = "failed: No route to host (113)"
EVENTS = "Warning  {reason}  3m    kubelet  {words}"

# Addresses that are none of those the job was given.
ADDRESSES: dict[str, tuple[str, float, tuple[str, ...]]] = {
    "Open MPI dials a tunnel": ("wrong_nic", 0.85, log(
        MPIRUN, f"[n4][[9281,1],1][btl_tcp_endpoint.c:796:complete_connect] connect() to 192.168.118.0 {REFUSED}")),
    "Open MPI's daemon has docker's address": ("container_isolation", 0.85, log(
        "2844262400.0;tcp://172.17.0.2:56711",
        "[1d26d805fd33:10032] [[43400,0],2] tcp_peer_send_blocking: send() to socket 9 failed: Broken pipe (32)",
        "ORTE was unable to reliably start one or more daemons.")),
    "NCCL dials another network than that of its bootstrap": ("wrong_nic", 0.85, log(
        "n1:7:7 [0] NCCL INFO Bootstrap : Using eth0:10.1.0.1<0>", "n2:7:7 [0] NCCL INFO Bootstrap : Using"
        " eth0:10.1.0.2<0>", "n1:7:8 [0] NCCL WARN socketStartConnect: Connect to 192.168.30.2<40113> failed : No"
        " route to host")),
    "torch's master is of another network than the nodes": ("wrong_nic", 0.85, log(
        "torchrun --nnodes 2 --node_rank 1 --master_addr 10.1.0.1 --master_port 29500 train.py",
        "[rank8]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:144] timed out connecting: SO_ERROR:"
        " No route to host, remote=[192.168.49.1]:14215")),
    "gloo dials docker's bridge": ("wrong_nic", 0.85, log(
        "export MASTER_ADDR=10.1.0.1", "RuntimeError: [pair.cc:144] timed out connecting: SO_ERROR: Connection"
        " refused, remote=[172.18.0.3]:14215")),
    "Horovod's hosts": ("wrong_nic", 0.85, log(
        "horovodrun -np 16 -H 10.94.1.142:8,10.94.1.165:8 python train.py", "[n1][[1,1],5][btl_tcp_endpoint.c:796]"
        " connect() to 100.64.3.7 failed: Connection timed out (110)")),
    "MPICH's hosts": ("wrong_nic", 0.85, log(
        "mpiexec -hosts 10.1.0.1,10.1.0.2 -n 2 ./a.out", "[1700000000.1] [n1:77:0] sock.c:268 UCX  ERROR"
        " connect(fd=61, dest_addr=192.168.200.9:37423) failed: Connection refused")),
}  # fmt: skip


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_is_compared_with_those_the_job_was_given(tmp_path: Path, name: str) -> None:
    cause, confidence, lines = ADDRESSES[name]
    found = report(tmp_path, *lines).diagnoses[0]
    assert (found.cause, found.confidence) == (cause, confidence)


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        # one of the addresses that were given, or of their network
        ((MPIRUN, f"[n4][[9281,1],1][btl_tcp_endpoint.c:796:x] connect() to 10.240.208.206 {REFUSED}"), "firewall"),
        ((MPIRUN, f"[n4][[9281,1],1][btl_tcp_endpoint.c:796:x] connect() to 10.240.7.7 {REFUSED}"), "firewall"),
        # the hosts are known by name alone: nothing is compared
        (("mpirun -np 4 -H n1:2,n2:2 ./a.out", f"[n4][[9281,1],1][btl.c:796:x] connect() to 192.168.118.0 {REFUSED}"),
         "firewall"),
        # a download is no connection of the job
        ((MPIRUN, "curl: (7) Failed to connect to 151.101.0.133 port 443: No route to host"), "firewall"),
        # both networks were given
        (("export MASTER_ADDR=192.168.118.9", MPIRUN,
          f"[n4][[9281,1],1][btl_tcp_endpoint.c:796:x] connect() to 192.168.118.0 {REFUSED}"), "firewall"),
    ],
)  # fmt: skip
def test_an_address_that_the_job_was_given_is_none_of_another_network(
    tmp_path: Path, lines: tuple[str, ...], cause: str
) -> None:
    assert first(tmp_path, *lines) == cause


def test_addresses_in_a_job_that_is_well_are_no_fault(tmp_path: Path) -> None:
    lines = log(MPIRUN, "2844262400.0;tcp://172.17.0.2,10.240.209.120:56711", "n1:7:7 [0] NCCL INFO Bootstrap : Using"
             " eth0:10.240.209.120<0>", "n1:7:8 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0",
             "step 1 loss 0.5", "step 2 loss 0.4")  # fmt: skip
    assert report(tmp_path, *lines).healthy
    assert report(tmp_path, *lines[:-2]).diagnoses == ()


POD_GROUP = "      message: '{}/{} tasks in gang unschedulable: pod group is not ready, 1 Running,"
PLACE = "Error: No available node types can fulfill resource request "

# Where ranks find no place: Ray's schedulers, Kubernetes' tables, events and conditions, kubelet's refusals.
PLACEMENT: dict[str, tuple[str, float, tuple[str, ...]]] = {
    "an event of kubelet": ("pod_unschedulable", 0.85, log(EVENTS.format(
        reason="TopologyAffinityError", words="Resources cannot be allocated with Topology locality"))),
    "another event of kubelet": ("pod_unschedulable", 0.85, log(EVENTS.format(
        reason="UnexpectedAdmissionError", words="Allocate failed due to requested number of devices unavailable for"
        " nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"))),
    "a table with a refusal": ("pod_unschedulable", 0.85, log(
        "NAME           READY   STATUS                  RESTARTS   AGE",
        "trainer-0      0/1     OutOfnvidia.com/gpu     0          3m")),
    "a table with a pod that waits": ("pod_unschedulable", 0.5, log(
        "NAME                  READY   STATUS    RESTARTS   AGE     IP            NODE",
        "hvd-launcher          0/1     Pending   0          14m     <none>        <none>",
        "hvd-worker-0          1/1     Running   0          14m     10.42.1.172   node-212",
        "hvd-worker-1          0/1     Pending   0          14m     <none>        <none>")),
    "a table with an image": ("container_start", 0.85, log(
        "NAME        READY   STATUS             RESTARTS   AGE", "worker-0    0/1     ErrImagePull   0   2m")),
    "a table with a pod that was killed": ("rank_crashed", 0.95, log(
        "NAME        READY   STATUS      RESTARTS   AGE", "worker-0    0/1     OOMKilled   3          2m")),
    "a table with a crash": ("rank_crashed", 0.3, log(
        "NAME        READY   STATUS             RESTARTS     AGE", "worker-0    0/1     CrashLoopBackOff   3 (2s ago)"
        "   2m")),
    "a container that is made": ("container_start", 0.5, log(
        "NAME        READY   STATUS              RESTARTS   AGE", "worker-0    0/1     ContainerCreating   0   31m")),
    "Volcano's gang": ("pod_unschedulable", 0.85, log(
        "    conditions:", POD_GROUP.format(2, 3), "        3 minAvailable'", "      reason: NotEnoughResources",
        "      type: Unschedulable", "    phase: Unknown")),
    "Volcano's event": ("pod_unschedulable", 0.85, log(
        "Warning   Unschedulable   4/4 tasks in gang unschedulable: pod group is not ready...")),
    "coscheduling's gang": ("pod_unschedulable", 0.85, log(
        "0/3 nodes are available: 3 pre-filter pod nginx-8sgkm cannot find enough sibling pods, current pods number: 2,"
        " minMember of group: 3.")),
    "Kueue's quota": ("pod_unschedulable", 0.85, log(
        "    Message:  couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor"
        " gpu-a100, 2 more needed", "    Reason:   Pending")),
    "a condition": ("pod_unschedulable", 0.85, log(
        "  - message: '0/4 nodes are available: 4 Insufficient nvidia.com/gpu.'", "    reason: Unschedulable",
        "    type: PodScheduled")),
    "a volume": ("container_start", 0.85, log(EVENTS.format(
        reason="FailedMount", words="MountVolume.SetUp failed for volume pvc-1"))),
    "a sandbox": ("container_start", 0.85, log(EVENTS.format(
        reason="FailedCreatePodSandBox", words="failed to setup network for sandbox: plugin type=calico failed"))),
    "a pod that gave way": ("job_ended", 0.95, log(EVENTS.format(reason="Preempted", words="Preempted by pod x"))),
    "no more nodes": ("pod_unschedulable", 0.85, log(
        "Normal  NotTriggerScaleUp  3m  cluster-autoscaler  pod didn't trigger scale-up: 1 max node group size"
        " reached")),
    "LSF: somebody": ("job_ended", 0.85, log("Job <123> was killed: TERM_OWNER: job killed by owner.")),
    "LSF: memory": ("rank_crashed", 0.95, log("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.")),
    "systemd": ("rank_crashed", 0.85, log(
        "train.service: Main process exited, code=killed, status=9/KILL")),
    "a daemon of a plug-in": ("net_plugin", 0.85, log(
        "fastrak_gpumem_manager: Number of GPUs detected in the PCI tree 7 is not equal to the actual number of GPUs 8",
        "tcpxo-daemon exited with code 1",
        "n1:7:8 [0] NCCL WARN NET/FasTrak connect() error: 111: Connection refused")),
    "Ray: too few GPUs": ("launcher_mismatch", 0.5, log(f"{PLACE}{{'CPU': 8.0, 'GPU': 8.0}}.")),
    "Ray: bundles": ("launcher_mismatch", 0.5, log(
        "RuntimeError: Failed to create placement group with 4 bundles (requiring 32.0 GPUs, 32.0 CPUs total) in 180"
        " seconds. This might indicate insufficient GPU resources.")),
    "Ray: an address of another network": ("wrong_nic", 0.85, log(
        "Local node IP: 10.1.0.1", f"{PLACE}{{'CPU': 1.0, 'node:192.168.1.10': 0.001}}")),
    "Ray: a name where it has addresses": ("rendezvous_misconfig", 0.85, log(
        "Local node IP: 10.1.0.1", f"{PLACE}{{'CPU': 1.0, 'node:gpu-head-0': 0.001}}")),
    "vLLM waits for bundles": ("launcher_mismatch", 0.5, log(
        "INFO 08-14 14:34:47 ray_utils.py:212] Waiting for creating a placement group of specs for 10 seconds."
        " specs=[{'node:10.1.0.1': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status` to see if you have enough"
        " resources.")),
    "vLLM's node without a GPU": ("gpu_mapping", 0.5, log(
        "ValueError: Current node has no GPU available. current_node_resource={'node:10.1.0.1': 1.0, 'CPU': 8.0}. vLLM"
        " engine cannot start without GPU.")),
    "verl": ("launcher_mismatch", 0.5, log(
        "ValueError: Total available GPUs 8 is less than total desired GPUs 16")),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACEMENT)
def test_ranks_that_find_no_place_are_found_in_each_schedulers_form(tmp_path: Path, name: str) -> None:
    cause, confidence, lines = PLACEMENT[name]
    found = report(tmp_path, *lines).diagnoses[0]
    assert (found.cause, found.confidence) == (cause, confidence)


@pytest.mark.parametrize(
    "lines",
    [
        ("NAME                  READY   STATUS      RESTARTS   AGE", "worker-0    1/1     Running     0          14m",
         "launcher    0/1     Completed   0          14m", "other       1/1     Running     7 (3d ago)   9d"),
        ("NAME   STATUS   ROLES   AGE   VERSION", "n1     Ready    gpu     9d    v1.29.1"),
        ("Normal  Scheduled  3m  default-scheduler  Successfully assigned default/worker-0 to n1",
         "Normal  Pulled     3m  kubelet            Container image already present on machine",
         "Normal  Started    3m  kubelet            Started container main"),
        ("  - reason: tasks in gang are ready to be scheduled", "    status: 'True'", "    type: Scheduled"),
        ("Warning  FailedScheduling  5m  default-scheduler  0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
         "step 1 loss 0.5", "step 2 loss 0.4"),
        (f"{PLACE}{{'CPU': 8.0, 'GPU': 8.0}}.", "step 1 loss 0.5", "step 2 loss 0.4"),
    ],
)  # fmt: skip
def test_what_runs_or_found_its_place_is_no_failure(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert report(tmp_path, *lines).diagnoses == ()


INFO = "n1:7:7 [0] NCCL INFO "
TIMEOUT = ("[rank{0}]:[E1113 14:07:50.9 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation"
           " timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000)")  # fmt: skip
AT_WORK = ("[rank{0}]:[E1113 14:07:50.9 ProcessGroupNCCL.cpp:1785] [PG ID 1 PG GUID 1 Rank {0}] Exception (either an"
           " error or timeout) detected by watchdog at work: {1}, last enqueued NCCL work: {1}")  # fmt: skip
INIT = ("{0}:{1}:{1} [0] NCCL INFO ncclCommInitRank comm 0x1 rank {1} nranks 4 cudaDev 0 nvmlDev 0 busId {2} commId"
        " 0xab - Init START")  # fmt: skip

# What stands beside a phrase, or in lines of INFO, and decides.
BESIDE: dict[str, tuple[str, float, tuple[str, ...]]] = {
    "no memory for a queue, and no limit": ("software_bug", 0.5, log(
        "mpirun -np 8 bash -c 'ulimit -l unlimited && ulimit -n 1048576 && ./alltoall_perf -b 1 -e 8'",
        "n1:7:8 [3] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory")),
    "no limit in docker's options": ("software_bug", 0.5, log(
        "docker run --gpus all --ulimit memlock=-1:-1 --network host image",
        "[n1:77:0] ib_iface.c:1000 UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory")),
    "no limit in ulimit's own list": ("software_bug", 0.5, log(
        "max locked memory           (kbytes, -l) unlimited",
        "n1:7:8 [3] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory")),
    "a limit": ("memlock_limit", 0.85, log(
        "max locked memory           (kbytes, -l) 64",
        "n1:7:8 [3] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory")),
    "EPERM for a queue": ("container_isolation", 0.85, log(
        "n1:7:8 [3] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_create_qp failed with error Operation not permitted")),
    "EPERM in UCX": ("container_isolation", 0.85, log(
        "[n1:77:0] ib_iface.c:1000 UCX  ERROR ibv_create_cq(cqe=4096) failed: Operation not permitted : Please set max"
        " locked memory (ulimit -l) to 'unlimited' (current: unlimited)")),
    "errno 19 with GID index 0": ("roce_gid", 0.85, log(
        f"{INFO}NCCL_IB_GID_INDEX set by environment to 0.", f"{INFO}NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB"
        " eth0:10.1.0.1<0>", "n1:7:8 [0] misc/ibvwrap.cc:160 NCCL WARN Call to ibv_modify_qp failed with error No such"
        " device")),
    "errno 19 alone": ("ib_wrong_hca", 0.85, log(
        "n1:7:8 [0] misc/ibvwrap.cc:160 NCCL WARN Call to ibv_modify_qp failed with error No such device")),
    "error 101 in p2p.cc": ("container_isolation", 0.5, log(
        "n1:1:92 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'")),
    "error 101 in init.cc": ("gpu_mapping", 0.95, log(
        "n1:1:92 [0] init.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'")),
    "two ranks on one bus id": ("gpu_mapping", 0.85, log(
        INIT.format("n1", 0, "1a000"), INIT.format("n1", 1, "1a000"), INIT.format("n2", 2, "1a000"))),
    "two ranks on one device of nccl-tests": ("gpu_mapping", 0.85, log(
        "#  Rank  0 Group  0 Pid   5338 on      node01 device  0 [0x81] NVIDIA A100-PCIE-40GB",
        "#  Rank  1 Group  0 Pid   5339 on      node01 device  0 [0x81] NVIDIA A100-PCIE-40GB")),
    "RoCE and IB in one job": ("ib_wrong_hca", 0.85, log(
        f"{INFO}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.1<0>",
        "n1:7:8 [0] ibvwrap.cc:160 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out")),
    "RoCE on one node and IB on another": ("ib_wrong_hca", 0.85, log(
        f"{INFO}NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>",
        "n2:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.1.0.2<0>",
        "n1:7:8 [0] NCCL WARN NET/IB : Got completion from peer 10.1.0.2<4> with status=12 opcode=0 len=0")),
    "a checkpoint before the time-out": ("checkpoint_write", 0.5, log(
        "step 1 loss 0.5", "saving checkpoint at iteration    1000 to /ckpt", TIMEOUT.format(3, 7))),
    "a checkpoint of transformers": ("checkpoint_write", 0.5, log(
        "[INFO|trainer.py:3812] 2026-01-02 03:04:05,678 >> Saving model checkpoint to ./out/checkpoint-500",
        TIMEOUT.format(3, 7))),
    "the one that is ahead": ("collective_mismatch", 0.5, log(
        *(one.format(rank, 8 if rank == 2 else 7) for rank in range(4) for one in (TIMEOUT, AT_WORK)))),
    "tasks that never came": ("rank_missing", 0.5, log(
        "DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. Timed out task names:",
        "/job:jax_worker/replica:0/task:1", "/job:jax_worker/replica:0/task:6")),
    "a lock of filelock": ("deadlock", 0.5, log(
        "filelock._error.Timeout: The file lock '/nfs/cache/.lock' could not be acquired.")),
    "a lock of a build": ("deadlock", 0.5, log(
        '  File "/opt/torch/utils/cpp_extension.py", line 1736, in _jit_compile', "    baton.wait()",
        '  File "/opt/torch/utils/file_baton.py", line 42, in wait', "    time.sleep(self.wait_seconds)",
        "KeyboardInterrupt")),
    "a lock that NFS does not have": ("storage_hang", 0.85, log("OSError: [Errno 37] No locks available")),
    "EPERM for a thread": ("container_isolation", 0.85, log(
        "OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 64: Operation not permitted",
        "OpenBLAS blas_thread_init: RLIMIT_NPROC -1 current, -1 max")),
    "no more threads": ("process_limit", 0.85, log(
        "OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 64: Resource temporarily unavailable")),
    "a limit that may not be raised": ("memlock_limit", 0.85, log(
        "bash: ulimit: max locked memory: cannot modify limit: Operation not permitted")),
    "the last line before a lock": ("deadlock", 0.5, log(
        "Using /root/.cache/torch_extensions/py310_cu121 as PyTorch extensions root...")),
    "HDF5's lock": ("storage_hang", 0.5, log(
        "BlockingIOError: [Errno 11] Unable to create file (unable to lock file, errno = 11, error message ="
        " 'Resource temporarily unavailable')")),
    "ROMIO's lock": ("storage_hang", 0.85, log(
        "File locking failed in ADIOI_Set_lock(fd 12,cmd F_SETLKW/7,type F_WRLCK/1) with return value FFFFFFFF and"
        " errno 26.")),
    "a lock of the Hub": ("deadlock", 0.5, log(
        "Still waiting to acquire lock on /root/.cache/huggingface/.locks/x.lock (elapsed: 10.0 seconds)")),
    "ray status": ("launcher_mismatch", 0.5, log(
        "Usage:", " 0.0/8.0 GPU", "Demands:", " {'GPU': 1.0} * 16 (PACK): 1+ pending placement groups")),
    "a name in Ray without more": ("rendezvous_misconfig", 0.85, log(
        f"{PLACE}{{'node:gpu-head-0': 0.001, 'GPU': 1.0}}")),
    "an error just before an exception": ("port_in_use", 0.5, log(
        "E0605 17:54:16.878770 1787 server.cpp:198] [c10d] bind: Address already in use", "Traceback (most recent call"
        " last):", '  File "t.py", line 7, in main', "ValueError: the engine did not start")),
    "an exception alone": ("rank_crashed", 0.85, log(
        "W0605 17:54:16.878770 1787 server.cpp:198] [c10d] bind: Address already in use", "Traceback (most recent call"
        " last):", '  File "t.py", line 7, in main', "ValueError: the engine did not start")),
    "cargo's lock": ("deadlock", 0.5, log("    Blocking waiting for file lock on build directory")),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_what_stands_beside_a_phrase_decides(tmp_path: Path, name: str) -> None:
    cause, confidence, lines = BESIDE[name]
    found = report(tmp_path, *lines).diagnoses[0]
    assert (found.cause, found.confidence) == (cause, confidence)


def test_the_ranks_that_are_absent_or_alone_are_named(tmp_path: Path) -> None:
    for name, ranks in (("the one that is ahead", (2,)), ("tasks that never came", (1, 6))):
        assert report(tmp_path, *BESIDE[name][2]).diagnoses[0].ranks == ranks
    (found, *_) = report(tmp_path, "DistStoreError: Timed out after 901 seconds waiting for clients. 1/3 clients"
                         " joined.").diagnoses  # fmt: skip
    assert found.meaning == "2 of 3 processes did not come to the rendezvous: did they start, and do they reach rank 0?"


def test_the_same_lines_in_jobs_that_are_well_are_no_fault(tmp_path: Path) -> None:
    steps = log(*(f"step {step} loss 0.{step}" for step in range(4)))
    for lines in (
        log(INIT.format("n1", 0, "1a000"), INIT.format("n1", 1, "1b000"), INIT.format("n2", 2, "1a000")),
        log(INIT.format("n1", 0, "1a000"), INIT.format("n1", 0, "1a000").replace("0xab", "0xcd")),
        log(f"{INFO}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.1<0>"),
        log(f"{INFO}NCCL_IB_GID_INDEX set by environment to 0."),
        log("saving checkpoint at iteration    1000 to /ckpt", "  successfully saved checkpoint at iteration 1000"),
        log(
            "Using /root/.cache/torch_extensions/py310_cu121 as PyTorch extensions root...",
            "Loading extension module fused_adam...",
            "Time to load fused_adam op: 2.3 seconds",
        ),
        log("    Blocking waiting for file lock on build directory", *steps),
        log("bash -c 'ulimit -l unlimited && ./train'"),
        log(BESIDE["two ranks on one bus id"][2][0], BESIDE["two ranks on one bus id"][2][1], *steps),
    ):
        assert report(tmp_path, *lines).diagnoses == (), lines
