"""What the GPUs of the ranks show: lost, throttled, full, idle among busy ones, at work, or busy with waiting.

A kernel of NCCL that waits keeps its GPU 100 % busy, moves no memory and takes little power: use alone is no work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.fact import Unread
from ncheck.model.job import Job, RankProcess
from ncheck.text import size
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.gpu_activity import GpuActivity, GpuActivityFacts, GpuLook
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.stacks import StacksFacts
from ncheck.triage.positions import Kind, position_of
from ncheck.triage.watched_ranks import clean

READS = (GpuActivityFacts, ProcessesFacts, StacksFacts)


@dataclass(frozen=True)
class _UsedGpu:
    """A GPU, and the rank that uses it."""

    node: str
    gpu: GpuActivity
    rank: RankProcess | None

    @property
    def shown(self) -> str:
        return f"GPU {self.gpu.index} of {self.node}" + (f", of {self.rank.shown}" if self.rank else "")

    def always(self, holds: Callable[[GpuLook], bool]) -> bool:
        """Return whether something holds at both looks."""
        return all(map(holds, self.gpu.looks))

    def clue(self, cause: str, grade: Grade, text: str, **more: object) -> Clue:
        ranks = () if self.rank is None or self.rank.rank is None else (self.rank.rank,)
        return Clue("gpus", cause, grade, text, ranks, (self.node,), **more)  # type: ignore[arg-type]


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what is odd about the GPUs of the job, and which of them work."""
    processes = cluster.facts(ProcessesFacts)
    every = [
        _UsedGpu(node, gpu, _rank_of(gpu, node, job, processes.get(node)))
        for node, facts in cluster.facts(GpuActivityFacts).items()
        if node in job.nodes
        for gpu in facts.gpus
    ]
    used = [one for one in every if one.rank]
    yield from _silent(job, cluster)
    for one in every:
        yield from _faults(one)
    for one in used:
        yield from _slow(one, used)
        yield from _full(one, job)
    if not any(_serves(cluster.facts(StacksFacts).get(one.node), one) for one in used):
        yield from _idle(used)
    for one in used:
        yield from _motion(one)


def _serves(stacks: StacksFacts | None, used: _UsedGpu) -> bool:
    """Return whether the rank of a GPU waits for requests: then all that is idle waits for them too."""
    seen = stacks.of(used.rank.pid) if stacks and used.rank else None
    looks = seen.looks if seen and isinstance(seen.looks, tuple) else ()
    return any(position_of(thread.frames).kind is Kind.SERVICE for look in looks for thread in look)


def _rank_of(gpu: GpuActivity, node: str, job: Job, processes: ProcessesFacts | None) -> RankProcess | None:
    """Return the rank that computes there; inside a container, where NVML has no pids, the one that has it open."""
    if gpu.processes is not None:
        return next((found for pid in gpu.processes if (found := job.find(node, pid))), None)
    held = {pid: names for pid, names in (processes.gpus if processes else {}).items() if len(names) == 1}
    pid = next((pid for pid, (name,) in held.items() if name == f"nvidia{gpu.minor}"), None)
    return None if pid is None else job.find(node, pid)


def _silent(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield the nodes whose driver does not answer although ranks hold GPUs there."""
    for node, facts in cluster.facts(ProcessesFacts).items():
        why = cluster.known[node].get(GpuActivityFacts)
        if isinstance(why, Unread) and node in job.nodes and any(facts.gpus.get(one.pid) for one in job.on(node)):
            lost = "lost" in why.reason
            if why.hung or lost:
                text = f"the NVIDIA driver of {node} does not answer: {clean(why.reason)}"
                yield Clue(
                    "gpus", "gpu_fault", Grade.CERTAIN if lost else Grade.LIKELY, text, nodes=(node,), still=not lost
                )


def _faults(one: _UsedGpu) -> Iterator[Sign]:
    lost = [words for words in (one.gpu.errors or {}).values() if "lost" in words or "reset" in words]
    if lost:
        yield one.clue("gpu_fault", Grade.CERTAIN, f"{one.shown} does not answer: {clean(lost[0])}", still=False)
    before, after = (look.ecc or 0 for look in one.gpu.looks)
    if after > before:
        text = f"{one.shown} had {after - before} memory errors while it was watched that could not be corrected"
        yield one.clue("gpu_fault", Grade.CERTAIN, text, still=False)
    elif after and one.rank:
        text = f"{one.shown} has had {after} memory errors that could not be corrected"
        yield one.clue("gpu_fault", Grade.POSSIBLE, text)


# NVML's reasons for a low clock that are no setting and no ordinary limit of power.
_THROTTLED = {0x08: "hardware slowdown", 0x20: "temperature", 0x40: "temperature", 0x80: "power supply"}
_LOW, _BUSY, _QUIET = 0.8, 50, 5  # share of the usual clock; percent of use


def _slow(one: _UsedGpu, used: Sequence[_UsedGpu]) -> Iterator[Sign]:
    """Yield a GPU whose clock is held low while it works, or is lower than those of the others."""
    clock, most = one.gpu.looks[1].clock, one.gpu.looks[1].most_clock
    if not clock or not most or not one.always(lambda look: (look.use or 0) >= _BUSY):
        return
    bits = (one.gpu.looks[0].throttled or 0) & (one.gpu.looks[1].throttled or 0)
    reasons = {name for bit, name in _THROTTLED.items() if bits & bit}
    others = [it.gpu.looks[1].clock or 0 for it in used if it is not one and (it.gpu.looks[1].use or 0) >= _BUSY]
    pace = f"{one.shown} runs at {clock} MHz of {most} MHz"
    if reasons and clock <= _LOW * most:
        yield one.clue("slow_rank", Grade.LIKELY, f"{pace}: slowed by {', '.join(sorted(reasons))}", still=False,
                       slow=True, looks=("nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",))  # fmt: skip
    elif len(others) > 1 and clock <= _LOW * median(others):
        text = f"{pace}, the others at {median(others):.0f} MHz"
        yield one.clue("slow_rank", Grade.POSSIBLE, text, still=False, slow=True, looks=("nvidia-smi -q -d CLOCK",))


_FULL, _SHARE = 0.97, 0.05


def _full(one: _UsedGpu, job: Job) -> Iterator[Sign]:
    """Yield a GPU whose memory is full because a process that is not the job's holds some of it."""
    used, total = one.gpu.looks[1].memory_used or 0, one.gpu.memory_total or 0
    strangers = {pid: held for pid, held in (one.gpu.processes or {}).items() if held and not job.find(one.node, pid)}
    held = sum(strangers.values())
    if total and used >= _FULL * total and held >= _SHARE * total:
        pids = ", ".join(map(str, sorted(strangers)[:4]))
        text = f"the memory of {one.shown} is full, and pid {pids}, not of this job, has {size(held)} of {size(total)}"
        yield one.clue("gpu_oom", Grade.LIKELY, text, looks=("nvidia-smi",))


def _idle(used: Sequence[_UsedGpu]) -> Iterator[Sign]:
    """Yield the GPU that does nothing while all others are busy: those may run kernels that wait for it."""
    idle = [one for one in used if one.always(lambda look: look.use is not None and look.use < _QUIET)]
    others = [one for one in used if one not in idle]
    if len(idle) == 1 and others and all(one.always(lambda look: (look.use or 0) >= _BUSY) for one in others):
        (one,) = idle
        least = min(look.use or 0 for other in others for look in other.gpu.looks)
        text = f"{one.shown} does nothing, the other {len(others)} of the job are at least {least} % busy"
        yield one.clue("gpu_idle", Grade.POSSIBLE, text, others=("data_loader", "slow_rank", "deadlock"))


_MOVES_MEMORY, _WORKING, _WAITING = 10, 0.5, 0.45  # percent; shares of the power limit


def _motion(one: _UsedGpu) -> Iterator[Motion]:
    rank = one.rank
    if rank is None or any(look.use is None for look in one.gpu.looks):
        return

    def power(look: GpuLook) -> float:
        return (look.power or 0) / look.power_limit if look.power_limit else 0.0

    if one.always(lambda look: (look.memory_use or 0) >= _MOVES_MEMORY or power(look) >= _WORKING):
        yield Motion("gpus", rank.rank, one.node, moves=True, text=f"{one.shown} computes", pid=rank.pid)
    elif one.always(lambda look: (look.use or 0) < _QUIET):
        yield Motion("gpus", rank.rank, one.node, moves=False, text=f"{one.shown} does nothing", pid=rank.pid)
    elif one.always(lambda look: (look.use or 0) >= 95 and look.memory_use in (0, 1) and power(look) <= _WAITING):  # noqa: PLR2004
        text = f"{one.shown} is busy, moves no memory and takes little power: its kernel waits"
        yield Motion("gpus", rank.rank, one.node, moves=False, text=text, waits=True, pid=rank.pid)
