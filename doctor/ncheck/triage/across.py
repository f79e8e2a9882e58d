"""What no single line tells: ranks that differ from each other, seen by putting their lines side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import gcd

from ncheck.triage.lines import Line
from ncheck.triage.signature import Grade, Reading

Found = Iterator[tuple[Reading, tuple[Line, ...]]]


# node01:77:77 [0] NCCL INFO NCCL version 2.27.5+cuda12.9
# [rank3]: torch.distributed.DistBackendError: NCCL error in: ..., unhandled system error, NCCL version 2.27.3
_VERSION = re.compile(r"NCCL version (\d+\.\d+(?:\.\d+)?)")


def versions_differ(lines: Sequence[Line]) -> Found:
    """Yield the lines of ranks that name their own NCCL, if they do not name the same."""
    told: dict[str, Line] = {}
    for line in lines:
        if (line.host or line.rank) and "NCCL version" in line.text and (found := _VERSION.search(line.text)):
            told.setdefault(found[1], line)
    if len(told) > 1:
        yield Reading("version_mismatch", Grade.CERTAIN), tuple(told.values())


# node01:77:80 [5] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.
_NO_PLUGIN = re.compile(r"NET/Plugin ?: (?:Could not find:? libnccl-net|No plugin found|.*using internal)")


# node02:78:81 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so
_PLUGIN = re.compile(r"Plugin Path ?: \S*libnccl-net|NET/Plugin ?: Loaded net plugin (?!IB |Socket )")


def plugins_differ(lines: Sequence[Line]) -> Found:
    """Yield a line of a node with a network plug-in and one of a node without, where there are both."""
    told = [line for line in lines if line.host and "lugin" in line.text]
    without = {line.host: line for line in told if _NO_PLUGIN.search(line.text)}
    loaded = {line.host: line for line in told if _PLUGIN.search(line.text)}
    lacking = [host for host in without if host not in loaded]
    if loaded and lacking:
        shown = without[lacking[0]], next(iter(loaded.values()))
        yield Reading("net_plugin", Grade.LIKELY, ("version_mismatch",)), shown


# node01:77:80 [0] NCCL INFO Using network Socket
_NETWORK = re.compile(r"Using network (\w[\w /.-]*?)\s*$")


def networks_differ(lines: Sequence[Line]) -> Found:
    """Yield a line of each network, where one node takes another one than the rest."""
    told: dict[str, Line] = {}
    for line in lines:
        if line.host and "Using network" in line.text and (found := _NETWORK.search(line.text)):
            told.setdefault(found[1], line)
    if len(told) > 1 and len({line.host for line in told.values()}) > 1:
        yield _TWO_NETWORKS, tuple(told.values())


_TWO_NETWORKS = Reading(
    "net_plugin",
    Grade.LIKELY,
    ("ibverbs_missing", "ib_fabric", "container_isolation"),
    meaning="some nodes take another network than the rest, and cannot speak with them",
)


# [PG 0 Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1
_WORK = re.compile(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+),")


# [PG 0 (default_pg) Rank 12], [PG ID 2 PG GUID 3 Rank 12]
_GROUP = re.compile(r"\[PG ([^\]]{0,120}?)\s{0,4}Rank \d+\]")


# Point to point differs between the two ends by nature.
_ENDS = frozenset({"SEND", "RECV", "COALESCED", "UNKNOWN"})


def collectives_differ(lines: Sequence[Line]) -> Found:
    """Yield the lines of ranks that wait in different collectives under one number of one group.

    Old releases do not name the group, and each group counts by itself: then it is no more than possible.
    """
    told: dict[tuple[str, str], dict[str, Line]] = {}
    for line in lines:
        if "WorkNCCL(" in line.text and (found := _WORK.search(line.text)) and found[2] not in _ENDS:
            group = _GROUP.search(line.text)
            told.setdefault((group[1] if group else "", found[1]), {}).setdefault(found[2], line)
    for (name, _), ranks in told.items():
        if len(ranks) > 1:
            grade = Grade.LIKELY if name else Grade.POSSIBLE
            yield Reading("collective_mismatch", grade, ("slow_rank_timeout",)), tuple(ranks.values())


# node01:77:80 [6] NCCL INFO Channel 00 : 6[6] -> 10[2] via P2P/IPC
_P2P = re.compile(r"\b(\d{1,5})\[(\d{1,2})\] -> (\d{1,5})\[(\d{1,2})\] via P2P/(?:IPC|CUMEM)")


_MOST_GPUS = 16


def machines_mixed_up(lines: Sequence[Line]) -> Found:
    """Yield lines in which GPUs of two nodes are taken for neighbours: ranks count on where the GPUs begin anew."""
    ways = [
        (line, *_ends_of(found)) for line in lines if " via P2P/" in line.text and (found := _P2P.search(line.text))
    ]
    starts = {rank - device for _, *ends in ways for rank, device in ends}
    most = max((device for _, *ends in ways for _, device in ends), default=0)
    width = min(gcd(*starts), _MOST_GPUS) if starts else 0
    across = tuple(line for line, (a, b), (c, d) in ways if a - b != c - d)
    if across and 0 < most < width and min(starts) >= 0:
        yield _MIXED_UP, across


def _ends_of(found: re.Match[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    one, its, other, others = (int(number) for number in found.groups())
    return (one, its), (other, others)


_MIXED_UP = Reading(
    "same_hostname",
    Grade.LIKELY,
    ("software_bug",),
    context=True,
    explains=frozenset({"cuda", "waits", "gone"}),
)


# #  Rank  0 Group  0 Pid   5338 on      node01 device  0 [0x81] NVIDIA A100-PCIE-40GB
_DEVICE = re.compile(r"#\s+Rank\s+(\d+) (?:Group\s+\d+ )?Pid\s+(\d+) on\s")


# # nThread 1 nGpus 1 minBytes 8 maxBytes 134217728
_HEADER = re.compile(r"nThread \d+ nGpus 1 minBytes")


def tests_run_alone(lines: Sequence[Line]) -> Found:
    """Yield the heads of nccl-tests where each process prints one of its own before any of them is through."""
    heads: list[Line] = []
    ranks: dict[tuple[str, str], Line] = {}
    for line in lines:
        if "Avg bus bandwidth" in line.text:
            break
        if _HEADER.search(line.text):
            heads.append(line)
        elif found := _DEVICE.search(line.text):
            ranks[found[1], found[2]] = line
    if len(heads) > 1 and len(ranks) > 1 and {rank for rank, _ in ranks} == {"0"}:
        yield Reading("launcher_mismatch", Grade.LIKELY, meaning="nccl-tests was built without MPI: each process runs"
                      " a test of its own", fix="make MPI=1"), tuple(ranks.values())  # fmt: skip


# node01:77:77 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]
_NO_VERBS = "Failed to open libibverbs"


# node01:77:77 [0] NCCL INFO NET/Socket : Using [0]ib0:10.3.0.1<0>
# mpirun -x NCCL_IB_HCA=mlx5_0 ...
_WANTS_VERBS = re.compile(r"(?:Using |\])(?:ib\w*|roce\w*):\S+<\d+>|\bNCCL_IB_(?:HCA|GID_INDEX|DISABLE=0)")


# node01:77:77 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
_OFF = re.compile(r"NCCL_IB_DISABLE(?:=| set (?:by environment )?to )1")


def verbs_missing(lines: Sequence[Line]) -> Found:
    """Yield that the InfiniBand library is not there, where somebody means to use it: elsewhere that is no fault."""
    lacking = next((line for line in lines if _NO_VERBS in line.text), None)
    wanted = lacking and next((line for line in lines if _WANTS_VERBS.search(line.text)), None)
    if lacking and wanted and not any(_OFF.search(line.text) for line in lines):
        yield Reading("ibverbs_missing", Grade.LIKELY, ("container_isolation",)), (lacking, wanted)


ALL = (
    verbs_missing,
    versions_differ,
    plugins_differ,
    networks_differ,
    collectives_differ,
    machines_mixed_up,
    tests_run_alone,
)
