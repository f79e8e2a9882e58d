"""What only several lines of a log show together: ranks or nodes that differ, and interfaces that lead nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import gcd

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import Line
from ncheck.triage.nccl_network import NetworkUse, Role, network_uses
from ncheck.triage.signature import Reading

# A reading, and the lines that it is made from.
Detected = Iterator[tuple[Reading, tuple[Line, ...]]]

# node01:77:77 [0] NCCL INFO NCCL version 2.27.5+cuda12.9
# [rank3]: torch.distributed.DistBackendError: NCCL error in: ..., unhandled system error, NCCL version 2.27.3
_VERSION = expression(r"NCCL version (\d+\.\d+(?:\.\d+)?)")


def versions_differ(lines: Sequence[Line]) -> Detected:
    """Yield a line for each NCCL version, if ranks print different ones."""
    by_version: dict[str, Line] = {}
    for line in lines:
        if (line.host or line.rank) and "NCCL version" in line.text and (match := _VERSION.search(line.text)):
            by_version.setdefault(match[1], line)
    if len(by_version) > 1:
        yield Reading("version_mismatch", Grade.CERTAIN), tuple(by_version.values())


# node01:77:80 [5] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.
_NO_PLUGIN = expression(r"NET/Plugin ?: (?:Could not find:? libnccl-net|No plugin found|.*using internal)")

# node02:78:81 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so
_PLUGIN = expression(r"Plugin Path ?: \S*libnccl-net|NET/Plugin ?: Loaded net plugin (?!IB |Socket )")


def plugins_differ(lines: Sequence[Line]) -> Detected:
    """Yield a line of a node with a network plug-in and one of a node without, if there are both."""
    plugin_lines = [line for line in lines if line.host and "lugin" in line.text]
    without = {line.host: line for line in plugin_lines if _NO_PLUGIN.search(line.text)}
    loaded = {line.host: line for line in plugin_lines if _PLUGIN.search(line.text)}
    lacking = [host for host in without if host not in loaded]
    if loaded and lacking:
        shown = without[lacking[0]], next(iter(loaded.values()))
        yield Reading("net_plugin", Grade.LIKELY, ("version_mismatch",)), shown


# node01:77:77 [0] NCCL INFO Using network Socket
_NETWORK = expression(r"Using network (\w(?:[\w /.-]{0,60}[\w/.-])?)\s*$")

_NETWORKS_DIFFER = Reading(
    "net_plugin",
    Grade.LIKELY,
    ("ibverbs_missing", "ib_fabric", "container_isolation"),
    meaning="some nodes use another network than the others and cannot communicate with them",
)

_VERBS_MISSING_ON_SOME = Reading(
    "ibverbs_missing",
    Grade.LIKELY,
    ("container_isolation",),
    meaning="some nodes cannot load the InfiniBand libraries and use TCP, the others InfiniBand",
)


def networks_differ(lines: Sequence[Line]) -> Detected:
    """Yield a line for each network, if nodes use different ones."""
    by_network: dict[str, Line] = {}
    for line in lines:
        if line.host and "Using network" in line.text and (match := _NETWORK.search(line.text)):
            by_network.setdefault(match[1], line)
    if len(by_network) < 2 or len({line.host for line in by_network.values()}) < 2:  # noqa: PLR2004
        return
    by_socket = by_network.get("Socket")
    lacking = by_socket and next(
        (line for line in lines if line.host == by_socket.host and _NO_VERBS in line.text), None
    )
    if lacking:
        yield _VERBS_MISSING_ON_SOME, (lacking, *by_network.values())
    else:
        yield _NETWORKS_DIFFER, tuple(by_network.values())


# [PG 0 Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1
_WORK = expression(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+),")

# [PG 0 (default_pg) Rank 12], [PG ID 2 PG GUID 3 Rank 12]
_GROUP = expression(r"\[PG ([^\]]{0,120}?)\s{0,4}Rank \d+\]")

# The two ends of a point-to-point transfer name different operations.
_POINT_TO_POINT = frozenset({"SEND", "RECV", "COALESCED", "UNKNOWN"})


def collectives_differ(lines: Sequence[Line]) -> Detected:
    """Yield a line for each collective, if ranks wait in different ones under one sequence number of one group.

    Old releases do not name the group. As each group counts its own collectives, the reading is then only possible.
    """
    by_number: dict[tuple[str, str], dict[str, Line]] = {}
    for line in lines:
        if "WorkNCCL(" in line.text and (match := _WORK.search(line.text)) and match[2] not in _POINT_TO_POINT:
            group = _GROUP.search(line.text)
            by_number.setdefault((group[1] if group else "", match[1]), {}).setdefault(match[2], line)
    for (group_name, _), by_collective in by_number.items():
        if len(by_collective) > 1:
            grade = Grade.LIKELY if group_name else Grade.POSSIBLE
            yield Reading("collective_mismatch", grade, ("slow_rank_timeout",)), tuple(by_collective.values())


# [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,
_SIZES = expression(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+), NumelIn=(\d+), NumelOut=(\d+),")

# [PG ID 0 PG GUID 0(default_pg) Rank 0] Timeout at NCCL work: 122, last enqueued NCCL work: 127, ...
_AT_WORK = expression(r"(?:at work|at NCCL work|work sequence id): (\d+)\b.{0,60}last enqueued")

# In these every rank passes the same number of elements, and none leaves before all have come.
_SAME_SIZES = frozenset({"ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"})

_OTHER_SIZE = Reading("collective_mismatch", Grade.LIKELY, ("slow_rank_timeout",),
                      meaning="the ranks call the same collective with different sizes")  # fmt: skip

_OTHER_NUMBER = Reading("collective_mismatch", Grade.POSSIBLE, ("slow_rank_timeout", "rank_crashed"),
                        meaning="the ranks wait in different collectives: one called fewer of them")  # fmt: skip


def sequences_differ(lines: Sequence[Line]) -> Detected:
    """Yield a line for each sequence number, or each size under one of them, that ranks of one group time out at.

    Each group counts its own collectives. New releases name the group only in the line after that of the collective.
    """
    works: dict[tuple[str, str], tuple[str, ...]] = {}  # by rank and number: operation and sizes
    by_group: dict[str, dict[str, tuple[str, Line]]] = {}  # number and line, by group and rank
    for line in lines:
        if not line.rank or not ("WorkNCCL(" in line.text or "last enqueued" in line.text):
            continue
        work, at_work, group = _SIZES.search(line.text), _AT_WORK.search(line.text), _GROUP.search(line.text)
        if work:
            works.setdefault((line.rank, work[1]), work.groups()[1:])
        if group and (work or at_work):
            number = work[1] if work else at_work[1] if at_work else ""
            by_group.setdefault(group[1], {}).setdefault(line.rank, (number, line))
    for by_rank in by_group.values():
        waits = {rank: (number, works.get((rank, number), ()), line) for rank, (number, line) in by_rank.items()}
        waits = {rank: wait for rank, wait in waits.items() if wait[1][:1] and wait[1][0] in _SAME_SIZES}
        numbers = {number: line for number, _, line in reversed(waits.values())}
        sizes = {work: line for _, work, line in reversed(waits.values())}
        if len(numbers) > 1:
            yield _apart({rank: int(number) for rank, (number, _, _) in waits.items()}), tuple(numbers.values())
        elif len(sizes) > 1 and len({work[0] for work in sizes}) == 1:
            yield _OTHER_SIZE, tuple(sizes.values())


def _apart(numbers: Mapping[str, int]) -> Reading:
    """Return the reading with the rank that waits in another collective than most; of two, the one that is behind."""
    counts = Counter(numbers.values())
    most = max(counts, key=lambda number: (counts[number], number))
    rank = min((rank for rank in numbers if numbers[rank] != most), key=lambda rank: (counts[numbers[rank]],
                                                                                     numbers[rank]))  # fmt: skip
    if numbers[rank] < most:
        return replace(_OTHER_NUMBER, rank=rank)
    meaning = f"rank {rank} is ahead of the others in its group: it called more collectives, or did not wait in one"
    return replace(_OTHER_NUMBER, rank=rank, meaning=meaning)


# Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/8
# Training in distributed mode with multiple processes, 1 device per process. Process 0, total 8, device cuda:0.
_JOINS = expression(r"GLOBAL_RANK: (\d{1,6}), MEMBER: \d{1,6}/(\d{1,6})|\. Process (\d{1,6}), total (\d{1,6})[,.]")
_AT_ONCE = 200  # lines: what starts together; later, one process says it again for its next step

_SAME_RANK = Reading("rendezvous_misconfig", Grade.LIKELY, ("launcher_mismatch",), passing=True,
                     meaning="several processes have the same rank, and other ranks do not exist")  # fmt: skip

_OTHER_WORLD = Reading("rendezvous_misconfig", Grade.LIKELY, ("launcher_mismatch",), passing=True,
                       meaning="the processes do not agree on the number of ranks")  # fmt: skip


def ranks_given_twice(lines: Sequence[Line]) -> Detected:
    """Yield the lines of two processes with one rank, if ranks are missing, or of two with different world sizes."""
    joined = [(line, match) for line in lines if "ember" in line.text.lower() or ", total " in line.text
              if (match := _JOINS.search(line.text))]  # fmt: skip
    first: dict[str, Line] = {}
    worlds: dict[str, Line] = {}
    twice: tuple[Line, ...] = ()
    for line, match in joined:
        rank, world = match[1] or match[3], match[2] or match[4]
        before = first.setdefault(rank, line)
        worlds.setdefault(world, line)
        near = before.order[0] != line.order[0] or line.number - before.number <= _AT_ONCE
        if before is not line and near and not twice:
            twice = before, line
    if len(worlds) > 1:
        yield _OTHER_WORLD, tuple(worlds.values())
    elif twice and len(first) < int(next(iter(worlds))):
        yield _SAME_RANK, twice


# node01:77:80 [6] NCCL INFO Channel 00 : 6[6] -> 10[2] via P2P/IPC
_P2P = expression(r"\b(\d{1,5})\[(\d{1,2})\] -> (\d{1,5})\[(\d{1,2})\] via P2P/(?:IPC|CUMEM)")
_MOST_GPUS = 16

_SAME_HOSTNAME = Reading(
    "same_hostname",
    Grade.LIKELY,
    ("software_bug",),
    context=True,
    explains=frozenset({"cuda", "waits", "gone"}),
)


def nodes_taken_for_one(lines: Sequence[Line]) -> Detected:
    """Yield lines in which NCCL uses P2P between GPUs of two nodes: rank minus GPU index differs between their ends."""
    channels = [
        (line, [int(number) for number in match.groups()])
        for line in lines
        if " via P2P/" in line.text and (match := _P2P.search(line.text))
    ]
    ends = [end for _, (rank, gpu, other, other_gpu) in channels for end in ((rank, gpu), (other, other_gpu))]
    first_ranks = {rank - gpu for rank, gpu in ends}
    gpus_per_node = min(gcd(*first_ranks), _MOST_GPUS) if ends else 0
    across = tuple(line for line, (rank, gpu, other, other_gpu) in channels if rank - gpu != other - other_gpu)
    if across and 0 < max(gpu for _, gpu in ends) < gpus_per_node and min(first_ranks) >= 0:
        yield _SAME_HOSTNAME, across


# #  Rank  0 Group  0 Pid   5338 on      node01 device  0 [0x81] NVIDIA A100-PCIE-40GB
_DEVICE = expression(r"#\s+Rank\s+(\d+) (?:Group\s+\d+ )?Pid\s+(\d+) on\s")

# # nThread 1 nGpus 1 minBytes 8 maxBytes 134217728
_HEADER = expression(r"nThread \d+ nGpus 1 minBytes")


def tests_run_alone(lines: Sequence[Line]) -> Detected:
    """Yield the lists of ranks of nccl-tests, if each process prints a list of its own before any of them is done."""
    headers = 0
    ranks: dict[tuple[str, str], Line] = {}
    for line in lines:
        if "Avg bus bandwidth" in line.text:
            break
        if _HEADER.search(line.text):
            headers += 1
        elif match := _DEVICE.search(line.text):
            ranks[match[1], match[2]] = line
    if headers > 1 and len(ranks) > 1 and {rank for rank, _ in ranks} == {"0"}:
        meaning = "nccl-tests was built without MPI: each process runs its own test"
        yield Reading("launcher_mismatch", Grade.LIKELY, meaning=meaning, fix="make MPI=1"), tuple(ranks.values())


# node01:77:77 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]
_NO_VERBS = "Failed to open libibverbs"

# node01:77:77 [0] NCCL INFO NET/Socket : Using [0]ib0:10.3.0.1<0>
# mpirun -x NCCL_IB_HCA=mlx5_0 ...
_WANTS_VERBS = expression(r"(?:Using |\])(?:ib\w*|roce\w*):\S+<\d+>|\bNCCL_IB_(?:HCA|GID_INDEX|DISABLE=0)")

# node01:77:77 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
_VERBS_OFF = expression(r"NCCL_IB_DISABLE(?:=| set (?:by environment )?to )1")


def verbs_missing(lines: Sequence[Line]) -> Detected:
    """Yield that libibverbs is missing, if the log shows that the job wants InfiniBand: otherwise it is no fault."""
    lacking = next((line for line in lines if _NO_VERBS in line.text), None)
    wanted = lacking and next((line for line in lines if _WANTS_VERBS.search(line.text)), None)
    if lacking and wanted and not any(_VERBS_OFF.search(line.text) for line in lines):
        yield Reading("ibverbs_missing", Grade.LIKELY, ("container_isolation",)), (lacking, wanted)


# node02:77:77 [0] NCCL WARN Bootstrap : no socket interface found
_NO_INTERFACE = expression(r"no socket interface found|NET/Socket ?: no interface found")


def names_differ(lines: Sequence[Line]) -> Detected:
    """Yield that NCCL finds the interface on some nodes and not on others: one name does not fit all of them."""
    lacking = {line.host: line for line in lines if line.host and _NO_INTERFACE.search(line.text)}
    found = {line.host: line for line in lines if line.host and "sing" in line.text and _first_socket(line.text)}
    others = [line for host, line in found.items() if host not in lacking]
    if lacking and others:
        reading = Reading("nic_names_differ", Grade.CERTAIN, ("no_interface",), explains=frozenset({"interface"}))
        yield reading, (next(iter(lacking.values())), others[0])


_ADDRESS = expression(r"(\d{1,3}\.\d{1,3})\.\d{1,3}\.\d{1,3}$")

_OTHER_NAMES = Reading(
    "nic_names_differ",
    Grade.LIKELY,
    ("wrong_nic", "routing"),
    context=True,
    explains=frozenset({"connect", "waits", "gone", "system"}),
    meaning="the nodes use interfaces of different names and networks",
)


def interfaces_differ(lines: Sequence[Line]) -> Detected:
    """Yield a line for each interface that NCCL chose first, if names and networks differ between the nodes.

    That is no fault by itself. Different names in one network are none at all.
    """
    by_host: dict[str, tuple[NetworkUse, Line]] = {}
    for line in lines:
        if line.host and "sing" in line.text and (use := _first_socket(line.text)) and not _is_local(use):
            by_host.setdefault(line.host, (use, line))
    networks = {match[1] for use, _ in by_host.values() if (match := _ADDRESS.match(use.address))}
    by_name = {use.name: line for use, line in reversed(by_host.values())}
    if len(by_name) > 1 and len(networks) > 1:
        yield _OTHER_NAMES, tuple(by_name.values())


# mlx5_core 0000:3b:00.0 mlx5_0: Port: 1 Link DOWN
# i40e 0000:5e:00.0 ens1f0: NIC Link is Down
# bond0: (slave ens1f0): link status definitely down, disabling slave
# IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready
_LINK = expression(
    r"\b(?P<device>mlx\d_\w{1,20}|(?:eth|en|ib|bond|wl)\w{1,20})\)?:?\s.{0,20}?\b[Ll]ink (?:is |status definitely )?"
    r"(?P<state>DOWN|[Dd]own|not ready|UP|[Uu]p|ACTIVE|becomes ready)\b"
)

_HCA_DOWN = Reading("ib_fabric", Grade.LIKELY, ("ib_wrong_hca",), look="ibstat")
_HCA_WAS_DOWN = replace(_HCA_DOWN, context=True, explains=frozenset({"ib", "qp"}))

_LINK_DOWN = Reading("ib_fabric", Grade.POSSIBLE, ("node_failed",), passing=True, look="ip -br link",
                     meaning="the link of a network interface went down")  # fmt: skip


def links_down(lines: Sequence[Line]) -> Detected:
    """Yield the lines in which the kernel reports a link down.

    A link that is up later is no fault by itself: that of an HCA explains completions with errors.
    """
    down: dict[tuple[str, str], Line] = {}
    for line in lines:
        if "ink" not in line.text or not (match := _LINK.search(line.text)):
            continue
        device = line.host, match["device"]
        if match["state"].lower() in ("down", "not ready"):
            down[device] = line
        elif (before := down.pop(device, None)) and match["device"].startswith("mlx"):
            yield _HCA_WAS_DOWN, (before,)
    for (_, name), line in down.items():
        yield (_HCA_DOWN if name.startswith("mlx") else _LINK_DOWN), (line,)


# Root Cause (first observed failure):
_ROOT_CAUSE = "Root Cause (first observed failure)"

#   host      : node03
#   rank      : 12 (local_rank: 4)
#   exitcode  : -9 (pid: 4021)
#   traceback : Signal 9 (SIGKILL) received by PID 4021
_SUMMARY = expression(
    r"^\W{0,40}(?:\S{1,60} {1,8})?(?P<key>host|rank|exitcode|traceback) {1,8}: (?P<value>[A-Za-z0-9-][\w.-]{0,252})"
)
_FIRST_TO_FAIL = Reading("rank_crashed", Grade.ECHO, meaning="a rank ended first; the log of that rank has the reason")


def first_to_fail(lines: Sequence[Line]) -> Detected:
    """Yield the rank and the node that torchrun names as the first to fail, from the lines below its headline."""
    for at, line in enumerate(lines):
        if _ROOT_CAUSE not in line.text:
            continue
        below = [other for other in lines[at + 1 : at + 12] if other.order[0] == line.order[0]]
        matches = [(match, other) for other in below if (match := _SUMMARY.search(other.text))]
        values = {match["key"]: match["value"] for match, _ in reversed(matches)}
        if "rank" in values:
            code = values.get("exitcode", "")
            reading = replace(_FIRST_TO_FAIL, rank=values["rank"], node=values.get("host", ""))
            if code in ("-9", "-11", "-4", "-8"):
                killed = code == "-9"
                reading = replace(reading, grade=Grade.LIKELY, kind="killed" if killed else "segfault",
                                  meaning="a rank was killed, usually because memory ran out" if killed else
                                  "a rank crashed in native code")  # fmt: skip
            yield reading, (line, *(other for _, other in matches[:4]))
            return


# Prefixes of bridges, tunnels and USB network adapters. A veth may be all that a container has, and lead out of it.
_VIRTUAL = ("docker", "virbr", "br-", "cni", "flannel", "cali", "tunl", "ip6tnl", "tailscale", "wg", "usb")
_LOOPBACK = ("127.", "::1")
_LINK_LOCAL = ("169.254.", "fe80:")

# With the default networks of Docker and libvirt.
_LOCAL = (*_LOOPBACK, *_LINK_LOCAL, "172.17.", "192.168.122.")

# Bridges of Docker and libvirt: with the same address on every node. br-9f2c41d07ab3 is a network of Docker's.
_BRIDGES_OWN = frozenset({"172.17.0.1", "192.168.122.1"})
_BRIDGE = expression(r"(?:docker|virbr)\d|br-[0-9a-f]{12}$")

# What may stand in a command: the kernel allows more in the name of an interface.
_PLAIN_NAME = expression(r"[A-Za-z0-9_.-]{1,15}")
_EXPLAINED = frozenset({"connect", "waits", "gone", "system", "stall"})

_WRONG_INTERFACE = Reading(
    "wrong_nic",
    Grade.LIKELY,
    ("container_isolation", "nic_names_differ"),
    context=True,
    explains=_EXPLAINED,
    lasting=True,
)

_MOST_INTERFACES = 3


@dataclass(frozen=True)
class _Chosen:
    """What NCCL of one node uses for its data over TCP: each interface with the line that names it."""

    uses: tuple[tuple[NetworkUse, Line], ...]

    @property
    def has_good(self) -> bool:
        return any(not _is_local(use) for use, _ in self.uses)

    @property
    def nowhere(self) -> list[tuple[int, NetworkUse, Line]]:
        """The interfaces beyond the first that lead nowhere: each with its number."""
        return [(number, use, line) for number, (use, line) in enumerate(self.uses) if number and _leads_nowhere(use)]


def interfaces_that_lead_nowhere(lines: Sequence[Line]) -> Detected:
    """Yield the lines in which NCCL uses, first or also, an interface over which no other node is reached.

    A first choice that is loopback, a bridge or link-local is no fault by itself, unless several nodes do so with an
    address that only the node itself can reach. TCP carries data over every interface of the list: beside one that
    leads to the other nodes, one that does not is a fault, unless the job makes steps. With InfiniBand or RoCE only the
    first is used, to meet.
    """
    chosen = [(line, _first_socket(line.text)) for line in lines if "sing" in line.text]
    local = [(line, use) for line, use in chosen if use and _is_local(use)]
    by_host = _data_over_tcp(lines)
    uses = [use for line in lines if "sing" in line.text for use in network_uses([line.text])]
    fix = _only(use.name for use in uses if use.address and not _is_local(use))
    if local:
        meaning = f"NCCL chose {_named(use for _, use in local)}, which no other node can reach"
        reading = replace(_WRONG_INTERFACE, meaning=meaning, fix=fix)
        yield reading, tuple(line for line, _ in local)
        reading = replace(reading, context=False, explains=frozenset())
        for link_local in (True, False) if _hosts(lines) > 1 else ():
            dead = tuple(line for line, use in local if _leads_nowhere(use) and _is_link_local(use) is link_local)
            if dead:  # NCCL can start over link-local addresses that happen to be of one link
                yield replace(reading, passing=link_local), dead
    also = [(number, use, line) for one in by_host.values() if one.has_good for number, use, line in one.nowhere]
    if also:
        found = _named(use for _, use, _ in also)
        meaning = f"NCCL also sends data over {found}, which no other node can reach"
        reading = replace(_WRONG_INTERFACE, meaning=meaning, fix=fix)
        shown = tuple({line.order: line for _, _, line in also}.values())
        yield reading, shown
        carried = _channels_over({number for number, _, _ in also}, lines)
        grade = Grade.LIKELY if carried and _hosts(lines) > 1 else Grade.POSSIBLE
        if carried or not _on_one_node(lines):
            yield replace(reading, context=False, explains=frozenset(), grade=grade), (*shown[:3], *carried)


def _data_over_tcp(lines: Sequence[Line]) -> dict[str, _Chosen]:
    """Return by host what carries NCCL's data over TCP; hosts that use InfiniBand or a plug-in are left out."""
    uses: dict[str, dict[NetworkUse, Line]] = {}
    others: set[str] = set()
    for line in lines:
        if "sing" not in line.text and "ssigned" not in line.text:
            continue
        for use in network_uses([line.text]):
            if use.role is Role.SOCKET:
                uses.setdefault(line.host, {}).setdefault(use, line)
            elif use.hca or (use.role is Role.NETWORK and use.name != "Socket"):
                others.add(line.host)
    return {host: _Chosen(tuple(found.items())) for host, found in uses.items() if host not in others}


# node01:77:80 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/1
_OVER = expression(r" via NET/Socket/(\d{1,3})\b")


def _channels_over(numbers: Container[int], lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return the first line that shows that a channel was made over one of these interfaces."""
    for line in lines:
        if (match := _OVER.search(line.text)) and int(match[1]) in numbers:
            return (line,)
    return ()


# node01:77:80 [0] NCCL INFO comm 0x55d0 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0
_ONE_NODE = expression(r" nNodes 1\b")


def _on_one_node(lines: Sequence[Line]) -> bool:
    """Return whether the job runs on one node, as NCCL says or as the channels do that it made: it needs no network."""
    if _hosts(lines) > 1:
        return False
    local = any(" via P2P/" in line.text for line in lines) and not any(" via NET/" in line.text for line in lines)
    return local or any(_ONE_NODE.search(line.text) for line in lines)


def _hosts(lines: Iterable[Line]) -> int:
    return len({line.host for line in lines if line.host})


def _named(uses: Iterable[NetworkUse]) -> str:
    """Return the interfaces and their addresses: "veth3f9a1c2 (fe80::1) and 2 more"."""
    by_name = {use.name: f"{use.name} ({use.address.partition('%')[0]})" for use in uses}
    shown = list(by_name.values())
    more = f" and {len(shown) - _MOST_INTERFACES} more" if len(shown) > _MOST_INTERFACES else ""
    return ", ".join(shown[:_MOST_INTERFACES]) + more


def _only(names: Iterable[str]) -> str:
    """Return the command that makes NCCL use these interfaces alone, by whatever launcher; "" for none."""
    plain = [name for name in dict.fromkeys(names) if _PLAIN_NAME.fullmatch(name)]
    return f"echo NCCL_SOCKET_IFNAME=={','.join(plain)} >> ~/.nccl.conf" if plain else ""


def _first_socket(text: str) -> NetworkUse | None:
    return next((use for use in network_uses([text]) if not use.hca and use.role is not Role.NETWORK), None)


def _is_local(use: NetworkUse) -> bool:
    return use.name.startswith(_VIRTUAL) or use.address.lower().startswith(_LOCAL)


def _is_link_local(use: NetworkUse) -> bool:
    return use.address.lower().startswith(_LINK_LOCAL)


def _leads_nowhere(use: NetworkUse) -> bool:
    """Return whether an interface leads to no other node, whatever its name: one that is virtual may be routed."""
    own = use.address.startswith(_LOOPBACK) or use.address in _BRIDGES_OWN
    return own or _is_link_local(use) or bool(_BRIDGE.match(use.name))


_IPV4 = r"\d{1,3}(?:\.\d{1,3}){3}"

# mpirun -np 4 -H 10.1.0.1:2,10.1.0.2:2 python train.py | mpiexec -hosts 10.1.0.1,10.1.0.2 | --host=10.1.0.1
# torchrun --master_addr 10.1.0.1 | export MASTER_ADDR=10.1.0.1 | --rdzv_endpoint=10.1.0.1:29500 | tcp://10.1.0.1:29500
_GIVEN = expression(
    rf"(?:\s-H|--?hosts?)[ =](?P<hosts>{_IPV4}[\d.,: ]{{0,2000}})"
    rf"|(?i:master[-_]addr(?:ess)?|rdzv[-_]endpoint|dist-init-addr|init_method|coordinator_address)\W{{1,5}}"
    rf"(?:tcp://)?(?P<master>{_IPV4})"
)

# connect() to 192.168.118.0 failed | Connect to 10.1.0.3<40113> failed | dest_addr=10.1.0.3:37423) failed
# SO_ERROR: Connection refused, remote=[10.1.0.3]:14215 | connect [10.1.0.3]:19033: Connection refused
_DIALLED = expression(
    rf"connect\(\) to (?P<mpi>{_IPV4})(?::\d+)? failed|[Cc]onnect to (?P<nccl>{_IPV4})<\d+> (?:failed|returned)"
    rf"|dest_addr=(?P<ucx>{_IPV4}):\d+\) failed|SO_ERROR: .{{0,80}}remote=\[(?P<gloo>{_IPV4})\]"
    rf"|connect \[(?P<pair>{_IPV4})\]:\d+: "
)
_ADDRESSES = expression(_IPV4)

_OTHER_NETWORK = Reading("wrong_nic", Grade.LIKELY, ("routing", "container_isolation", "firewall"), lasting=True,
                         explains=frozenset({"connect", "gloo", "waits", "gone", "stall", "system"}))  # fmt: skip


def dials_another_network(lines: Sequence[Line]) -> Detected:
    """Yield the lines in which a connection fails to an address of a network in which no address of the job is.

    The job's addresses are those of its launch line, of its master, and of NCCL's bootstrap.
    """
    given: dict[str, Line] = {}
    for line in lines:
        addresses = [use.address for use in network_uses([line.text]) if use.role is Role.BOOTSTRAP]
        for named in _GIVEN.finditer(line.text):
            addresses += _ADDRESSES.findall(named["hosts"] or named["master"])
        for address in addresses:
            if not address.startswith(_LOCAL):
                given.setdefault(_network(address), line)
    dialled = [(next(filter(None, match.groups())), line) for line in lines if (match := _DIALLED.search(line.text))]
    foreign = [(address, line) for address, line in dialled
               if not address.startswith(_LOCAL) and _network(address) not in given]  # fmt: skip
    if given and foreign:
        meaning = f"a rank dials {foreign[0][0]}, an address of another network than those that the job was given"
        shown = {line.order: line for _, line in (*foreign[:3], ("", next(iter(given.values()))))}
        yield replace(_OTHER_NETWORK, meaning=meaning), tuple(shown.values())


def _network(address: str) -> str:
    """Return the first half of an address: what two nodes of one network nearly always share."""
    return ".".join(address.split(".")[:2])


# 2844262400.0;tcp://172.17.0.2,192.168.122.1:56711
_DAEMON_AT = expression(rf"\b\d{{6,12}}\.\d{{1,6}};tcp://({_IPV4}(?:,{_IPV4}){{0,20}}):\d")

_DAEMON_IN_CONTAINER = Reading(
    "container_isolation", Grade.LIKELY, ("wrong_nic", "firewall"), context=True,
    explains=frozenset({"launch", "gone", "connect"}),
    meaning="mpirun's daemon has only addresses that no other machine reaches: those of a container or a bridge",
)  # fmt: skip


def daemon_in_a_container(lines: Sequence[Line]) -> Detected:
    """Yield the lines in which mpirun's daemon names only addresses of bridges."""
    named = [(match[1].split(","), line) for line in lines if (match := _DAEMON_AT.search(line.text))]
    local = tuple(line for addresses, line in named if all(address.startswith(_LOCAL) for address in addresses))
    if local:
        yield _DAEMON_IN_CONTAINER, local


# n1:7:7 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xab - Init
# #  Rank  1 Group  0 Pid   5339 on      node01 device  0 [0x81] NVIDIA A100-PCIE-40GB
_BUS = expression(
    r"\brank (?P<rank>\d{1,6}) n[rR]anks \d{1,6} .{0,60}busId (?P<bus>[0-9a-f]{1,9}) commId (?P<group>0x[0-9a-f]{1,16})"
    r"|#\s+Rank\s+(?P<test>\d{1,6}) .{0,60}Pid\s+\d+ on\s+(?P<host>\S{1,99}) device\s+\d+ \[(?P<device>[\w:.]{1,9})\]"
)

_ONE_GPU = Reading("gpu_mapping", Grade.LIKELY, ("launcher_mismatch",), lasting=True, look="nvidia-smi -L",
                   meaning="two ranks of one node use the same GPU: local rank, or CUDA_VISIBLE_DEVICES")  # fmt: skip


def ranks_on_one_gpu(lines: Sequence[Line]) -> Detected:
    """Yield the lines of two ranks of one communicator with one bus id of one host."""
    first: dict[tuple[str, ...], tuple[str, Line]] = {}
    for line in lines:
        if not ("busId " in line.text or " Pid " in line.text) or not (match := _BUS.search(line.text)):
            continue
        host, rank = match["host"] or line.host, match["rank"] or match["test"]
        other, before = first.setdefault((host, match["group"] or "", match["bus"] or match["device"]), (rank, line))
        if host and other != rank:
            yield replace(_ONE_GPU, rank=rank), (before, line)
            return


_TWO_LINKS = Reading(
    "ib_wrong_hca", Grade.LIKELY, ("roce_gid", "ib_fabric"), context=True, explains=frozenset({"ib", "qp"}),
    meaning="NCCL uses ports of InfiniBand and ports of RoCE: one cannot reach the other", look="ibdev2netdev",
)  # fmt: skip


def links_differ(lines: Sequence[Line]) -> Detected:
    """Yield a line for each link layer, if the ports of the job have two: no fault unless a port does not answer."""
    by_link: dict[str, Line] = {}
    for line in lines:
        for use in network_uses([line.text]) if "NET/IB" in line.text else ():
            by_link.setdefault(use.link, line) if use.hca else None
    if {"IB", "RoCE"} <= set(by_link):
        yield _TWO_LINKS, tuple({line.order: line for line in by_link.values()}.values())


# n1:7:7 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 0. | mpirun -x NCCL_IB_GID_INDEX=0
_GID_ZERO = expression(r"\b(?:NCCL|UCX)_IB_GID_INDEX(?:=| set by environment to )0\b")

# NCCL WARN Call to ibv_modify_qp failed with 19 No such device, on dev mlx5_0:1
_NO_DEVICE = expression(r"ibv_modify_qp.{0,80}(?:\b19\b|No such device)")

_GID_OF_ROCE_1 = Reading(
    "roce_gid", Grade.LIKELY, ("ib_wrong_hca",), context=True, explains=frozenset({"qp"}),
    meaning="the GID index is set to 0, which on RoCE is a link-local address of version 1", look="show_gids",
)  # fmt: skip


def gid_index_zero(lines: Sequence[Line]) -> Detected:
    """Yield that the GID index is 0 where a queue pair finds no device, or where the ports are those of RoCE."""
    zero = next((line for line in lines if _GID_ZERO.search(line.text)), None)
    if zero and any(_NO_DEVICE.search(line.text) or "/RoCE" in line.text for line in lines):
        yield _GID_OF_ROCE_1, (zero,)


# saving checkpoint at iteration    1000 to /ckpt | Saving model checkpoint to ./out/checkpoint-500
_SAVES = expression(r"\b[Ss]aving (?:the )?(?:\w{1,20} )?(?:checkpoint|snapshot|weights|state)\b")

# successfully saved checkpoint at iteration 1000 | Checkpoint saved in 12.3 s
_SAVED = expression(
    r"\b[Ss]aved (?:the )?(?:\w{1,20} )?(?:checkpoint|snapshot|weights|state)\b|[Cc]heckpoint (?:was )?saved"
)

_SAVING = Reading(
    "checkpoint_write", Grade.POSSIBLE, ("slow_rank_timeout", "storage_hang"), context=True, passing=True,
    explains=frozenset({"waits"}), meaning="a checkpoint was begun before the time-out, and no line says that it was"
    " written",
)  # fmt: skip


def checkpoint_begun(lines: Sequence[Line]) -> Detected:
    """Yield the last line of each log in which a checkpoint begins, if none says later that it was saved."""
    begun: dict[int, Line] = {}
    for line in lines:
        if _SAVED.search(line.text):
            begun.pop(line.order[0], None)
        elif _SAVES.search(line.text):
            begun[line.order[0]] = line
    for line in begun.values():
        yield _SAVING, (line,)


# Waiting for the hosts to acknowledge.
_WAITS_FOR_HOSTS = "Waiting for the hosts to acknowledge"

# Notified all the hosts that the registration is complete.
_HOSTS_CAME = "Notified all the hosts"

_HOSTS_SILENT = Reading("firewall", Grade.POSSIBLE, ("nic_names_differ", "ssh_auth", "hostname_loopback"), lasting=True,
                        meaning="horovodrun waits for the nodes: its task server did not start there, or cannot connect"
                        " back", look="ncheck nodes.txt --mesh all")  # fmt: skip


def hosts_silent(lines: Sequence[Line]) -> Detected:
    """Yield the line in which horovodrun begins to wait for the hosts, if they did not come in the same log."""
    waiting: dict[int, Line] = {}
    for line in lines:
        if _WAITS_FOR_HOSTS in line.text:
            waiting[line.order[0]] = line
        elif _HOSTS_CAME in line.text:
            waiting.pop(line.order[0], None)
    for line in waiting.values():
        yield _HOSTS_SILENT, (line,)


# The first task at the barrier: /job:jax_worker/replica:0/task:13. Some timed out task names:
_TASKS_BELOW = "imed out task names:"

# Barrier_id: PjRT_Client_Connect | Id: [Init]Wait_for_all_tasks_to_register::0
_REGISTERS = expression(r"PjRT_Client_Connect|Wait_for_all_tasks_to_register|RegisterTask")

# /job:jax_worker/replica:0/task:6
_TASK = expression(r"^(?:.{0,120}[\s\])>:])?/job:\w{1,60}/replica:\d{1,6}/task:(\d{1,6})\s*$")

_TASK_LATE = Reading("slow_rank_timeout", Grade.POSSIBLE, ("rank_crashed", "rendezvous_misconfig", "firewall"),
                     explains=frozenset({"store"}))  # fmt: skip


_TASK_MISSING = replace(_TASK_LATE, cause="rank_missing", others=("rendezvous_misconfig", "rank_crashed", "firewall"))


def tasks_late(lines: Sequence[Line]) -> Detected:
    """Yield the tasks that did not come to a barrier of JAX's coordination service: the lines below it."""
    for at, line in enumerate(lines):
        if _TASKS_BELOW not in line.text:
            continue
        tasks: list[tuple[str, Line]] = []
        for other in lines[at + 1 : at + 500]:
            match = _TASK.search(other.text)
            if not match or other.order != (line.order[0], line.number + 1 + len(tasks)):
                break
            tasks.append((match[1], other))
        named = ", ".join(task for task, _ in tasks[:_MOST_RANKS]) + (" ..." if len(tasks) > _MOST_RANKS else "")
        meaning = f"tasks {named} did not come to a barrier that the others wait at: look at their logs"
        late = _TASK_LATE
        if _REGISTERS.search(line.text):
            late = _TASK_MISSING
            meaning = f"tasks {named} never registered: did they start, and do they reach the coordinator?"
        for task, other in tasks:
            yield replace(late, rank=task, meaning=meaning), (other,)


_MOST_RANKS = 8

# Error: No available node types can fulfill resource request {'CPU': 1.0, 'node:192.168.1.10': 0.001}
# Waiting for creating a placement group of specs for 10 seconds. specs=[{'node:192.168.1.10': 0.001, 'GPU': 1.0}
_RAY_WANTS = expression(r"(?:node types can fulfill|placement group).{0,300}'node:(?P<node>[\w.:-]{1,255}?)'")

# Connecting to existing Ray cluster at address: 10.1.0.1:6379...
# Local node IP: 10.1.0.1
_RAY_HAS = expression(rf"(?:Ray cluster at address|Local node IP): ({_IPV4})")

_RAY_ADDRESS = Reading("wrong_nic", Grade.LIKELY, ("launcher_mismatch",), lasting=True, look="ray status",
                       meaning="Ray looks for a node by an address of another network"
                       " than that of its cluster")  # fmt: skip

_RAY_NAME = Reading("rendezvous_misconfig", Grade.LIKELY, ("launcher_mismatch", "dns_failure"), lasting=True,
                    look="ray status", meaning="Ray looks for a node by a name, and knows its nodes by their"
                    " addresses: VLLM_HOST_IP must be an address")  # fmt: skip


def ray_addresses_differ(lines: Sequence[Line]) -> Detected:
    """Yield that a task of Ray asks for a node by a name, or by an address of a network in which its cluster is not."""
    has = [(_network(match[1]), line) for line in lines if (match := _RAY_HAS.search(line.text))]
    for line in lines:
        match = _RAY_WANTS.search(line.text)
        if match is None or match["node"].startswith("__"):  # a resource of Ray's own, as __internal_head__
            continue
        if not _ADDRESSES.fullmatch(match["node"]):
            yield _RAY_NAME, (line, *(line for _, line in has[:1]))
            return
        if has and _network(match["node"]) not in {network for network, _ in has}:
            yield _RAY_ADDRESS, (line, has[0][1])
            return


def verbs_note(lines: Sequence[Line]) -> str:
    """Return what is to be said of libibverbs where it is missing and nothing shows that the job wants it."""
    lacking = any(_NO_VERBS in line.text for line in lines)
    by_socket = any("Using network Socket" in line.text for line in lines)
    if not (lacking and by_socket) or any(_VERBS_OFF.search(line.text) for line in lines):
        return ""
    return (
        "NCCL uses TCP: it could not open libibverbs (ibverbs_missing). That matters only if the nodes have InfiniBand"
        " or RoCE: sudo apt-get install libibverbs1 ibverbs-providers"
    )


DETECTORS: tuple[Callable[[Sequence[Line]], Detected], ...] = (
    verbs_missing,
    versions_differ,
    plugins_differ,
    networks_differ,
    collectives_differ,
    sequences_differ,
    ranks_given_twice,
    nodes_taken_for_one,
    tests_run_alone,
    interfaces_that_lead_nowhere,
    ranks_on_one_gpu,
    links_differ,
    gid_index_zero,
    checkpoint_begun,
    dials_another_network,
    daemon_in_a_container,
    names_differ,
    interfaces_differ,
    links_down,
    first_to_fail,
    hosts_silent,
    tasks_late,
    ray_addresses_differ,
)

# What a line must contain for a detector to look at it: in lower case, without digits.
WORDS = (
    "nccl version", "plugin", "using network", "worknccl(", " via pp/", " nnodes ", "nthread", " pid ",
    "avg bus bandwidth", "libibverbs", "bootstrap", "net/socket", "net : using", "net/ib", "nccl_ib_", "]ib", "]roce",
    "using ib", "using roce", "socket interface found", "root cause (first", "host      : ", "rank      : ",
    "exitcode  : ", "traceback : ", " link down", " link up", " link is ", " link active", " link status",
    " link becomes", "waiting for the hosts to", "notified all the hosts", "timed out task names", "/replica:/task:",
    "node types can fulfill",
    "placement group", "ray cluster at address", "local node ip", "last enqueued", "global_rank: ",
    ". process , total ", "mpirun", "mpiexec", "horovodrun", "torchrun", "--host", "master_addr", "master-addr",
    "endpoint", "init-addr", "init_method", "coordinator_address", "connect() to ", "connect to ", "dest_addr=",
    " busid ", "_ib_gid_index", "ibv_modify_qp", "saving ", "saved", "so_error: ", "connect [", ";tcp://",
)  # fmt: skip
