"""Ranks that differ: in the collective that they wait in, in their number, their GPU, or by not being there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import gcd

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import LogLine
from ncheck.triage.signature import Detected, Detector, LineClue

# [PG 0 Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1
_WORK = expression(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+),")

# [PG 0 (default_pg) Rank 12], [PG ID 2 PG GUID 3 Rank 12]
_GROUP = expression(r"\[PG ([^\]]{0,120}?)\s{0,4}Rank \d+\]")

# The two ends of a point-to-point transfer name different operations.
_POINT_TO_POINT = frozenset({"SEND", "RECV", "COALESCED", "UNKNOWN"})


def collectives_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield a line for each collective, if ranks wait in different ones under one sequence number of one group.

    Old releases do not name the group. As each group counts its own collectives, the clue is then only possible.
    """
    by_number: dict[tuple[str, str], dict[str, LogLine]] = {}
    for line in lines:
        if "WorkNCCL(" in line.text and (match := _WORK.search(line.text)) and match[2] not in _POINT_TO_POINT:
            group = _GROUP.search(line.text)
            by_number.setdefault((group[1] if group else "", match[1]), {}).setdefault(match[2], line)
    for (group_name, _), by_collective in by_number.items():
        if len(by_collective) > 1:
            grade = Grade.LIKELY if group_name else Grade.POSSIBLE
            yield LineClue("collective_mismatch", grade, ("slow_rank_timeout",)), tuple(by_collective.values())


# [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,
_SIZES = expression(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+), NumelIn=(\d+), NumelOut=(\d+),")

# [PG ID 0 PG GUID 0(default_pg) Rank 0] Timeout at NCCL work: 122, last enqueued NCCL work: 127, ...
_AT_WORK = expression(r"(?:at work|at NCCL work|work sequence id): (\d+)\b.{0,60}last enqueued")

# In these every rank passes the same number of elements, and none leaves before all have come.
_SAME_SIZES = frozenset({"ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"})

_OTHER_SIZE = LineClue("collective_mismatch", Grade.LIKELY, ("slow_rank_timeout",),
                       meaning="the ranks call the same collective with different sizes")  # fmt: skip

_OTHER_NUMBER = LineClue("collective_mismatch", Grade.POSSIBLE, ("slow_rank_timeout", "rank_crashed"),
                         meaning="the ranks wait in different collectives: one called fewer of them")  # fmt: skip


def sequences_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield a line for each sequence number, or each size under one of them, that ranks of one group time out at.

    Each group counts its own collectives. New releases name the group only in the line after that of the collective.
    """
    works: dict[tuple[str, str], tuple[str, ...]] = {}  # by rank and number: operation and sizes
    by_group: dict[str, dict[str, tuple[str, LogLine]]] = {}  # number and line, by group and rank
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


def _apart(numbers: Mapping[str, int]) -> LineClue:
    """Return the clue with the rank that waits in another collective than most; of two, the one that is behind."""
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

_SAME_RANK = LineClue("rendezvous_misconfig", Grade.LIKELY, ("launcher_mismatch",), passing=True,
                      meaning="several processes have the same rank, and other ranks do not exist")  # fmt: skip

_OTHER_WORLD = LineClue("rendezvous_misconfig", Grade.LIKELY, ("launcher_mismatch",), passing=True,
                        meaning="the processes do not agree on the number of ranks")  # fmt: skip


def ranks_given_twice(lines: Sequence[LogLine]) -> Detected:
    """Yield the lines of two processes with one rank, if ranks are missing, or of two with different world sizes."""
    joined = [(line, match) for line in lines if "ember" in line.text.lower() or ", total " in line.text
              if (match := _JOINS.search(line.text))]  # fmt: skip
    first: dict[str, LogLine] = {}
    worlds: dict[str, LogLine] = {}
    twice: tuple[LogLine, ...] = ()
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

_SAME_HOSTNAME = LineClue(
    "same_hostname",
    Grade.LIKELY,
    ("software_bug",),
    context=True,
    explains=frozenset({"cuda", "waits", "gone"}),
)


def nodes_taken_for_one(lines: Sequence[LogLine]) -> Detected:
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


def tests_run_alone(lines: Sequence[LogLine]) -> Detected:
    """Yield the lists of ranks of nccl-tests, if each process prints a list of its own before any of them is done."""
    headers = 0
    ranks: dict[tuple[str, str], LogLine] = {}
    for line in lines:
        if "Avg bus bandwidth" in line.text:
            break
        if _HEADER.search(line.text):
            headers += 1
        elif match := _DEVICE.search(line.text):
            ranks[match[1], match[2]] = line
    if headers > 1 and len(ranks) > 1 and {rank for rank, _ in ranks} == {"0"}:
        meaning = "nccl-tests was built without MPI: each process runs its own test"
        yield LineClue("launcher_mismatch", Grade.LIKELY, meaning=meaning, fix="make MPI=1"), tuple(ranks.values())


# n1:7:7 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xab - Init
# #  Rank  1 Group  0 Pid   5339 on      node01 device  0 [0x81] NVIDIA A100-PCIE-40GB
_BUS = expression(
    r"\brank (?P<rank>\d{1,6}) n[rR]anks \d{1,6} .{0,60}busId (?P<bus>[0-9a-f]{1,9}) commId (?P<group>0x[0-9a-f]{1,16})"
    r"|#\s+Rank\s+(?P<test>\d{1,6}) .{0,60}Pid\s+\d+ on\s+(?P<host>\S{1,99}) device\s+\d+ \[(?P<device>[\w:.]{1,9})\]"
)

_ONE_GPU = LineClue("gpu_mapping", Grade.LIKELY, ("launcher_mismatch",), lasting=True, look="nvidia-smi -L",
                    meaning="two ranks of one node use the same GPU: local rank, or CUDA_VISIBLE_DEVICES")  # fmt: skip


def ranks_on_one_gpu(lines: Sequence[LogLine]) -> Detected:
    """Yield the lines of two ranks of one communicator with one bus id of one host."""
    first: dict[tuple[str, ...], tuple[str, LogLine]] = {}
    for line in lines:
        if not ("busId " in line.text or " Pid " in line.text) or not (match := _BUS.search(line.text)):
            continue
        host, rank = match["host"] or line.host, match["rank"] or match["test"]
        other, before = first.setdefault((host, match["group"] or "", match["bus"] or match["device"]), (rank, line))
        if host and other != rank:
            yield replace(_ONE_GPU, rank=rank), (before, line)
            return


# Root Cause (first observed failure):
_ROOT_CAUSE = "Root Cause (first observed failure)"

#   host      : node03
#   rank      : 12 (local_rank: 4)
#   exitcode  : -9 (pid: 4021)
#   traceback : Signal 9 (SIGKILL) received by PID 4021
_SUMMARY = expression(
    r"^\W{0,40}(?:\S{1,60} {1,8})?(?P<key>host|rank|exitcode|traceback) {1,8}: (?P<value>[A-Za-z0-9-][\w.-]{0,252})"
)
_FIRST_TO_FAIL = LineClue("rank_crashed", Grade.ECHO, meaning="a rank ended first; the log of that rank has the reason")


def first_to_fail(lines: Sequence[LogLine]) -> Detected:
    """Yield the rank and the node that torchrun names as the first to fail, from the lines below its headline."""
    for at, line in enumerate(lines):
        if _ROOT_CAUSE not in line.text:
            continue
        below = [other for other in lines[at + 1 : at + 12] if other.order[0] == line.order[0]]
        matches = [(match, other) for other in below if (match := _SUMMARY.search(other.text))]
        values = {match["key"]: match["value"] for match, _ in reversed(matches)}
        if "rank" in values:
            code = values.get("exitcode", "")
            clue = replace(_FIRST_TO_FAIL, rank=values["rank"], node=values.get("host", ""))
            if code in ("-9", "-11", "-4", "-8"):
                killed = code == "-9"
                clue = replace(clue, grade=Grade.LIKELY, kind="killed" if killed else "segfault",
                                  meaning="a rank was killed, usually because memory ran out" if killed else
                                  "a rank crashed in native code")  # fmt: skip
            yield clue, (line, *(other for _, other in matches[:4]))
            return


# saving checkpoint at iteration    1000 to /ckpt | Saving model checkpoint to ./out/checkpoint-500
_SAVES = expression(r"\b[Ss]aving (?:the )?(?:\w{1,20} )?(?:checkpoint|snapshot|weights|state)\b")

# successfully saved checkpoint at iteration 1000 | Checkpoint saved in 12.3 s
_SAVED = expression(
    r"\b[Ss]aved (?:the )?(?:\w{1,20} )?(?:checkpoint|snapshot|weights|state)\b|[Cc]heckpoint (?:was )?saved"
)

_SAVING = LineClue(
    "checkpoint_write", Grade.POSSIBLE, ("slow_rank_timeout", "storage_hang"), context=True, passing=True,
    explains=frozenset({"waits"}), meaning="a checkpoint was begun before the time-out, and no line says that it was"
    " written",
)  # fmt: skip


def checkpoint_begun(lines: Sequence[LogLine]) -> Detected:
    """Yield the last line of each log in which a checkpoint begins, if none says later that it was saved."""
    for line in _not_ended(lines, begins=_SAVES, ends=_SAVED):
        yield _SAVING, (line,)


def _not_ended(lines: Iterable[LogLine], *, begins: re.Pattern[str], ends: re.Pattern[str]) -> Iterable[LogLine]:
    """Return the last line of each log in which something begins, if no line below says that it ended."""
    begun: dict[int, LogLine] = {}
    for line in lines:
        if ends.search(line.text):
            begun.pop(line.order[0], None)
        elif begins.search(line.text):
            begun[line.order[0]] = line
    return begun.values()


# Waiting for the hosts to acknowledge.
_WAITS_FOR_HOSTS = expression(r"Waiting for the hosts to acknowledge")

# Notified all the hosts that the registration is complete.
_HOSTS_CAME = expression(r"Notified all the hosts")

_HOSTS_SILENT = LineClue(
    "firewall", Grade.POSSIBLE, ("nic_names_differ", "ssh_auth", "hostname_loopback"), lasting=True,
    meaning="horovodrun waits for the nodes: its task server did not start there, or cannot connect back",
    look="ncheck nodes.txt --mesh all",
)  # fmt: skip


def hosts_silent(lines: Sequence[LogLine]) -> Detected:
    """Yield the line in which horovodrun begins to wait for the hosts, if they did not come in the same log."""
    for line in _not_ended(lines, begins=_WAITS_FOR_HOSTS, ends=_HOSTS_CAME):
        yield _HOSTS_SILENT, (line,)


# The first task at the barrier: /job:jax_worker/replica:0/task:13. Some timed out task names:
_TASKS_BELOW = "imed out task names:"

# Barrier_id: PjRT_Client_Connect | Id: [Init]Wait_for_all_tasks_to_register::0
_REGISTERS = expression(r"PjRT_Client_Connect|Wait_for_all_tasks_to_register|RegisterTask")

# /job:jax_worker/replica:0/task:6
_TASK = expression(r"^(?:.{0,120}[\s\])>:])?/job:\w{1,60}/replica:\d{1,6}/task:(\d{1,6})\s*$")

_TASK_LATE = LineClue("slow_rank_timeout", Grade.POSSIBLE, ("rank_crashed", "rendezvous_misconfig", "firewall"),
                      explains=frozenset({"store"}))  # fmt: skip


_TASK_MISSING = replace(_TASK_LATE, cause="rank_missing", others=("rendezvous_misconfig", "rank_crashed", "firewall"))


def tasks_late(lines: Sequence[LogLine]) -> Detected:
    """Yield the tasks that did not come to a barrier of JAX's coordination service: the lines below it."""
    for at, line in enumerate(lines):
        if _TASKS_BELOW not in line.text:
            continue
        tasks: list[tuple[str, LogLine]] = []
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


DETECTORS: tuple[Detector, ...] = (
    collectives_differ, sequences_differ, ranks_given_twice, nodes_taken_for_one, tests_run_alone, ranks_on_one_gpu,
    checkpoint_begun, first_to_fail, hosts_silent, tasks_late,
)  # fmt: skip
WORDS = (
    "worknccl(", "last enqueued", "global_rank: ", ". process , total ", " via pp/", "nthread", " pid ",
    "avg bus bandwidth", " busid ", "root cause (first", "host      : ", "rank      : ", "exitcode  : ",
    "traceback : ", "saving ", "saved", "waiting for the hosts to", "notified all the hosts", "timed out task names",
    "/replica:/task:",
)  # fmt: skip
