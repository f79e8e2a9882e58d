"""What the kernel has logged since the job began: its processes killed, links down, storage silent, GPUs failed.

The signatures of logs read each message. A message about a process counts for the rank that it is, or is beneath; that
of another one only where a rank is missing, or where the kernel says that it was in the job's control group. One about
a link or a server counts until a later message says that it is back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job, RankProcess
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Sign
from ncheck.triage.facts.activity import TICKS, ActivityFacts
from ncheck.triage.facts.gpu_activity import GpuActivityFacts
from ncheck.triage.facts.jobs import LOADERS
from ncheck.triage.facts.kernel_messages import KernelMessage, KernelMessagesFacts
from ncheck.triage.facts.processes import ProcessesFacts, is_launcher
from ncheck.triage.signature import LineClue
from ncheck.triage.signatures import SIGNATURES
from ncheck.triage.watched_ranks import clean

READS = (KernelMessagesFacts, GpuActivityFacts, ActivityFacts, ProcessesFacts)
_SLACK = 5.0  # seconds by which the kernel's two clocks may differ


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield one clue for each cause and rank of a node, with the last message about it.

    A node that has no rank is looked at for one that was there.
    """
    for node, facts in cluster.facts(KernelMessagesFacts).items():
        began = _began(job, node, cluster)
        if began is not None:
            recent = [message for message in facts.messages if message.seconds >= began - _SLACK]
            here = _Here.of(job, node, cluster.facts(ActivityFacts).get(node), recent)
            used = _gpus_of(here.ranks, cluster.facts(GpuActivityFacts).get(node))
            own = [one for one in recent if not _is_of_another_gpu(one, used)]
            yield from _clues(node, here, own, sure=bool(used))


def _began(job: Job, node: str, cluster: Cluster) -> float | None:
    """Return when the job began, in seconds since that node was booted; None where no rank may have been there."""
    here = [one.process.started / TICKS for one in job.on(node)]
    if here or not job.missing:
        return min(here, default=None)
    up = {name: facts.uptime for name, facts in cluster.facts(ProcessesFacts).items() if facts.uptime}
    ages = [up[one.node] - one.process.started / TICKS for one in job.ranks if one.node in up]
    if ages and node in up:
        return up[node] - max(ages)
    return min((one.started / TICKS for one in job.launchers.get(node, ()) if is_launcher(one)), default=None)


def _gpus_of(ranks: Mapping[int, RankProcess], facts: GpuActivityFacts | None) -> tuple[str, ...]:
    """Return the PCI addresses of the GPUs on which the job computes, as far as they are known."""
    gpus = facts.gpus if facts else ()
    return tuple(gpu.pci.lower() for gpu in gpus if gpu.pci and ranks.keys() & (gpu.processes or {}).keys())


# NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
_GPU = expression(r"Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\)")


def _is_of_another_gpu(message: KernelMessage, used: tuple[str, ...]) -> bool:
    match = _GPU.search(message.text)
    return bool(match and used and not any(gpu.startswith(match[1].lower()) for gpu in used))


def _pids(rank: RankProcess) -> list[int]:
    return [rank.pid, *(child.pid for child in rank.children)]


@dataclass(frozen=True)
class _RankMessage:
    """What a message says: of which rank, if it names a process of one."""

    clue: LineClue
    message: KernelMessage
    rank: RankProcess | None


@dataclass(frozen=True)
class _Here:
    """What of the job was, or may have been, on a node. `ranks` by the pids of all that is theirs.

    `names`: what the job's processes are called. `missing`: ranks that no process is. `groups`: the innermost
    control groups of the ranks; `victims`: that of each process which the kernel ended, by pid.
    """

    ranks: Mapping[int, RankProcess]
    names: frozenset[str]
    missing: tuple[int, ...]
    groups: frozenset[str]
    victims: Mapping[int, str]

    @classmethod
    def of(cls, job: Job, node: str, facts: ActivityFacts | None, messages: Sequence[KernelMessage]) -> _Here:
        ranks = {pid: one for one in job.on(node) for pid in _pids(one)}
        names = frozenset(one.process.name for one in job.ranks)
        named = (
            (_GROUP_ROOT.sub("", folder) for one in facts.processes.values() for folder in one.groups) if facts else ()
        )
        every = set(filter(None, named))
        groups = frozenset(one for one in every if not any(it.startswith(one + "/") for it in every))
        killed = (hit for message in messages if (hit := _VICTIM.search(message.text)))
        return cls(ranks, names, job.missing, groups, {int(hit["pid"]): hit["group"] for hit in killed})

    def may_be_own(self, pid: int, name: str) -> bool:
        """Return whether a process that is none of the job's now was one: a rank that is missing, or in its group.

        A process of the same program, in another group, is of another job.
        """
        group = self.victims.get(pid)
        if name not in self.names and not name.startswith(LOADERS):
            return False
        if group is not None and any(group == own or group.startswith(own + "/") for own in self.groups):
            return True
        beside = group is None or not self.groups or any(_parent(group) == _parent(own) for own in self.groups)
        return bool(self.missing) and beside


# /sys/fs/cgroup/memory/slurm/uid_1000/job_812 | /sys/fs/cgroup/system.slice/docker-ab.scope
_GROUP_ROOT = expression(r"^/sys/fs/cgroup(?:/(?:unified|memory|cpu(?:,cpuacct)?|cpuacct,cpu))?(?=/|$)")
# oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=ab,mems_allowed=0,oom_memcg=/docker/ab,
# task_memcg=/docker/ab,task=java,pid=77,uid=0
_VICTIM = expression(r"task_memcg=(?P<group>[^,]{1,1024}),task=[^,]{1,32},pid=(?P<pid>\d{1,9})")


def _parent(group: str) -> str:
    return group.rpartition("/")[0]


def _clues(node: str, here: _Here, messages: list[KernelMessage], *, sure: bool) -> Iterator[Clue]:
    """Yield a clue for each cause. `sure`: a GPU that a message is about is one of the job's."""
    lasting = _lasting(messages)
    found: dict[tuple[str, int | None], list[_RankMessage]] = {}
    for message in messages:
        clue = next(_line_clues(message.text), None) if message in lasting else None
        if clue and (about := _about(clue, message, here)):
            found.setdefault((about.clue.cause, about.rank.pid if about.rank else None), []).append(about)
    for several in found.values():
        best = max(several, key=lambda one: (one.clue.grade, one.message.seconds))
        yield _clue(node, best, len(several), here, sure=sure)


def _line_clues(text: str) -> Iterator[LineClue]:
    clues = (clue for signature in SIGNATURES if (clue := signature.read(text)))
    found = [one for one in clues if one.cause and not one.fallback]
    # Of a log a link that goes down says little: it may be back. Here it is known that it is not.
    return iter(found or [_LINK for pattern in _PASSING[1:] if (hit := pattern.search(text)) and hit["gone"]][:1])


_LINK = LineClue("ib_fabric", Grade.POSSIBLE, look="ip -br link")

# What comes and goes: each pattern has the name of the thing and whether it is gone or back.
_PASSING = (
    # nfs: server filer not responding, still trying    |    nfs: server filer OK
    expression(r"nfs: server (?P<what>\S{1,255}) (?P<gone>not responding)?"),
    # mlx5_core 0000:3b:00.0 ens1f0np0: Link down    |    igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps
    expression(r"(?P<what>[\w.-]{1,32}):? (?:NIC )?[Ll]ink (?:is )?(?:(?P<gone>[Dd]own)|[Uu]p)\b"),
    # bond0: (slave eth1): link status definitely down, disabling slave
    expression(r"slave (?P<what>[\w.-]{1,32})\): link status definitely (?:(?P<gone>down)|up)"),
)  # fmt: skip


def _lasting(messages: list[KernelMessage]) -> list[KernelMessage]:
    """Return the messages without those that a later one takes back."""
    kept: list[KernelMessage] = []
    back: set[str] = set()
    for message in reversed(messages):
        match = next((hit for pattern in _PASSING if (hit := pattern.search(message.text))), None)
        if match is None or (match["gone"] and match["what"] not in back):
            kept.append(message)
        elif not match["gone"]:
            back.add(match["what"])
    return kept[::-1]


# Out of memory: Killed process 31337 (python3) total-vm:512000000kB
# python3[4021]: segfault at 10 ip 00007f3a sp 00007ffc error 4 in libtorch.so
# INFO: task python3:4711 blocked for more than 120 seconds.
# NVRM: Xid (PCI:0000:3b:00): 31, pid=4001, name=python3, Ch 00000010
# watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4001]
# oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,task_memcg=/job,task=python3,pid=4001,uid=1000
_PROCESS = (
    expression(r"process (?P<pid>\d{1,9}) \((?P<name>[^()]{1,32})\)"),
    expression(r"(?:^|traps: )(?P<name>[^\[\]]{1,32})\[(?P<pid>\d{1,9})\]"),
    expression(r"task (?P<name>\S{1,32}):(?P<pid>\d{1,9}) blocked"),
    expression(r"\[(?P<name>\S{1,32}):(?P<pid>\d{1,9})\]$"),
    expression(r"task=(?P<name>[^,]{1,32}),pid=(?P<pid>\d{1,9})"),
    expression(r"pid=(?P<pid>\d{1,9})(?:, name=(?P<name>[^,]{1,32}))?"),
)


def _about(clue: LineClue, message: KernelMessage, here: _Here) -> _RankMessage | None:
    """Return what a message says of the job; None if it is about another process, or about none that it names."""
    match = next((hit for pattern in _PROCESS if (hit := pattern.search(message.text))), None)
    rank = here.ranks.get(int(match["pid"])) if match else None
    if clue.cause == "rank_crashed" and rank is None:
        if match is None or not here.may_be_own(int(match["pid"]), match["name"] or ""):
            return None
        clue = replace(clue, grade=Grade.LIKELY if clue.kind == "memory" else Grade.POSSIBLE)
    elif not here.ranks:
        return None  # what else happens to a node without ranks is no matter of the job
    if clue.cause == "node_failed":  # it works, as its agent answered
        clue = replace(clue, grade=Grade.POSSIBLE, meaning="the kernel of a node reports broken hardware or storage")
    return _RankMessage(clue, message, rank)


def _clue(node: str, found: _RankMessage, times: int, here: _Here, *, sure: bool) -> Clue:
    clue, rank = found.clue, found.rank
    whose = f" about {rank.shown}" if rank else ""
    often = f", {times} such messages" if times > 1 else ""
    text = f"the kernel of {node} says{whose}{often}: {clean(found.message.text)}"
    certain = clue.grade is Grade.CERTAIN and (rank is not None or (sure and clue.cause == "gpu_fault"))
    ranks = () if rank is None or rank.rank is None else (rank.rank,)
    if rank is None and clue.cause == "rank_crashed" and len(here.missing) == 1:
        ranks = here.missing
    return Clue(
        "kernel", clue.cause, clue.grade, text, ranks, (node,), still=not certain, others=clue.others,
        kind=clue.kind, meaning=clue.meaning, fix=clue.fix,
        looks=(clue.look,) if clue.look else (),
    )  # fmt: skip
