"""InfiniBand and RoCE: completions, queue pairs, locked memory and devices, as NCCL, UCX and the kernel print them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ncheck.expression import expression
from ncheck.parse.kernel_lines import HCA_SICK, HCA_TIMEOUT
from ncheck.triage.certainty import Grade
from ncheck.triage.signature import LineClue, Signature, row

# By ibv_wc_status. 5 (flushed) follows an earlier error of the same queue pair.
_COMPLETIONS: Mapping[int, LineClue] = {
    1: LineClue("mtu_mismatch", Grade.POSSIBLE, ("collective_mismatch", "ib_fabric"), "ib"),
    4: LineClue("gpudirect_rdma", Grade.LIKELY, ("p2p_acs_iommu",), "ib",
                meaning="the HCA cannot access the GPU's memory: check PCIe ACS, the IOMMU and GPUDirect RDMA",
                fix="export NCCL_NET_GDR_LEVEL=LOC"),
    5: LineClue("ib_fabric", Grade.ECHO, ("rank_crashed",), "ib"),
    **dict.fromkeys((9, 10, 11), LineClue("gpudirect_rdma", Grade.LIKELY, ("p2p_acs_iommu", "ib_fabric"), "ib",
                                          fix="export NCCL_NET_GDR_LEVEL=LOC")),
    12: LineClue("ib_fabric", Grade.POSSIBLE, ("roce_gid", "ib_wrong_hca", "routing", "rank_crashed"), "ib",
                 meaning="the other HCA does not answer: cable, port, switch, GID or MTU, or its rank died"),
    13: LineClue("ib_fabric", Grade.POSSIBLE, ("rank_crashed", "roce_gid"), "ib"),
}  # fmt: skip

_ANY_COMPLETION = LineClue("ib_fabric", Grade.POSSIBLE, ("roce_gid",), "ib")

# NCCL names the GIDs for RoCE only: they are the first thing to look at.
_NO_ANSWER_BY_ROCE = LineClue("roce_gid", Grade.POSSIBLE,
                              ("ib_fabric", "roce_congestion", "ib_wrong_hca", "routing", "rank_crashed"), "ib",
                              meaning="the other NIC does not answer over RoCE: GID, VLAN or switch")  # fmt: skip


def _completion(match: re.Match[str]) -> LineClue:
    number = int(match[1])
    if number == 12 and "localGid" in match.string:  # noqa: PLR2004  as above
        return _NO_ANSWER_BY_ROCE
    return _COMPLETIONS.get(number, _ANY_COMPLETION)


# By errno or its text.
_NO_ANSWER = LineClue(
    "ib_fabric",
    Grade.POSSIBLE,
    ("roce_gid", "ib_wrong_hca", "routing"),
    "qp",
    meaning="the other HCA does not answer at its address: rail, cable, GID or route",
)

_QUEUE_PAIR = (
    (expression(r"110\b|timed out"), _NO_ANSWER),
    (expression(r"\b22\b|Invalid argument"), LineClue("roce_gid", Grade.LIKELY, ("ib_fabric", "ib_wrong_hca"), "qp")),
    (expression(r"\b19\b|No such device"), LineClue("ib_wrong_hca", Grade.LIKELY, ("container_isolation",), "qp")),
    (expression(r"\b101\b|unreachable"), LineClue("roce_gid", Grade.LIKELY, ("routing", "ib_wrong_hca"), "qp")),
    (expression(r"not permitted"), LineClue("container_isolation", Grade.LIKELY, ("gpudirect_rdma",), "qp")),
    (expression(r"\b61\b|No data"), LineClue("roce_gid", Grade.POSSIBLE, ("ib_fabric",), "qp")),
)


def _queue_pair(match: re.Match[str]) -> LineClue:
    return next((clue for pattern, clue in _QUEUE_PAIR if pattern.search(match[1])), _NO_ANSWER)


def _to_rtr(match: re.Match[str]) -> LineClue:
    """Return the clue of perftest and Mooncake: without an errno the GID is the most frequent cause."""
    unnamed = LineClue("roce_gid", Grade.POSSIBLE, ("ib_fabric", "routing"), "qp")
    return next((clue for pattern, clue in _QUEUE_PAIR if pattern.search(match["error"])), unnamed)


_IB = frozenset({"ib", "qp"})

_DEVICE_FAILED = LineClue("ib_fabric", Grade.LIKELY, ("gpudirect_rdma", "node_failed"),
                          meaning="the HCA failed: its firmware or hardware", look="sudo journalctl -k")  # fmt: skip
_PORT_DOWN = LineClue("ib_fabric", Grade.LIKELY, ("node_failed",), meaning="the port of an HCA went down")
_QUEUE_FAILED = LineClue("ib_fabric", Grade.LIKELY, ("gpudirect_rdma", "software_bug"),
                         meaning="a queue of the HCA failed", look="sudo journalctl -k -g mlx5")  # fmt: skip
_SUBNET_CHANGED = LineClue("ib_fabric", Grade.POSSIBLE, ("rank_crashed", "ib_partition"), passing=True,
                           meaning="the subnet manager changed while the job ran", look="sminfo")  # fmt: skip

# All events of libibverbs (ibv_event_type_str) that are, or may be, a failure.
_EVENTS: Mapping[str, LineClue] = {
    "local catastrophic error": _DEVICE_FAILED,
    "device fatal": _DEVICE_FAILED,
    "port error": _PORT_DOWN,
    "path migration request error": _PORT_DOWN,
    **dict.fromkeys(("cq error", "local work queue catastrophic error", "invalid request local work queue error",
                     "srq catastrophic error", "wq fatal", "qp fatal"), _QUEUE_FAILED),
    "local access violation work queue error": LineClue("mtu_mismatch", Grade.POSSIBLE, ("gpudirect_rdma",
                                                                                        "software_bug")),
    **dict.fromkeys(("lid change", "sm change", "client reregistration"), _SUBNET_CHANGED),
    "p_key change": LineClue("ib_partition", Grade.POSSIBLE, ("ib_fabric",), passing=True),
    "gid table change": LineClue("roce_gid", Grade.POSSIBLE, ("ib_fabric", "ib_wrong_hca"), passing=True,
                                 meaning="the addresses of a RoCE port changed while the job ran"),
}  # fmt: skip

SIGNATURES = (
    # NCCL WARN NET/IB: Got completion from peer 10.1.0.3<40001> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0 len=0
    Signature(
        expression(r"Got completion (?:from peer .{0,300}?)?with (?:error |status=(?:\w+\()?)(\d+)"), _completion
    ),
    # Completion with error at client / Failed status 12: wr_id 0 syndrom 0x81
    Signature(expression(r"Failed status (\d+): wr_id"), _completion),
    # NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT
    Signature(expression(r"ibv_modify_qp(?:\([^)]*\))? failed(?:: | with )?(?:error )?([^,]*)"), _queue_pair),
    # Failed to modify QP to RTR, check mtu, gid, peer lid, peer qp num: Connection timed out [110]
    Signature(expression(r"[Ff]ailed to modify QP\b.{0,40}to RT[RS]\b(?P<error>.{0,200})"), _to_rtr),
    # [1712000000.1] ib_mlx5_log.c:171 UCX ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81)
    row(r"[Tt]ransport retry count(?:er)? exceeded|Endpoint timeout", "ib_fabric", Grade.POSSIBLE, "roce_gid",
        "rank_crashed", tag="ib"),
    # NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory
    row(r"(?:ibv_(?:create_cq|create_qp|create_srq|reg_mr\w{0,30})|ibv_exp_\w{1,30}|mlx5dv_create_qp)\b"
        r".{0,300}Cannot allocate memory",
        "memlock_limit", Grade.POSSIBLE, "rank_crashed", "software_bug", tag="memlock"),
    # NCCL WARN Call to ibv_reg_mr failed
    row(r"Call to ibv_(?:reg_mr|create_cq|create_qp) failed *$", "memlock_limit", Grade.POSSIBLE, "rank_crashed",
        tag="memlock"),
    # Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)
    row(r"set max locked memory(?!.{0,80}current: unlimited)|libibverbs: Warning: RLIMIT_MEMLOCK is \d+ bytes|"
        r"allocate some locked memory|ulimit: (?:max )?locked memory: cannot modify limit|"
        r"max locked memory +\(kbytes, -l\) \d{1,6}$",
        "memlock_limit", Grade.LIKELY),
    # bash -c 'ulimit -l unlimited && ./alltoall_perf' | docker run --ulimit memlock=-1 | max locked memory unlimited
    row(r"ulimit -l unlimited|memlock=-1\b|max locked memory .{0,40}unlimited", "software_bug", Grade.POSSIBLE,
        "ib_fabric", "host_memory", "memlock_limit", context=True, explains=frozenset({"memlock"}),
        meaning="the HCA or its driver has no memory for another queue or region, and the log says that locked memory"
        " is not limited"),
    # NCCL WARN Call to ibv_create_qp failed with error Operation not permitted
    row(r"ibv_(?:create|open|alloc|query)_\w{1,20}\b.{0,200}(?:Operation not permitted|EPERM)", "container_isolation",
        Grade.LIKELY, "gpudirect_rdma", "software_bug", explains=frozenset({"memlock"}),
        meaning="the kernel does not permit the call, which is no limit: the container lacks the device or IPC_LOCK"),
    # NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address
    row(r"ibv_reg_(?:mr\w{0,30}|dmabuf_mr)\b.{0,300}"
        r"(?:Bad address|Invalid argument|[Nn]ot supported|Operation not permitted)",
        "gpudirect_rdma", Grade.LIKELY, "p2p_acs_iommu", fix="export NCCL_NET_GDR_LEVEL=LOC"),
    # NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
    row(r"GPU Direct RDMA Disabled for HCA", "gpudirect_rdma", Grade.POSSIBLE, passing=True),
    # cat: /sys/kernel/mm/memory_peers/nv_mem/version: No such file or directory
    row(r"memory_peers/\S*: No such file|modprobe: .*(?:nvidia[-_]peermem|nv_peer_mem)|"
        r"(?:nvidia[-_]peermem|nv_peer_mem).*(?:Invalid argument|Unknown "
        r"symbol|[Ff]ail)",
        "gpudirect_rdma"),
    # NCCL WARN NET/IB : Unable to open device mlx5_1
    row(r"NET/IB ?: Unable to open device|Call to ibv_open_device failed", "container_isolation", Grade.LIKELY,
        "ib_wrong_hca", meaning="a device in /dev/infiniband cannot be opened",
        look="ls -l /dev/infiniband"),
    # NCCL WARN NET/IB : mlx5_0:1 Got async event : port error
    Signature(expression(r"(?i)\basync\w{0,10} (?:fatal |error )?event\b.{0,80}?[: ](?P<event>" + "|".join(_EVENTS)
                         + ")"),
              lambda match: _EVENTS[match["event"].lower()]),
    # NCCL WARN NET/IB : Attempted to connect incompatible devices: 0(mlx5_0) and 3(mlx5_9)
    row(r"connect incompatible devices|NICs of only one link type", "ib_wrong_hca", Grade.LIKELY),
    # State: Down
    row(r"^\s*(?:State: Down\b|Physical state: (?:Polling|Disabled))", "ib_fabric", Grade.LIKELY,
        "ib_wrong_hca", context=True, explains=_IB),
    # libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': cannot open shared object file
    row(r"libibverbs: Warning: (?:couldn't load driver '(?:lib)?(?:mlx[45]|bnxt_re|efa|irdma|hns)\b|"
        r"couldn't load driver '(?:lib)?(?:mlx[45]|bnxt_re|efa|irdma|hns)-)", "ibverbs_missing",
        Grade.POSSIBLE, "container_isolation", passing=True),
    # libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0
    row(r"libibverbs: Warning: no userspace device-specific driver found", "ibverbs_missing", Grade.LIKELY,
        "container_isolation", passing=True),
    # NCCL WARN NET/IB: read failed in ncclIbRoceGetVersionNum: Invalid argument
    row(r"ncclIbRoceGetVersionNum", "software_bug", Grade.LIKELY, "container_isolation", "roce_gid"),
    # OSError: libibverbs.so.1: cannot open shared object file: No such file or directory
    row(r"lib(?:ibverbs|mlx[45]|rdmacm|efa|bnxt_re|ib\w{1,8})\S{0,40}: cannot open "
        r"shared object file(?!.{0,80}\(ignored\))|"
        r"libibverbs: Fatal: |librdmacm: Fatal: |couldn't read uverbs ABI version|"
        r"couldn't open config directory '/etc/libibverbs|Failed to open libmlx5|"
        r"ibverbs (?:library )?(?:is )?not (?:found|available|installed)",
        "ibverbs_missing", Grade.LIKELY, "container_isolation"),
    # mlx5: node03: got completion with error:
    row(r"mlx[45]: \S{1,255}: got completion with error|wc status .{0,40}(?:error|RETRY|FLUSH)|IBV_WC_RETRY_EXC_ERR|"
        r"IBV_WC_(?:LOC|REM)_\w{1,20}_ERR|mlx5_poll_one.{0,80}error|"
        r"ib_mlx5\S{0,40} .{0,100}(?:timed out|[Rr]emote (?:operation|access) error)",
        "ib_fabric", Grade.POSSIBLE, "roce_gid", "rank_crashed", "gpudirect_rdma", tag="ib", fallback=True),
    # mlx5_core 0000:3b:00.0: Port module event[error]: module 0, Cable error, Cable is unplugged
    row(rf"Port module event\[error\]|mlx5_core.{{0,80}}(?:{HCA_SICK}|[Ff]atal error \d|health poll failed)",
        "ib_fabric", Grade.LIKELY, "node_failed", meaning="the kernel reports a fault of an HCA or of its cable",
        look="sudo journalctl -k -g mlx5"),
    # mlx5_core 0000:3b:00.0: wait_func:1137:(pid 77): ACCESS_REG(0x805) timeout. Will cause a leak of a command
    row(rf"mlx5_core.{{0,120}}{HCA_TIMEOUT}", "ib_fabric", Grade.POSSIBLE, "node_failed",
        look="sudo journalctl -k -g mlx5"),
    # NCCL WARN Call to ibv_query_gid failed with error No such device
    row(r"ibv_query_gid\S{0,4} failed", "roce_gid", Grade.POSSIBLE, "ib_wrong_hca", "container_isolation",
        passing=True, look="show_gids"),
    # ib_iface.c:480  UCX  ERROR There is no valid pkey with full membership on mlx5_0:1
    row(r"no valid pkey with full membership|[Bb]ad P_?Key\b|P_?Key (?:[Mm]ismatch|violation)|"
        r"(?:[Cc]ould not|[Cc]ouldn't|[Ff]ailed to|[Uu]nable to) (?:find|get|query) .{0,20}[Pp]_?[Kk]ey\b",
        "ib_partition", Grade.LIKELY, "ib_fabric"),
    # mlx5_0: local_ack_timeout_err: 2705
    row(r"\b(?:out_of_sequence|packet_seq_err|local_ack_timeout_err|rx_discards_phy)\b\W{1,12}[1-9]\d{2,}\s*$",
        "roce_congestion", Grade.POSSIBLE, "ib_fabric"),
    # ibwarn: [77] mad_rpc: _do_madrpc failed; dport (Lid 4)
    row(r"_do_madrpc failed", "ib_fabric", Grade.POSSIBLE, "ib_wrong_hca", passing=True, look="ibstat"),
)  # fmt: skip
