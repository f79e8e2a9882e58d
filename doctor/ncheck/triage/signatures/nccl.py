"""NCCL's messages about ranks, versions, sizes and plug-ins. Source file and line differ by release: never matched."""

from __future__ import annotations

from ncheck.triage.certainty import Grade
from ncheck.triage.signature import row

_RAS_PORT = frozenset({"own-port"})

SIGNATURES = (
    # Mismatched NCCL version detected : rank 3 version 22705 rank 0 version 22703
    row(r"Mismatched NCCL version detected", "version_mismatch", Grade.CERTAIN),
    # Duplicate GPU detected : rank 2 and rank 3 both on CUDA device 3b000
    row(r"Duplicate GPU detected", "gpu_mapping", Grade.CERTAIN),
    # Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.
    row(r"Multiple Ranks are using the same GPU", "gpu_mapping", Grade.CERTAIN),
    # NCCL WARN Invalid CUDA device index 4 (should be between 0 and 3)
    row(r"Invalid CUDA device index", "gpu_mapping", Grade.CERTAIN),
    # NCCL WARN Bootstrap Root : rank 1 of 4 ranks has already checked in
    row(r"ranks has already checked in", "rendezvous_misconfig", Grade.CERTAIN),
    # NCCL WARN Bootstrap Root : mismatch in rank count from procs 8 : 16
    row(r"Bootstrap Root : mismatch in (?:rank count|info) from procs", "rendezvous_misconfig", Grade.CERTAIN),
    # NCCL WARN Invalid rank requested : 8/8
    row(r"Invalid rank requested :", "rendezvous_misconfig", Grade.CERTAIN),
    # NCCL WARN socketFinalizeAccept: wrong type 4 != 3
    row(r"socketFinalizeAccept.*: wrong (?:type|magic)|socket magic mismatch",
        "version_mismatch", Grade.POSSIBLE, "software_bug", "rendezvous_misconfig", tag="gone",
        meaning="a program that does not use this NCCL's protocol connected: another version, another job, or a port"
                " scanner"),
    # NCCL WARN Message truncated : received 1024 bytes instead of 256
    row(r"Message truncated : received [\d,]+ bytes instead of", "version_mismatch", Grade.POSSIBLE,
        "software_bug", "collective_mismatch"),
    # NCCL WARN NET/Socket : peer 10.1.0.2<40001> message truncated : receiving 8192 bytes instead of 4096.
    row(r"message truncated : receiving \d+ bytes instead of", "collective_mismatch", Grade.LIKELY, "version_mismatch"),
    # NCCL WARN NET/IB : req 0/1 tag 7 peer 10.1.0.3<40111> collective mismatch error, local size 4096 remote size 8192
    row(r"collective mismatch error", "collective_mismatch", Grade.POSSIBLE, "version_mismatch",
        meaning="two ranks do not expect the same number of bytes: another collective, or other NCCL variables"),
    # NCCL WARN Mismatched collective detected, please check your collective calls at and around rank 3.
    row(r"Mismatched collective detected|may be caused by a collective mismatch around rank",
        "collective_mismatch", Grade.CERTAIN),
    #   Communicator ranks have different AllReduce operation counts
    row(r"ranks have different \w+ operation counts", "collective_mismatch", Grade.POSSIBLE,
        "slow_rank_timeout", "rank_crashed"),
    # NCCL WARN Bootstrap : no socket interface found
    row(r"Bootstrap ?: no socket interface found|NET/Socket ?: no interface found|NET/IB ?: No IP interface found",
        "no_interface", Grade.CERTAIN, "nic_names_differ", "wrong_nic", tag="interface"),
    # NCCL WARN NET/Socket : No usable listening interface found
    row(r"No usable listening interface found", "no_interface", Grade.LIKELY, "container_isolation", "wrong_nic"),
    # NCCL WARN Net : No interface found in the same subnet as remote address 10.1.0.7<41000>
    row(r"No interface found in the same subnet as remote address", "container_isolation", Grade.LIKELY,
        "wrong_nic", "no_interface", explains=frozenset({"bind"})),
    # NCCL WARN Socket creation failed : Address family not supported by protocol
    row(r"Socket creation failed ?: Address family not supported", "no_interface", Grade.LIKELY, "container_isolation"),
    # NCCL WARN Call to bind failed: Cannot assign requested address
    row(r"Call to bind failed ?: Cannot assign requested address", "container_isolation", Grade.LIKELY,
        "wrong_nic", "no_interface", tag="bind"),
    # NCCL WARN Call to bind failed: Address already in use
    row(r"Call to bind failed ?: Address already in use", "port_in_use", Grade.POSSIBLE, tag="own-port", passing=True),
    # NCCL INFO RAS failed to establish a client listening socket at localhost:28028
    row(r"RAS failed to establish a client listening socket", "", context=True, explains=_RAS_PORT),
    # NCCL WARN ncclSocketInit: connecting to address  with family 0 is neither AF_INET(2) nor AF_INET6(10)
    row(r"with family \d+ is neither AF_INET", "version_mismatch", Grade.POSSIBLE,
        "no_interface", "net_plugin", "software_bug",
        meaning="a rank sent no address: it has no interface, or uses another version or plug-in"),
    # NCCL WARN Error: network IB not found.
    row(r"Error ?: network [\w ]{1,40} not found|Failed to initialize any NET plugin", "ibverbs_missing", Grade.LIKELY,
        "net_plugin", "container_isolation", "ib_fabric",
        meaning="NCCL finds no device for the network that NCCL_NET names"),
    # NCCL WARN NET/OFI Unable to find a protocol that worked. Failing initialization.
    row(r"NET/OFI (?:Unable to find a protocol|Could not find any optimal provider|Unable to insert remote address)",
        "net_plugin", Grade.LIKELY, "firewall"),
    # NCCL INFO NET/Plugin: /opt/x/libnccl-net.so: undefined symbol: ibv_query_ece
    row(r"(?:NET/Plugin|libnccl-net|nccl-net).{0,300}undefined symbol", "net_plugin", Grade.LIKELY, "version_mismatch"),
    # NCCL WARN NET/Plugin: Failed to initialize ncclNetPlugin_v8 plugin
    row(r"NET/Plugin ?: .*(?:[Ff]ailed to init|init failed)", "net_plugin"),
    # python3: symbol lookup error: /usr/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister
    row(r"undefined symbol: (?:p?nccl\w+|cu\w+|_ZN\w+)|symbol lookup error:", "version_mismatch", Grade.CERTAIN,
        "software_bug", meaning="a library lacks a function that another one calls: two versions are mixed"),
    # OSError: libnccl.so.2: cannot open shared object file: No such file or directory
    row(r"lib(?:nccl|cudart|cublas|torch\w*|c10)\.so[.\d]*: cannot open shared object file", "version_mismatch",
        Grade.LIKELY, "software_bug", meaning="the program does not find a library that it needs"),
    # /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /opt/nccl/lib/libnccl.so.2)
    row(r"version [`'](?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found", "version_mismatch", Grade.CERTAIN),
    # NCCL WARN P2P is disabled between NVLINK connected GPUs 3 and 5. This should not be the case given ...
    row(r"P2P is disabled between NVLINK connected GPUs", "gpu_fault", Grade.LIKELY, "fabric_manager",
        "p2p_unsupported"),
    # NCCL WARN P2P is disabled between connected GPUs 0 and 1. You can repress this message with ...
    row(r"P2P is disabled between connected GPUs", "p2p_unsupported", Grade.POSSIBLE, "p2p_acs_iommu", passing=True),
    # NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!
    row(r'Missing "iommu=pt" from kernel command line', "p2p_acs_iommu", Grade.POSSIBLE, "p2p_unsupported",
        passing=True, look="cat /proc/cmdline"),
    # NCCL WARN socketProgress: Connection closed by remote peer node07<40113>
    row(r"Connection closed by (?:remote )?peer", "rank_crashed", Grade.ECHO,
        "software_bug", "firewall", tag="gone"),
    # NCCL WARN socketProgressOpt: Call to recv from 10.1.0.3<40113> failed : Connection reset by peer
    row(r"Call to (?:recv|send)(?: from| to)? .{0,300}(?:reset by peer|Broken pipe)", "rank_crashed", Grade.ECHO,
        "firewall", tag="gone"),
    # NCCL WARN Socket recv failed while polling for opId=0x7f21aa00
    row(r"Socket recv failed while polling|Socket recv failed$|\[Proxy Service[^\]]*\] Failed to execute operation",
        "", Grade.ECHO, tag="gone"),
    # ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
    row(r"ncclRemoteError|remote process exiting prematurely", "rank_crashed", Grade.ECHO, "ib_fabric", "firewall",
        tag="gone"),
    # RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:911, unhandled system error, NCCL version 2.14.3
    row(r"unhandled system error|NCCL failure .*'internal error", "", Grade.ECHO, tag="system"),
    # torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, unhandled cuda error, NCCL version 2.17.1
    row(r"unhandled cuda error", "", Grade.ECHO, tag="cuda"),
    # NCCL WARN NCCL version mismatch with remote peer 10.1.0.3<40001> (local: 22703, remote 22705)
    row(r"NCCL version mismatch with remote peer|[Cc]ompile and runtime version mismatch|"
        r"NCCL library is (?:too old|not backwards compatible)|compiled with too old version of NCCL|"
        r"Detected memory sentinel mismatch|Retrieve \S{1,60} version \d+ failed with|XML (?:Topology|Graph) has wrong "
        r"version|XML Mismatch :",
        "version_mismatch", Grade.CERTAIN, "software_bug"),
    # NCCL WARN Detected mixed local Net device counts across ranks (min 1, max 2). Set NCCL_IGNORE_NET_MISMATCH=1 to
    row(r"Detected mixed local (?:Coll)?Net device counts across ranks", "ib_wrong_hca", Grade.LIKELY,
        "ibverbs_missing", "container_isolation", "ib_fabric",
        meaning="the ranks do not see the same number of network devices: an HCA is missing or down on a node",
        look="ibdev2netdev"),
    # NCCL WARN Rank 3 requires NIC 1 but that NIC is not available for rank 5
    row(r"[Rr]ank \d+ requires NIC \d+ but that NIC is not available|Could not find NIC for rank \d+ in NVLS graph|"
        r"Could not find (?:NET|net) (?:with )?id [0-9a-f]+|Invalid number of network devices = ",
        "ib_wrong_hca", Grade.LIKELY, "ibverbs_missing", "container_isolation", "software_bug",
        meaning="the nodes do not have the same NICs for NCCL", look="ibdev2netdev"),
    # NCCL WARN no device found matching eth9, verify NCCL_OOB_NET_IFNAME
    row(r"no device found (?:matching|after excluding) .{0,200}verify NCCL_OOB_NET_IFNAME|No GIN-capable devices found|"
        r"Invalid NCCL_COMM_ID, please use format|No valid (?:<IPv4_or_hostname>|\[IPv6\]):<?port>? pair found",
        "no_interface", Grade.LIKELY, "rendezvous_misconfig", "nic_names_differ"),
    # NCCL WARN Net : error encountered when getting address info : Name or service not known
    row(r"error encountered when getting address info", "dns_failure", Grade.CERTAIN, "rendezvous_misconfig",
        look='getent hosts "$MASTER_ADDR"'),
    # NCCL WARN Net : unsupported IP family
    row(r"Net : unsupported IP family", "no_interface", Grade.LIKELY, "gloo_bad_address"),
    # NCCL WARN nvmlInit_v2() failed: Driver/library version mismatch
    row(r"nvmlInit\w*\(\) failed|Failed to open libnvidia-ml\.so|"
    r"nvmlDeviceGet\w{1,40}(?:\([\d,A-Z_]{0,60}\))? failed: |"
        r"NVML failure '|CUDA Driver version found is \d+\. Minimum requirement|cuDriverGetVersion failed|"
        r"Failed to load CUDA missing symbol|due to old driver|Retrieve \S{1,60} failed with \d+ status",
        "driver_insufficient", Grade.LIKELY, "gpu_fault", "container_isolation",
        meaning="NCCL cannot use the NVIDIA driver: too old, not running, or not in the container"),
    # NCCL WARN nvmlDeviceGetHandleByIndex(3) failed: GPU is lost
    row(r"nvmlDeviceGet\w{1,60}.{0,40} failed: (?:GPU is lost|Unknown Error)|Failed to get PCI info from NVML|"
        r"reported more devices \(\d+\) than the internal maximum",
        "gpu_fault", Grade.LIKELY, "driver_insufficient"),
    # NCCL WARN failed to peer with device 3(=3b000): 217 peer access is not supported between these two devices
    row(r"failed to peer with device \d+|cudaIpc(?:Get|Open)MemHandle failed|Could not map \S{1,100} size|"
        r"No transport found (?:for rank|!)|Error no transport for|has no transport for",
        "p2p_unsupported", Grade.POSSIBLE, "p2p_acs_iommu", "container_isolation", "peer_limit",
        meaning="two GPUs of a node cannot share memory, and NCCL has no other path between them"),
    # NCCL WARN UDS: Sending data over socket /tmp/nccl-socket-3-1a2b failed : Connection refused (111)
    row(r"UDS: (?:Binding to|Sending data over|Receiving data over) socket|UDS: Socket creation error|"
        r"ncclProxy(?:CallBlockingUDS|ClientGetFd|ClientQueryFdBlocking|ClientConvertFd) call to",
        "container_isolation", Grade.POSSIBLE, "same_hostname", "rank_crashed", tag="uds",
        meaning="ranks that NCCL takes for one machine cannot reach each other's local socket: separate containers"),
    # NCCL WARN Failed to determine local ranks rank 3 hostHash 1a2b pidHash 3c4d localRank 0 localRanks 0
    row(r"Failed to determine (?:local|intra)\w* ?(?:proc )?ranks|not found in the list of system hostHashes|"
        r"should be a diviser of the number of ranks in node|could not find rank for nvml dev",
        "same_hostname", Grade.LIKELY, "software_bug", "container_isolation",
        meaning="NCCL cannot determine which ranks are on one machine", look="hostname"),
    # NCCL WARN [Proxy service] Too many connections (256 max)
    row(r"\[Proxy [Ss]ervice\] Too many connections", "nofile_limit", Grade.POSSIBLE, "software_bug", "peer_limit"),
    # OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 64: Operation not permitted
    row(r"(?:Thread creation failed|pthread_create failed).{0,80}Operation not permitted", "container_isolation",
        Grade.LIKELY, "version_mismatch", "process_limit", meaning="the container's filter of system calls refuses a"
        " new thread (EPERM), which is no limit: an older docker with a newer libc needs"
        " --security-opt seccomp=unconfined", look="docker version"),
    # NCCL WARN Thread creation failed: Resource temporarily unavailable
    row(r"(?:Thread creation failed: |pthread_create failed)(?!.{0,80}Operation not permitted)|"
        r"can't start new thread|unable to create (?:native )?thread|"
        r"fork: (?:retry: )?Resource temporarily unavailable|资源暂时不可用|"
        r"cgroup: fork rejected by pids controller|"
        r"BlockingIOError: \[Errno 11\] Resource temporarily unavailable|libgomp: Thread creation failed",
        "process_limit", Grade.LIKELY, "rank_crashed"),
    # NCCL WARN Unrecoverable error detected: malloc(size=4096) returned null.
    row(r"Unrecoverable error detected: malloc|Failed to malloc \d+ bytes|Intrusive address map .{0,60}returned null",
        "rank_crashed", Grade.LIKELY, kind="memory", meaning="a rank could not allocate host memory", look="free -h"),
    # NCCL WARN Failed to CUDA host alloc 4194304 bytes
    row(r"Failed to CUDA host alloc", "memlock_limit", Grade.POSSIBLE, "gpu_oom", "rank_crashed"),
    # NCCL WARN Failed to CUDA malloc 4194304 bytes
    row(r"Failed to CUDA (?:malloc|calloc async)", "gpu_oom", Grade.LIKELY, "rank_crashed", tag="memory"),
    # NCCL WARN AllReduce : invalid root 8 (root should be in the 0..8 range)
    row(r"invalid root \d+ \(root should be in the|invalid reduction operation \d|: invalid type \d|"
        r"argument is NULL|is not a valid pointer|mismatchs with NCCL device|Data type supplied to user-created|"
        r"Trying to (?:send|recv) to self without|peer \d+ is not within valid range of ranks|"
        r"mixing different streams within a group|improper usage of ncclCommInitRank|"
        r"Attempt to use communicator before the previous operation|has already been destroyed|"
        r"corrupted comm object detected|invalid device count \(?\d+\)? requested|Invalid device count requested",
        "collective_mismatch", Grade.POSSIBLE, "rank_crashed", "gpu_mapping", "software_bug",
        meaning="the program calls NCCL with a wrong argument: rank, device, pointer or type"),
    # NCCL WARN NET/IB : req 0/1 tag 3 peer 10.1.0.3<40001> posted incorrect receive info: size 4096 addr 7f rkeys[0]=0
    row(r"posted incorrect receive info: size|symmetric registration check failed on rank|"
        r"Elastic GIN: rank \d+ .{0,80}(?:another rank has|differs from)|Comm config netName .{0,80}does not match",
        "collective_mismatch", Grade.POSSIBLE, "version_mismatch", "software_bug"),
    # NCCL WARN NCCL cannot be captured in a graph if either it wasn't built with CUDA runtime >= 11.3
    row(r"NCCL cannot be captured in a graph|CUMEM (?:Host is )?not supported prior to CUDA|"
        r"FP8 reduction support begins with|requires CUDA driver \d+\.\d+ or later",
        "driver_insufficient", Grade.LIKELY, "version_mismatch", "arch_unsupported"),
    # NCCL WARN No algorithm/protocol available for function AllReduce with datatype ncclFloat32.
    row(r"[Nn]o algorithm/protocol available|NCCL_ALGO=\w+ .{0,60}(?:not supported|ignoring)|"
    r"Unknown pattern for collective|"
        r"Could not find (?:intermediate GPU|any local path from gpu)|Internal error : tree already has",
        "software_bug", Grade.POSSIBLE, "version_mismatch", "launcher_mismatch",
        meaning="NCCL finds no algorithm for this machine: variables that limit it, or a bug", look="env | grep NCCL_"),
    # NCCL WARN NET/IB: Fatal error. Detected 1 failed devices out of 2 devices on the send communicator (comm=0x1).
    row(r"NET/IB: (?:Fatal error\. Detected \d+ failed devices|Device \d+ marked as failed|The error is fatal)|"
        r"async fatal event on (?:QP|CQ|SRQ)|"
        r"Could not find a (?:functional device|replacement QP)",
        "ib_fabric", Grade.LIKELY, "gpudirect_rdma", look="ibstat"),
    # NCCL WARN NET/IB : Unable to query port_num 1
    row(r"NET/IB : Unable to query (?:device|port)", "ib_fabric", Grade.POSSIBLE, "container_isolation", "ib_wrong_hca",
        look="ibstat"),
    # NCCL WARN gdr_pin_buffer(addr 7f0000, size 65536) failed: 22
    row(r"\bgdr_(?:pin_buffer|map|open|get_info)\w{0,10}\(.{0,200}failed: |GDRCOPY failure \d|"
        r"Peermem is not supported, and device \d+ does not support DMA-BUF",
        "gpudirect_rdma", Grade.LIKELY, "driver_insufficient", look="lsmod | grep -E 'gdrdrv|nvidia_peermem'"),
    # NCCL WARN ncclOsSocketResetFd: socket() failed with error 24: Too many open files
    row(r"socket\(\) failed with error", "nofile_limit", Grade.POSSIBLE, "no_interface", "rank_crashed", tag="port"),
    # ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
    row(r"ncclSystemError|ncclInternalError|ncclUnhandledCudaError|ncclInvalidUsage|ncclInvalidArgument|"
        r"NCCL communicator was aborted on rank \d+|NCCL communicator encountered error|"
        r"(?:unhandled (?:nccl|NCCL) error|invalid usage|internal error|invalid argument), NCCL version|"
        r"communicator encountered a fatal error|Comm 0x[0-9a-f]{1,16} is in abort state",
        "", Grade.ECHO, tag="system"),
    # NCCL WARN [Service thread] Error encountered progressing operation=Connect, res=3, closing connection
    row(r"\[Service thread\] (?:Error encountered progressing|Could not receive type from localRank)|"
        r"NET/Socket : socket progress error|[Pp]roxy append mismatch|ncclAsyncJobComplete: job",
        "", Grade.ECHO, tag="gone"),
    # NCCL WARN Call to ibv_poll_cq() returned -1
    row(r"Call to ibv_poll_cq\(?\)? (?:returned|failed)|ibv_post_(?:send|recv)\(\) failed with error|"
        r"NET/IB: Got CQE with error|Maximum number of probing attempts",
        "ib_fabric", Grade.POSSIBLE, "rank_crashed", "gpudirect_rdma", tag="ib"),
    # NCCL WARN Attribute coll of node net not found
    row(r"Attribute \S{1,60} of node \S{1,60} not found|No path computed to go from|could not find CPU close to GPU|"
        r"Could not open XML (?:graph|topology)? ?file|NCCL WARN XML (?:Parse|Import|Export)\b|"
        r"Failed to find reverse path|"
        r"XML parser is limited to|Error : ring \d+ does not (?:loop back|contain)|GetXmlFromCpu :",
        "software_bug", Grade.POSSIBLE, "container_isolation", "version_mismatch",
        passing=True, meaning="NCCL cannot read the machine's topology: a topology file, a virtual machine, or a bug",
        look="env | grep -E 'NCCL_(TOPO|GRAPH)'"),
    # NCCL WARN Multicast support requested for team but none available on system.
    row(r"[Mm]ulticast support requested .{0,40}but none available|[Mm]ultimem pointer requested but system does not|"
        r'NCCL_NVLS_ENABLE has been set to "\d" and communicator has multiple ranks using the same',
        "nvls_failure", Grade.LIKELY, "fabric_manager", "gpu_mapping"),
    # NCCL WARN ncclGroupEnd: not in a group call.
    row(r"ncclGroupEnd: not in a group call|argument (?:must be initialized|not initialized) via NCCL_|"
        r"Inval(?:id|ig) config \w{1,40}|communicators? .{0,40}must either be all uncaptured|"
        r"(?:[Bb]locking and nonblocking|none or all) communicators .{0,40}(?:same group|graph captured)",
        "rank_crashed", Grade.LIKELY, "software_bug", kind="exception",
        meaning="the program calls NCCL in a way that it does not accept", look="export NCCL_DEBUG=INFO"),
    # NCCL WARN ncclCommGrow: new rank 9 exceeds total ranks 8
    row(r"ncclCommGrow: |Bootstrap Root : localId \d+ is out of range|Group creation failed: \d+ vs \d+",
        "rendezvous_misconfig", Grade.LIKELY, "version_mismatch"),
    # NCCL WARN Invalid device 8 (totalnDev=8)
    row(r"Invalid device \d+ \(totalnDev|rank \d+ exceeds ndev=", "gpu_mapping", Grade.CERTAIN),
    # NCCL WARN TOPO/NET : Could not force merge NICs mlx5_0+mlx5_9. Please specify a valid NCCL_NET_FORCE_MERGE string.
    row(r"TOPO/NET : (?:Could not force merge|Only matched|Tried to merge)|Specified fused NIC |"
        r"Can't make virtual NIC with 0|[Ff]using NET devices .{0,60}not supported",
        "ib_wrong_hca", Grade.LIKELY, "ib_fabric", meaning="NCCL cannot merge the NICs that NCCL_NET_FORCE_MERGE names",
        look="ibdev2netdev"),
    # mpiexec: Symbol `orte_schizo' has different size in shared object, consider re-linking
    row(r"Symbol [`'].{1,120}' has different size in shared object", "version_mismatch", Grade.LIKELY, "software_bug",
        passing=True,
        meaning="a program runs with another version of a library than it was built with",
        look="ldd $(command -v mpirun)"),
    # NCCL WARN NET/OFI aws-ofi-nccl initialization failed
    row(r"NET/\w{2,12} .{0,120}(?:initialization failed|init failed)|NCCL WARN NET/OFI (?!Request |Only |No NIC)"
        r".{0,200}(?:[Ff]ailed|Couldn't|Unable to|ERROR: )", "net_plugin", Grade.LIKELY, "no_interface",
        "memlock_limit", passing=True, look="fi_info -l"),
    # NCCL WARN NET/OFI Request completed with error. RC: 107
    row(r"NET/OFI Request .{0,80}completed with error", "ib_fabric", Grade.POSSIBLE, "rank_crashed", "net_plugin",
        tag="ib"),
)  # fmt: skip
