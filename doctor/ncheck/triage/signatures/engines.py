"""HCCL, oneCCL, Mooncake, NIXL and libfabric: the collectives of other vendors, and the engines of split inference.

HCCL's codes: EI is HCCL, EJ is HCCP, EL is the driver, in the list of CANN's own documents.
"""

from __future__ import annotations

from ncheck.triage.certainty import Grade
from ncheck.triage.signature import row

_NIXL = frozenset({"nixl"})

SIGNATURES = (
    # [ERROR] HCCL(1,python3):... [hccl_socket.cc:100] listen on ip[10.1.0.1] and specific port[16666] fail. Please
    row(r"listen on ip\[\S{1,60}\] and specific port\[\d{1,5}\] fail|\bEI0019: ", "port_in_use", Grade.CERTAIN,
        tag="port"),
    # EJ0001: 2025-10-02-18:15:21 Failed to initialize the HCCP process.
    row(r"\bEJ0001: |Failed to initialize the HCCP process", "port_in_use", Grade.LIKELY, "gpu_mapping",
        meaning="another process already uses these NPUs: an earlier job still runs on them", look="npu-smi info"),
    # EI0006: 2024-08-05-18:15:21.270.506 Getting socket times out. Reason: Remote Rank did not send the data in time
    row(r"\bEI0006: |Getting socket times out|wait socket establish timeout|\[InitChannelStage\]\[Timeout\]",
        "slow_rank_timeout", Grade.ECHO, "rank_crashed", "rank_missing", "firewall", tag="waits",
        meaning="another NPU did not connect in time: the ranks come too far apart (HCCL_CONNECT_TIMEOUT, 120 s),"
        " or one of them failed"),
    # EI0002: 2025-10-02-18:15:21 The wait execution of the Notify register times out.
    row(r"\bEI0002: |wait execution of the Notify register times out|\[TaskExecStage\]\[(?:Timeout|Heartbeat)",
        "slow_rank_timeout", Grade.ECHO, "collective_mismatch", "rank_crashed", tag="waits"),
    # EI0005: 2025-10-02-18:15:21 The arguments for collective communication are inconsistent between ranks
    row(r"\bEI0005: |\[InitChannelStage\]\[ParameterConflict\]|CMD information .{0,120}check fail|"
        r"arguments for collective communication are inconsistent", "collective_mismatch", Grade.LIKELY,
        "version_mismatch"),
    # EI0004: 2025-10-02-18:15:21 The ranktable is invalid
    row(r"\bEI00(?:04|14): |\[InitGroupStage\]\[Ranktable(?:Check|Config)\]|superPod\[\S{0,60}\] ?is already "
        r"exist", "rendezvous_misconfig", Grade.LIKELY, "launcher_mismatch",
        meaning="the rank table is wrong, or two ranks have one NPU or one id"),
    # [topoinfo_exchange_server.cc:314] [5590][Get][Connection]topo exchange server get socket timeout! timeout[3600 s]
    row(r"topo exchange server get socket timeout|\bEI0015: ", "rank_missing", Grade.POSSIBLE, "firewall",
        "rendezvous_misconfig", "rank_crashed", tag="store",
        meaning="not all ranks connected to the root: did they start, and do they reach it?"),
    # [topoinfo_exchange_agent.cc:12] topo exchange agent get socket timeout! timeout[120 s]
    row(r"topo exchange agent get socket timeout", "rendezvous_misconfig", Grade.POSSIBLE, "firewall", "wrong_nic",
        "rank_crashed", tag="store", meaning="a rank does not reach the root rank: another address, or a firewall"),
    # EI0008: 2025-10-02-18:15:21 The HCCL versions are inconsistent: tag ...
    row(r"\bEI0008: |\[InitChannelStage\]\[VersionConflict\]", "version_mismatch", Grade.CERTAIN),
    # EI0013: 2025-10-02-18:15:21 An error CQE occurred during operator execution.
    row(r"\bEI0013: |\b[Ee]rror CQE\b|\bROCE CQE ERROR", "ib_fabric", Grade.LIKELY, "roce_congestion",
        "rank_crashed", meaning="an NPU's RoCE port gets no answer: link, switch, address or the other rank",
        look="hccn_tool -i 0 -link -g"),
    # EI0012: 2025-10-02-18:15:21 SDMA memory copy task exception occurred.
    row(r"\bEI0012: |SDMA memory copy task exception", "gpu_fault", Grade.LIKELY, "rank_crashed",
        meaning="a copy between NPUs failed", look="npu-smi info"),
    # EL0004: 2025-10-02-18:15:21 Failed to allocate memory.
    row(r"\bEL0004: ", "gpu_oom", Grade.CERTAIN, "rank_crashed", tag="memory",
        meaning="an NPU's memory is full", look="npu-smi info"),
    # RuntimeError: createHCCLComm:.../ProcessGroupHCCL.cpp:12 HCCL function error: HcclCommInitRootInfo, error code 9
    row(r"HCCL function error|ERR02200 DIST", "", Grade.ECHO, tag="system"),
    # RuntimeError: oneCCL: ze_fd_manager.cpp:143 init_device_fds: EXCEPTION: opendir failed: could not open device
    row(r"init_device_fds: .{0,80}opendir failed|could not open device directory", "container_isolation", Grade.LIKELY,
        "ptrace_refused", meaning="the container lacks /dev/dri/by-path, by which oneCCL finds the GPUs: start it with"
        " -v /dev/dri/by-path:/dev/dri/by-path", look="ls -l /dev/dri/by-path"),
    # |CCL_ERROR| global.cpp:150 getenv_local_coord: failed to get local_idx/count from ATL, set CCL_ZE_IPC_EXCHANGE=
    row(r"failed to get local_idx/count from ATL", "launcher_mismatch", Grade.POSSIBLE, "container_isolation",
        meaning="oneCCL does not learn from the launcher which ranks are on one node",
        fix="export CCL_ZE_IPC_EXCHANGE=sockets"),
    # |CCL_ERROR| internal_kvs.cpp:42 kvs_set_value: condition can_use_internal_kvs() failed
    row(r"can_use_internal_kvs\(\) failed", "launcher_mismatch", Grade.LIKELY, "rendezvous_misconfig",
        meaning="CCL_KVS_MODE or CCL_PROCESS_LAUNCHER names another launcher than the one that started the ranks",
        look="env | grep CCL_"),
    # ze_data was not initialized
    row(r"ze_data was not initialized|ZE_RESULT_ERROR_UNINITIALIZED|No (?:XPU|SYCL|Level.?Zero) devices? "
        r"(?:are |were )?(?:available|found)", "gpu_mapping", Grade.POSSIBLE,
        "container_isolation", "driver_insufficient",
        meaning="the rank sees no Intel GPU: ZE_AFFINITY_MASK, /dev/dri or the driver", look="sycl-ls"),
    # |CCL_ERROR| pmi_resizable_simple_internal.cpp kvs_get_value: KVS get error: timeout
    row(r"KVS (?:get|set) error|kvs_get_value: .{0,60}timeout", "rendezvous_misconfig", Grade.POSSIBLE, "rank_crashed",
        "firewall", tag="store", meaning="a rank did not find the address of another one in oneCCL's store"),
    # RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)
    row(r"(?:ZE|UR)_RESULT_ERROR_DEVICE_LOST|PI_ERROR_DEVICE_LOST", "gpu_fault", Grade.CERTAIN, "software_bug",
        look="sudo journalctl -k -g 'i915|xe '"),
    # Error code: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
    row(r"(?:ZE|UR)_RESULT_ERROR_OUT_OF_DEVICE_MEMORY|PI_ERROR_OUT_OF_RESOURCES|UR_RESULT_ERROR_OUT_OF_RESOURCES",
        "gpu_oom", Grade.CERTAIN, "rank_crashed", tag="memory", look="xpu-smi discovery"),
    # kernel: i915 0000:4d:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python3 [4021]
    row(r"(?:i915|xe) .{0,80}(?:GPU HANG|[Ee]ngine reset|GT reset|GuC .{0,40}(?:fail|timeout|reset)|declared wedged)",
        "gpu_fault", Grade.LIKELY, "rank_crashed", "software_bug", look="sudo journalctl -k -g 'i915|xe '"),
    # rdma_context.cpp:198] Failed to register memory 0x7f56e6600000: Cannot allocate memory [12]
    row(r"Failed to register (?:\w{1,8} )?memory .{0,200}(?:Cannot allocate memory|\[12\])", "memlock_limit",
        Grade.POSSIBLE, "gpudirect_rdma", "rank_crashed", tag="memlock"),
    # rdma_context.cpp:198] Failed to register memory 0x7f56e6600000: Bad address [14]
    row(r"Failed to register (?:\w{1,8} )?memory .{0,200}(?:Bad address|Invalid argument|[Nn]ot supported|"
        r"Input/output error|out of range|\[(?:14|22|34|5|95)\])", "gpudirect_rdma", Grade.LIKELY, "memlock_limit",
        "software_bug", meaning="the HCA cannot register this memory: GPU memory needs nvidia-peermem or DMA-BUF"),
    # rdma_endpoint.cpp:219] Peer nic not found in that server: 10.1.0.9:16650@mlx5_5
    row(r"Peer nic not found in that server|No matched device found|(?:RDMA|rdma) device \S{1,60} (?:is )?not found",
        "ib_wrong_hca", Grade.LIKELY, "container_isolation", "version_mismatch",
        meaning="a node does not have the HCA that was named for it", look="ibdev2netdev"),
    # transfer_metadata.cpp:412] Failed to retrieve segment descriptor, name 10.1.0.9:16650
    row(r"Failed to (?:get|retrieve) segment desc\w{0,8}|received packet mismatch", "rendezvous_misconfig",
        Grade.POSSIBLE, "rank_crashed", "firewall", tag="store", meaning="the metadata of another engine is not there,"
        " or is that of an earlier run: did it start, and under this address?"),
    # ucp_context.c:1268 UCX  WARN  transports 'cuda_ipc','cuda_copy' are not available, please use one or more of: mm
    row(r"transports? '(?:cuda|rocm|ze)_\w{2,8}'.{0,60} (?:is|are) not available", "gpudirect_rdma", Grade.POSSIBLE,
        "version_mismatch", "driver_insufficient", context=True, explains=_NIXL,
        meaning="this UCX was built without the GPU's support: GPU memory cannot be registered", look="ucx_info -d"),
    # nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND
    row(r"NIXL_ERR_(?:BACKEND|NOT_SUPPORTED|NOT_ALLOWED)\b", "rank_crashed", Grade.ECHO, "gpudirect_rdma",
        "version_mismatch", "software_bug", tag="nixl", kind="exception",
        meaning="UCX, beneath NIXL, failed: its own lines are above, or come with UCX_LOG_LEVEL=info"),
    # nixl_agent.cpp:359] getXferStatus: status NIXL_ERR_REMOTE_DISCONNECT
    row(r"NIXL_ERR_REMOTE_DISCONNECT|NIXL_ERR_CANCELED", "rank_crashed", Grade.ECHO, "firewall", "ib_fabric",
        tag="gone"),
    # libfabric:85:1747438790::core:core:fi_getinfo_():1392<warn> fi_getinfo: provider efa output empty list
    row(r"fi_getinfo: provider \w{1,20} output empty list", "net_plugin", Grade.POSSIBLE, "container_isolation",
        "version_mismatch", meaning="libfabric's provider finds no device on this node, or in this container",
        look="fi_info -l", passing=True),
    # fastrak_gpumem_manager: Number of GPUs detected in the PCI tree 7 is not equal to the actual number of GPUs 8
    row(r"(?i)\b(?:tcpxo?|fastrak|rxdm)[\w-]{0,30}:? .{0,200}(?:exited with code [1-9]|is not equal|version mismatch|"
        r"failed to (?:start|initiali[sz]e))", "net_plugin", Grade.LIKELY, "container_isolation", "gpu_fault",
        explains=frozenset({"connect"}),
        meaning="the daemon beside Google's network plug-in (TCPX, TCPXO) did not start: its own log has the reason"),
    # libfabric:85::efa:cq:efa_rdm_cq_poll():12<warn> err: 9, message: Unresponsive receiver (reachable by EFA device
    row(r"Unresponsive receiver|Unreachable remote\b|libfabric:\d.{0,200}(?:Destination unreachable|remote abort)",
        "ib_fabric", Grade.POSSIBLE, "rank_crashed", "firewall", "routing", tag="ib",
        meaning="the other end does not answer over EFA: its rank ended, or the security group blocks it"),
)  # fmt: skip
