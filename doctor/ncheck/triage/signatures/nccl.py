"""NCCL's messages about ranks, versions, sizes and plug-ins. Source file and line differ by release: never matched."""

from __future__ import annotations

from ncheck.triage.signature import Grade, row

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
    row(r"rank \d+ of \d+ ranks has already checked in", "rendezvous_misconfig", Grade.CERTAIN),
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
    row(r"Message truncated : received \d+ bytes instead of", "version_mismatch", Grade.POSSIBLE,
        "software_bug", "collective_mismatch"),
    # NCCL WARN NET/Socket : peer 10.1.0.2<40001> message truncated : receiving 8192 bytes instead of 4096.
    row(r"message truncated : receiving \d+ bytes instead of", "collective_mismatch", Grade.LIKELY, "version_mismatch"),
    # NCCL WARN NET/IB : req 0/1 tag 7 peer 10.1.0.3<40111> collective mismatch error, local size 4096 remote size 8192
    row(r"collective mismatch error", "collective_mismatch", Grade.LIKELY, "version_mismatch"),
    # NCCL WARN Mismatched collective detected, please check your collective calls at and around rank 3.
    row(r"Mismatched collective detected|may be caused by a collective mismatch around rank",
        "collective_mismatch", Grade.CERTAIN),
    #   Communicator ranks have different AllReduce operation counts
    row(r"ranks have different \w+ operation counts", "collective_mismatch", Grade.POSSIBLE,
        "slow_rank_timeout", "rank_crashed"),
    # NCCL WARN Bootstrap : no socket interface found
    row(r"Bootstrap ?: no socket interface found|NET/Socket ?: no interface found|NET/IB ?: No IP interface found",
        "no_interface", Grade.CERTAIN, "nic_names_differ", "wrong_nic"),
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
    row(r"Error ?: network \S+ not found|Failed to initialize any NET plugin", "ibverbs_missing", Grade.LIKELY,
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
        passing=True, fix="cat /proc/cmdline"),
    # NCCL WARN socketProgress: Connection closed by remote peer node07<40113>
    row(r"Connection closed by (?:remote )?peer|Connection closed by localRank", "rank_crashed", Grade.ECHO,
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
)  # fmt: skip
