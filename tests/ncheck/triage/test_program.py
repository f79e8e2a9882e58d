"""What programs, schedulers, MPI libraries and frameworks print when they fail, and lines that only look like it."""

from __future__ import annotations

import pytest
from ncheck.triage.log_clues import clues_in, scanned, trouble_at_the_end

FAILURES = [
    # host memory
    ("MemoryError", "rank_crashed", "memory"),
    ("terminate called after throwing an instance of 'std::bad_alloc'", "rank_crashed", "memory"),
    ("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried", "rank_crashed", "memory"),
    ("kernel: Memory cgroup out of memory: Killed process 77 (python3)", "rank_crashed", "memory"),
    ("slurmstepd: error: Detected 2 oom_kill events in StepId=8.0. Some of the step tasks", "rank_crashed", "memory"),
    ("srun: error: node03: task 12: Out Of Memory", "rank_crashed", "memory"),
    ("ray.exceptions.OutOfMemoryError: killed due to the node running low on memory.", "rank_crashed", "memory"),
    ("slurm_script: line 28:  8156 Killed                  python3 train.py", "rank_crashed", "killed"),
    ("已杀死", "rank_crashed", "killed"),
    # GPU memory
    ("[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "gpu_oom", ""),
    ("torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB", "gpu_oom", ""),
    ("ResourceExhaustedError: OOM when allocating tensor with shape[64,1024]", "gpu_oom", ""),
    # numbers
    ("NaN detected in loss, aborting", "diverged", "nan"),
    ("RuntimeError: Function 'AddmmBackward0' returned nan values in its 0th output.", "diverged", "nan"),
    ("Exception: Current loss scale already at minimum - cannot decrease scale anymore.", "diverged", "nan"),
    ("FloatingPointError: Loss is infinite or NaN!", "diverged", "nan"),
    # files and disks
    ("ModuleNotFoundError: No module named 'flash_attn'", "rank_crashed", "import"),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "rank_crashed", "file"),
    ("python3: can't open file 'train.py': [Errno 2] No such file or directory", "rank_crashed", "file"),
    ("bash: line 1: python3: command not found", "rank_crashed", "file"),
    ("bash: python3: 未找到命令", "rank_crashed", "file"),
    ("PermissionError: [Errno 13] Permission denied: '/scratch'", "rank_crashed", "permission"),
    ("bash: ./train.sh: Permission denied", "rank_crashed", "permission"),
    ("OSError: [Errno 28] No space left on device: '/scratch/step_1.pt'", "disk_full", "disk"),
    ("tee: job.log: 设备上没有空间", "disk_full", "disk"),
    ("OSError: [Errno 122] Disk quota exceeded", "disk_full", "disk"),
    # crashes
    ("Fatal Python error: Segmentation fault", "rank_crashed", "segfault"),
    ("段错误 (核心已转储)", "rank_crashed", "segfault"),
    ("failed (exitcode: -11) local_rank: 0 (pid: 77) of binary: /usr/bin/python3", "rank_crashed", "segfault"),
    ("=   EXIT CODE: 139", "rank_crashed", "segfault"),
    ("a.out: malloc.c:2617: sysmalloc: Assertion `(old_top == 0)' failed.", "rank_crashed", "assertion"),
    ("F1122 13:50:47.079073 63928 user_op.cpp:299] Check failed: it != end()", "rank_crashed", "assertion"),
    ("AssertionError: expected 8 groups", "rank_crashed", "assertion"),
    ("[rank3]: my.package.errors.DataError: no more data", "rank_crashed", "exception"),
    # schedulers
    ("slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-01-02 DUE TO TIME LIMIT ***", "job_ended", "time-limit"),
    ("slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-01-02 DUE TO PREEMPTION ***", "job_ended", "preempted"),
    ("slurmstepd: error: *** STEP 8.0 ON n1 CANCELLED AT 2026-01-02T03:04 DUE TO NODE FAILURE,", "node_failed", ""),
    ("srun: error: Node failure on node03", "node_failed", ""),
    ("nfs: server 10.1.0.9 not responding, still trying", "storage_hang", ""),
    # MPI
    ("mpirun was unable to find the specified executable file, and therefore did not", "rank_crashed", "file"),
    ('The application appears to have been direct launched using "srun",', "launcher_mismatch", ""),
    ("All nodes which are allocated for this job are already filled.", "launcher_mismatch", ""),
    ("Read -1, expected 65536, errno = 1", "ptrace_refused", ""),
    ("[mpiexec@n1] HYDU_sock_gethostbyname: unable to get host address for n2", "dns_failure", ""),
    ("ssh: Could not resolve hostname n2: 未知的名称或服务", "dns_failure", ""),
    # NCCL
    ("NCCL WARN NCCL version mismatch with remote peer 10.1.0.3<4> (local: 22703)", "version_mismatch", ""),
    ("NCCL WARN Detected mixed local Net device counts across ranks (min 1, max 2). Set", "ib_wrong_hca", ""),
    ("NCCL WARN no device found matching eth9, verify NCCL_OOB_NET_IFNAME", "no_interface", ""),
    ("NCCL WARN nvmlInit_v2() failed: Driver not loaded", "driver_insufficient", ""),
    ("libibverbs: Fatal: couldn't read uverbs ABI version.", "ibverbs_missing", ""),
    ("RuntimeError: cuMulticastCreate failed: CUDA_ERROR_NOT_SUPPORTED", "nvls_failure", ""),
    ("NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x24:0x65:1423)", "gpu_fault", ""),
    # frameworks
    ("RuntimeError: DDP expects same model across all ranks, but Rank 0 has 161 params", "collective_mismatch", ""),
    ("MisconfigurationException: You requested gpu: [0, 1] But your machine only has: [0]", "gpu_mapping", ""),
    ("RuntimeError: Version mismatch: The cluster was started with: Ray: 2.9.0", "version_mismatch", ""),
    ("ConnectionError: Could not find any running Ray instance. Please specify", "rendezvous_misconfig", ""),
    ("ValueError: Hostfile contains a bad entry: n1 lots=8, unable to proceed with launching", "launcher_mismatch", ""),
    ("KeyError: 'MASTER_ADDR'", "rendezvous_misconfig", ""),
    ("[launch.py:321:sigkill_handler] ['python3', 'train.py'] exits with return code = -9", "rank_crashed", "killed"),
    ("[launch.py:321:sigkill_handler] ['python3', 'train.py'] exits with return code = -7", "shm_too_small", ""),
    ("RuntimeError: Session name session_1 does not match persisted value session_2.", "rendezvous_misconfig", ""),
    ("(pid=7) [E] gcs_rpc_client.h:179: Failed to connect to GCS at address 10.1.0.4:6379", "rendezvous_misconfig", ""),
    ("ValueError: You set `devices=8` in Lightning, but the number of tasks per node", "rendezvous_misconfig", ""),
    ("Retry to connect to 10.0.0.1:6170 while the server is not yet listening.", "rendezvous_misconfig", ""),
    ("[12:00:00] src/van.cc:290: Check failed: !ip.empty() failed to get ip", "no_interface", ""),
    ("LoadServer 10.1.0.4 Failed at 3 times error_code 14 error_message timed out", "firewall", ""),
    ("srun: error: Task launch for StepId=8.4 failed on node n1: Unable to layout tasks", "launcher_mismatch", ""),
    ("srun: error: Application launch failed: Job credential expired", "clock_skew", ""),
    ("srun: error: Application launch failed: Invalid job credential", "ssh_auth", ""),
    ("srun: error: Application launch failed: Job prolog failed", "node_failed", ""),
    ("srun: error: Application launch failed: Communication connection failure", "firewall", ""),
    ("slurmstepd: error: *** JOB 8 STEPD TERMINATED ON n1 DUE TO JOB NOT ENDING WITH SIGNALS", "storage_hang", ""),
    ("Open MPI's mpirun command was unable to find an underlying prterun", "mpi_daemon_missing", ""),
    ("The MTU does not match on local and remote hosts.  All interfaces on", "mtu_mismatch", ""),
    ("Error: system limit exceeded on number of pipes that can be open", "nofile_limit", ""),
    ("WARNING: Open MPI failed to find a route to a peer IP address via a", "routing", ""),
    ("ud_iface.c UCX ERROR ibv_create_ah(dlid=0) for UD mlx5 failed: Connection timed out", "roce_gid", ""),
    ("kernel: mlx5_core 0000:3b:00.0: Port module event[error]: module 0, Cable error", "ib_fabric", ""),
    ("kernel: NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED]", "gpu_fault", ""),
    ("kernel: nvme nvme0: controller is down; will reset: CSTS=0xffffffff", "node_failed", ""),
    ("mpiexec: Symbol `orte_schizo' has different size in shared object, consider", "version_mismatch", ""),
    ("NCCL WARN Attribute coll of node net not found", "software_bug", ""),
    ("NCCL WARN Multicast support requested for team but none available on system.", "nvls_failure", ""),
    ("NCCL WARN Invalid device 8 (totalnDev=8)", "gpu_mapping", ""),
    ("torch.AcceleratorError: CUDA driver error: out of memory", "gpu_oom", ""),
    ("mxnet.base.MXNetError: cudaMalloc retry failed: out of memory", "gpu_oom", ""),
    ("RuntimeError: CUDA error: system has unsupported display driver", "driver_insufficient", ""),
    ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "arch_unsupported", ""),
    ("kernel: pcieport 0000:40:01.1: pciehp: Slot(3): Link Down", "gpu_fault", ""),
    ("NCCL WARN NET/IB: Got completion from peer 10.1.0.2<4> with status=12 (Recv) localGid fe80::1", "roce_gid", ""),
    ("NCCL WARN NET/OFI aws-ofi-nccl initialization failed", "net_plugin", ""),
    ("NCCL WARN Call to ibv_query_gid failed with error No such device", "roce_gid", ""),
    ("E0101 dns_resolver.cc: DNS resolution failed for service: node01:50051", "dns_failure", ""),
    ("ERROR: [Errno 98] error while attempting to bind on address: address already in use", "port_in_use",
     ""),
    ("ValueError: Port 6379 is already in use", "port_in_use", ""),
    ("OSError: [Errno 19] No such device", "no_interface", ""),
    ("RuntimeError: Rank 3 failed to pass monitoredBarrier in 1800000 ms", "slow_rank_timeout", ""),
    ("RuntimeError: The detected CUDA version (11.8) mismatches the version that was used", "version_mismatch", ""),
    ("OSError: libmpi.so.12: cannot open shared object file: No such file or directory", "version_mismatch", "import"),
    ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_77'", "shm_too_small", ""),
    ("OSError: inotify_add_watch: No space left on device", "nofile_limit", ""),
    ("RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0", "disk_full", "disk"),
    ("LustreError: 11-0: lustre-OST0001: operation ost_read to node n9@o2ib failed: rc = -107", "storage_hang", ""),
    ("ls: cannot access '/data': Transport endpoint is not connected", "storage_hang", ""),
    ("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", "diverged", "nan"),
    ("slurmctld: error: Nodes n3 not responding, setting DOWN", "node_failed", ""),
    ("srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files", "launcher_mismatch", ""),
    ("RuntimeError: [1]: params[0] in this process with shape [8] appears not to match sizes of the same param",
     "collective_mismatch", ""),
    ("ConnectionError: Ray is trying to start at n1:6, but is already running at n2:6379", "rendezvous_misconfig", ""),
    ("RuntimeError: Distributed package doesn't have MPI built in", "launcher_mismatch", ""),
    ("Test CUDA failure: 'CUDA-capable device(s) is/are busy or unavailable'", "gpu_mapping", ""),
    ("RuntimeError: CUDA error: an unrecoverable hardware error was encountered", "gpu_fault", ""),
    ("kernel: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", "gpu_fault", ""),
    ("NCCL WARN HIP failure 'out of memory'", "gpu_oom", ""),
    ("hipErrorNoBinaryForGpu: Unable to find code object for all current devices!", "arch_unsupported", ""),
    ("Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f.", "rank_crashed", "segfault"),
    ("NCCL WARN Error: network AWS Libfabric not found.", "ibverbs_missing", ""),
    ("dial tcp: lookup worker-0.job on 10.96.0.10:53: no such host", "dns_failure", ""),
    ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "arch_unsupported", ""),
    ("kernel: nv_peer_mem: Unknown symbol ib_register_peer_memory_client", "gpudirect_rdma", ""),
    ("Access denied by pam_slurm_adopt: you have no active jobs on this node", "ssh_auth", ""),
    ("kernel: {1}[Hardware Error]: event severity: fatal", "node_failed", ""),
    ("free(): double free detected in tcache 2", "rank_crashed", "assertion"),
    ("torch._dynamo.exc.Unsupported: call_function", "rank_crashed", "exception"),
    ("RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xe", "version_mismatch", ""),
    ("F0101 epoll_comm_network.cpp:63] Check failed: connect(fd) == 0 : No route to host [113]", "firewall", ""),
    ("总线错误 (核心已转储)", "shm_too_small", ""),
    ("socket: 打开的文件过多", "nofile_limit", ""),
    ("bind: 地址已在使用", "port_in_use", ""),
    ("connect: 网络不可达", "routing", ""),
    ("ssh: Could not resolve hostname n2: 域名解析暂时失败", "dns_failure", ""),
    ("cat: /data/x: 输入/输出错误", "storage_hang", "disk"),
    ("ls: 无法访问 '/data': 过时的文件句柄", "storage_hang", "disk"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "cause", "kind"), FAILURES, ids=[line[:50] for line, _, _ in FAILURES])
def test_a_failure_has_its_cause_and_kind(line: str, cause: str, kind: str) -> None:
    found = clues_in([f"[1,3]<stderr>:{line}"])[0]
    assert (found.cause, found.kind, found.ranks[:1] in ((3,), (12,), ())) == (cause, kind, True)


@pytest.mark.parametrize(
    "line",
    [
        "Loading memory.max of the cache: 512 entries",
        "the nanny started 3 workers, 0 failed",
        "grad norm 1.2 clipped at inf",
        "INFO: imported 12 modules without problems",
        "Using disk cache at /scratch: no quota set",
        "rank 3 finished its shard",
        "NCCL INFO NVLS multicast support is available on dev 0",
        "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.3.0.1<0>",
        "ray start --head --port=6379",
        "exit code 0",
        "Local node IP: 127.0.0.1",
        "van.cc:291: Bind to role=worker, ip=127.0.0.1, port=41231, is_recovery=0",
        "[W] Warning: find_unused_parameters=True was specified in DDP constructor",
        "slurmstepd: task 3 started on node03",
        "Trainer: no checkpoint is corrupted, all 12 verified",
    ],
)
def test_a_line_that_only_looks_like_a_failure_is_none(line: str) -> None:
    assert clues_in([line]) == ()


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (("LoadServer 172.17.0.2 Failed at 3 times error_code 14 error_message failed to connect",), "wrong_nic"),
        (("van.cc:291: Bind to role=worker, ip=172.17.0.2, port=41231, is_recovery=0",
          "Stalled ranks: 3: [grad_1]"), "wrong_nic"),
        (("LoadServer  gpu9 Failed at 3 times error_code 14 error_message DNS resolution failed",), "dns_failure"),
        (("LoadServer 172.17.0.2 Failed at 0 times error_code 14 error_message failed to connect",
          "Check failed: status (14 vs. 0) Machine 0 lost"), "wrong_nic"),
        (("Local node IP: 172.17.0.2", "connect: Connection refused"), "wrong_nic"),
        (("LoadServer 10.1.0.2 Failed at 3 times error_code 14 error_message Connection refused",), "rank_crashed"),
    ],
)  # fmt: skip
def test_an_address_that_leads_nowhere_explains_why_nobody_answers(lines: tuple[str, ...], cause: str) -> None:
    assert clues_in(lines)[0].cause == cause


@pytest.mark.parametrize(
    "line",
    [
        "iteration 10/ 500 | lm loss: 1.2E+01 | number of skipped iterations: 0 | number of nan iterations: 0 |",
        "validation error: 0.0123, test error: 0.0456",
        "W dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open",
        "fatal: not a git repository (or any of the parent directories): .git",
    ],
)
def test_a_line_of_a_healthy_job_is_no_trouble(line: str) -> None:
    assert trouble_at_the_end(scanned([line])) == ""
