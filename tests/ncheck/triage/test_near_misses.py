"""Lines of healthy jobs that look like failures: none may be read as one, alone or together."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from ncheck.triage.log_clues import clues_in, scanned, trouble_at_the_end
from ncheck.triage.logs import examine_logs
from ncheck.triage.signatures import MODULES

# By the module whose signatures read what these lines resemble.
NEAR_MISSES = {
    "nccl": (
        "n1:7:8 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
        "n1:7:8 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : cannot open shared object file",
        "n1:7:8 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v9 symbol.",
        "n1:7:8 [0] NCCL INFO TUNER/Plugin: Plugin load returned 11 : libnccl-net.so: cannot open shared object file",
        "n1:7:8 [0] NCCL INFO NCCL_ASYNC_ERROR_HANDLING set by environment to 1.",
        "n1:7:8 [0] NCCL INFO comm 0x55d0 rank 0 nranks 8 cudaDev 0 busId 1a000 - Abort COMPLETE",
        "n1:7:8 [0] NCCL INFO comm 0x55d0 rank 0 nranks 8 cudaDev 0 busId 1a000 - Destroy COMPLETE",
        "n1:7:8 [0] NCCL INFO [Service thread] Connection closed by localRank 0",
        "n1:7:8 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)",
        "n1:7:8 [0] NCCL INFO NCCL_IGNORE_DISABLED_P2P set by environment to 1.",
        "n1:7:8 [0] NCCL INFO NCCL_TOPO_FILE set by environment to /opt/topo.xml",
        "n1:7:8 [0] NCCL INFO NET/IB : Made virtual device [0] name=mlx5_0 speed=400000 ndevs=1",
        "n1:7:8 [0] NCCL INFO Comm config Blocking set to 1",
        "n1:7:8 [0] NCCL INFO ncclCommSplit comm 0x7f rank 1 nranks 16 cudaDev 1 parent 0x55 - Init COMPLETE",
    ),
    "gpu": (
        "n1:7:8 [0] NCCL INFO NVLS multicast support is not available on dev 0",
        "n1:7:8 [0] NCCL INFO Could not enable P2P between dev 1(=1000) and dev 0(=0)",
        "kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
        "kernel: nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 20034, Non-fatal, Link 12 LTSSM Fault Up",
        "kernel: pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0",
        "kernel: pcieport 0000:00:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
        "NVRM: Xid (PCI:0000:3b:00): 63, pid=77, Row Remapper: New row marked for remapping, reset gpu to activate",
        ("cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one"
        " has already been registered"),
        "torch.cuda.empty_cache() called because memory is at 91 %",
        "    ACSCtl: SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-",
        "step: max memory 71.2 GiB, out of 80 GiB",
        "CUDA runtime API version 12.4, driver API version 12.6",
        "n1:7:8 [0] NCCL INFO cuMem fabric handles: cuMemExportToShareableHandle is available",
        'time="2026-01-01" level=info msg="nvidia-container-cli: requirement cuda>=12.0 is met"',
    ),
    "infiniband": (
        "libibverbs: Warning: couldn't load driver 'librxe-rdmav25.so': librxe-rdmav25.so: cannot open shared object",
        "libibverbs: Warning: couldn't load driver 'libvmw_pvrdma-rdmav34.so': cannot open shared object file",
        "n1:7:8 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
        "n1:7:8 [0] NCCL INFO NET/IB : No device found.",
        "n1:7:8 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.",
        "n1:7:8 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)",
        "kernel: mlx5_core 0000:3b:00.0: Port module event: module 0, Cable plugged",
        "kernel: mlx5_core 0000:3b:00.1: Port module event: module 1, Cable unplugged",
        "kernel: mlx5_core 0000:3b:00.0 eth2: Link up",
        "export NCCL_IB_RETRY_CNT=7",
        "n1:7:8 [0] NCCL INFO NCCL_IB_PKEY set by environment to 1.",
        "mlx5_0/ports/1/hw_counters/out_of_sequence:0",
        "mlx5_0/ports/1/hw_counters/local_ack_timeout_err:3",
        "Link type: IB, pkey index 0, P_Key 0xffff",
        "max locked memory       (kbytes, -l) unlimited",
        "\t\tState: Active",
        "Physical state: LinkUp",
    ),
    "engines": (
        "[INFO] HCCL(15952,t):2026-01-06-15:38:29 [externalinput.cc:598] [HCCL_ENV] HCCL_CONNECT_TIMEOUT set to [120]s",
        "[INFO] HCCL(858941,t):2025-12-10-19:53:28 [hccl_communicator.cc:327] [Communicator Key Info] rankSize[8]",
        "2025:08:14-14:34:47:(19220) |CCL_WARN| could not get local_idx/count from environment variables",
        "export CCL_ZE_IPC_EXCHANGE=sockets",
        "I0605 17:54:16.878770 178707 transfer_engine.cpp:200] Topology discovery complete. Found 8 HCAs.",
        "Backend UCX was instantiated",
        "libfabric:47889:core:core:fi_getinfo_():964<info> fi_getinfo: provider shm returned -61 (No data available)",
    ),
    "network": (
        "WARNING: Retrying (Retry(total=2)) after connection broken by 'NewConnectionError([Errno 113] No route to')",
        "wandb: Network error (ConnectionError), entering retry loop.",
        "kernel: IPv6: ADDRCONF(NETDEV_CHANGE): eth2: link becomes ready",
        "Connecting to existing Ray cluster at address: 10.1.0.1:6379...",
        "timeout=1800",
        "WARNING 01-01 Port 8000 is already in use, trying port 8001",
        "TensorBoard: port 6006 is in use, using another one",
        "  connect_timeout: 30",
        "n1:7:8 [0] NCCL INFO Connect to 10.1.0.2<4021> established",
        "ssh: connected to host 1207",
    ),
    "torch": (
        "[W ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct it",
        "[W ProcessGroupNCCL.cpp:4115] [PG ID 0 Rank 0] using GPU 0: this can potentially cause a hang if incorrect",
        "[W Utils.hpp:106] Warning: Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated",
        ("[I ProcessGroupNCCL.cpp:780] [Rank 0] ProcessGroupNCCL initialized with options: NCCL_BLOCKING_WAIT: 0,"
        " TIMEOUT(ms): 1800000"),
        "[I ProcessGroupNCCL.cpp:837] [Rank 0] NCCL watchdog thread terminated normally",
        "[W reducer.cpp:1251] Warning: find_unused_parameters=True was specified in DDP constructor",
        '  "nccl_timeout": 600, "gloo_timeout_seconds": 300, "error_if_nonfinite": false',
        "ddp_timeout=18000000,",
        "[E] exitcode : 0 (pid: 77)",
        "Process 77 finished with exitcode: 0",
        "Map: 100%|##########| 1000/1000 [00:01<00:00, 812.33 examples/s]",
    ),
    "frameworks": (
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4294967296, reducing to 2147483648",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "[launch.py:367:main] Process 4021 exits successfully.",
        "[runner.py:202:fetch_hostfile] Unable to find hostfile, will proceed with training with local resources only.",
        "[stage3.py:1850:step] 1 pytorch allocator cache flushes since last step: there is high memory pressure",
        "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4",
        "slurm.py:204: The `srun` command is available on your system but is not used. HINT: If your intention is",
        "This node has an IP address of 10.6.0.55, but we cannot find a local Raylet with the same address.",
        "(raylet) Spilled 2048 MiB, 15 objects, write throughput 811 MiB/s.",
        "HOROVOD_STALL_CHECK_TIME_SECONDS=60",
        "rank 0 in world size 8 is assigned as DP rank 0, PP rank 0, TP rank 0",
        "Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.",
        "W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT",
        "JAX distributed initialized with coordinator address 10.1.0.1:1234",
        "8 threads joined the rendezvous, all of them arrived on time",
        "I ctrl_server.cpp:52] OneFlow listens: port == bound_port (9988 vs. 9988)",
        "I tcp_utils.cc:107] Successfully connected to 10.0.0.1:6170",
    ),
    "mpi": (
        "By default, for Open MPI 4.0 and later, infiniband ports on a device",
        "A requested component was not found, or was unable to be opened.",
        ("[n1] mca_base_component_repository_open: unable to open mca_btl_openib: librdmacm.so.1: cannot open shared"
        " object file: No such file or directory (ignored)"),
        "Warning: Permanently added '10.1.0.7' (ED25519) to the list of known hosts.",
        "sshd[812]: Accepted publickey for user from 10.1.0.9 port 40000 ssh2",
        "Linux kernel CMA support was requested, but it is not available due to restrictive ptrace settings.",
        "mpirun: Warning: one or more CPUs are oversubscribed",
        "UCX  WARN  UCP API version is incompatible: required >= 1.14, actual 1.12.0",
        "I_MPI_FABRICS=shm:ofi",
    ),
    "scheduler": (
        "srun: job 812 queued and waiting for resources",
        "srun: job 812 has been allocated resources",
        "Normal  Scheduled  Successfully assigned default/worker-3 to node03",
        "4/4 nodes are available.",
        "OCI runtime: runc 1.1.12",
        "slurmstepd: task 3 started on node03",
        "kernel: nfs: server 10.1.0.9 OK",
        "kernel: EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
        "kernel: XFS (sdb1): Ending clean mount",
        "kernel: NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
        "kernel: mce: CPU0: Thermal monitoring enabled (TM1)",
        "kernel: EDAC MC0: Giving out device to module skx_edac controller: DEV 0000:64:0a.0 (INTERRUPT)",
        "kernel: {1}[Hardware Error]: event severity: corrected",
        "kernel: nvme nvme0: 32/0/0 default/read/poll queues",
    ),
    "machine": (
        "open files                      (-n) 1024",
        "core file size          (blocks, -c) 0",
        "kernel: oom_score_adj of process 812 set to -1000",
        "[INFO] killed 0 stale processes",
        "tmpfs            64G  1.2G   63G   2% /dev/shm",
        "signal 15 handler installed",
        "max user processes              (-u) 4096",
    ),
    "probe": ("rank 3 of 8: all-reduce of 8 MiB took 0.4 ms", "libcuda.so.1 found: driver 12.4"),
    "program": (
        "INFO: 0 errors, 0 warnings, 12 passed",
        "DeprecationWarning: The 'error' argument is deprecated, use 'on_error' instead",
        "UserWarning: The PyTorch API of nested tensors is in prototype stage. This error can be ignored.",
        "fromnumeric.py:3432: RuntimeWarning: Mean of empty slice.",
        "Namespace(nan_check=True, abort_on_nan=False, timeout=1800, max_errors=0, kill_switch=None)",
        "grad_norm: nan_count=0 inf_count=0",
        "found_inf: 0.0",
        "Loss scale: 65536.0, skip_on_nan: true",
        "max_grad_norm=inf",
        "epoch 3 best val loss inf -> 2.31",
        "early stopping: best loss=inf",
        "git: fatal: not a git repository (or any of the parent directories): .git",
        "loading data/error_cases.json",
        "ErrorAnalysis(score=0.91)",
        "Evaluating CrashDetection:  57%|#### | 57/100",
        "wandb: WARNING Path /root/wandb/ wasn't writable, using system temp directory",
        "+ timeout 3600 python train.py",
        "SystemExit: 0",
        "usage: train.py [-h] [--local-rank LOCAL_RANK]",
        "tensorflow 2.15.0 (ConfigProto is in tf.compat.v1)",
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used.",
    ),
}  # fmt: skip

LINES = [line for lines in NEAR_MISSES.values() for line in lines]


@pytest.mark.parametrize("line", LINES, ids=[line[:60] for line in LINES])
def test_a_line_of_a_healthy_job_is_no_failure(line: str) -> None:
    assert clues_in([line]) == ()
    assert trouble_at_the_end(scanned([line])) == ""


def test_every_module_of_signatures_has_near_misses() -> None:
    assert set(NEAR_MISSES) == {module.__name__.rpartition(".")[2] for module in MODULES}


def test_a_job_that_prints_all_of_them_and_goes_on_is_healthy(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    start = "[W socket.cpp:601] [c10d] The client socket has failed to connect to [n1]:29500 (errno: 111 - refused).\n"
    steps = "".join(f"step {step} loss 0.{step}\n" for step in range(5))
    path.write_text("\n".join((start, *LINES, steps)), encoding="utf-8")
    found = examine_logs([str(path)], io.BytesIO())
    assert (found.diagnoses, found.healthy) == ((), True)
    path.write_text("\n".join((steps, *LINES, "Training completed. Do not forget to share your model")), "utf-8")
    found = examine_logs([str(path)], io.BytesIO())
    assert (found.diagnoses, found.healthy) == ((), True)
