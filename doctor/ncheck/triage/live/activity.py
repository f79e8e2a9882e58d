"""What the processes of the ranks show: stopped, ended, waiting for storage, alone at work, or getting on."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ncheck.expression import expression
from ncheck.model.cluster import Cluster
from ncheck.model.fact import Unread
from ncheck.model.job import Job
from ncheck.text import moved
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.activity import ActivityFacts, MountUse, ProcessActivity, Space, Thread
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.watched_ranks import SOURCE, Watched, clean, mount_of, watched

READS = (ActivityFacts, ProcessesFacts)


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what is odd about a process, and which ranks were seen to work."""
    seen = tuple(watched(job, cluster))
    yield from _gone(job, cluster)
    for one in seen:
        yield from _state(one)
        yield from _storage(one)
        yield from _ended_loaders(one)
    yield from _stopped_launchers(job)
    yield from _alone(seen)
    yield from _programs(seen)
    yield from _writes(seen)
    yield from _loaders(seen)
    yield from _motions(seen)


def _gone(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield the ranks that ended while triage looked, if others go on."""
    facts = cluster.facts(ActivityFacts)
    ended = [one for one in job.ranks if one.node in facts and one.pid in facts[one.node].gone]
    if len(ended) < len(job.ranks):
        for one in ended:
            yield Clue(SOURCE, "rank_crashed", Grade.LIKELY, f"{one.shown} ended while triage looked at the job",
                       () if one.rank is None else (one.rank,), (one.node,))  # fmt: skip


_STOPPED = {"T": "stopped by a signal (state T)", "t": "stopped by a debugger or a tracer (state t)"}


def _state(one: Watched) -> Iterator[Sign]:
    shown, states = one.rank.shown, one.own.states
    if _is_held(one.own):
        yield one.clue("rank_stopped", Grade.CERTAIN, f"{shown} is {_STOPPED[states[-1]]}", still=False,
                       fix=f"kill -CONT {one.rank.pid}" if states[-1] == "T" else "")  # fmt: skip
    elif one.own.ended:
        code = one.own.looks[-1].exit_code
        how, bad = _end(code)
        yield one.clue("rank_crashed", Grade.CERTAIN if bad else Grade.LIKELY, f"{shown} has ended{how}",
                       still=not bad, kind=_kind(code))  # fmt: skip
    for child in one.loaders:
        if _is_held(child):
            text = f"pid {child.pid} ({clean(child.name)}) beneath {shown} is {_STOPPED[child.states[-1]]}"
            yield one.clue("data_loader", Grade.LIKELY, text, others=("rank_stopped",))


def _is_held(process: ProcessActivity) -> bool:
    """Return whether a process was stopped at both looks: a profiler stops one for a moment."""
    return len(process.states) > 1 and set(process.states) <= set(_STOPPED)


def _end(code: int) -> tuple[str, bool]:
    """Return how a process ended, by its status, and whether that was a failure."""
    if code & 0x7F:
        number = code & 0x7F
        name = next((one.name for one in signal.Signals if one == number), f"signal {number}")
        return f" by {name}, and its parent did not collect it (state Z)", True
    return (f" with exit code {code >> 8} (state Z)", True) if code else (" (state Z)", False)


def _kind(code: int) -> str:
    return {9: "killed", 11: "segfault", 6: "assertion"}.get(code & 0x7F, "")


def _stopped_launchers(job: Job) -> Iterator[Sign]:
    for node, above in job.launchers.items():
        for one in above:
            if one.state in _STOPPED:
                text = f"{clean(one.name)} (pid {one.pid} on {node}), which started ranks, is {_STOPPED[one.state]}"
                yield Clue(SOURCE, "rank_stopped", Grade.LIKELY, text, nodes=(node,), fix=f"kill -CONT {one.pid}")


# Kernel functions in which a thread waits for a file system of a kind.
_WAITS = (
    (expression(r"rpc_|nfs|xprt_"), expression(r"^nfs")),
    (expression(r"fuse|request_wait_answer|__wait_rsp"), expression(r"^fuse|^wekafs|^virtiofs")),
    (expression(r"ptlrpc|ldlm_|^ll_|osc_|cl_sync|lov_"), expression(r"^lustre")),
    (expression(r"cxi[A-Z]|mmfs|gpfs"), expression(r"^gpfs")),
    (expression(r"ceph"), expression(r"^ceph")),
    (expression(r"cifs|smb2?_"), expression(r"^cifs|^smb")),
    (expression(r"p9_"), expression(r"^9p")),
)  # fmt: skip

_LOCAL = expression(
    r"wait_on_page|folio_wait|io_schedule|jbd2|xfs_|ext4_|btrfs|blk_|bio_|rq_qos|balance_dirty|wait_on_buffer"
)

_NETWORK = expression(r"^(?:nfs|lustre|gpfs|beegfs|ceph|glusterfs|cifs|smb|wekafs|pvfs2|orangefs|panfs|afs|9p|fuse)")
_DRIVER = expression(r"nvidia|^os_|_nv\d|uvm_|amdgpu|kfd|mlx5|ib_|cma_|rdma")


def _storage(one: Watched) -> Iterator[Sign]:
    """Yield the threads that waited in the kernel for a file system or a device from one look to the other."""
    for process in (one.own, *one.beneath):
        stuck = [it for it in process.threads if _is_stuck(it)]
        if stuck:
            yield _stuck(one, process, stuck[0])


# Who asks a FUSE file system sleeps so that signals can wake it, until the first one comes.
_FUSE = expression(r"request_wait_answer|fuse_")


def _is_stuck(thread: Thread) -> bool:
    """Return whether a thread slept uninterruptible at both looks, or for FUSE, and did nothing in between."""
    sleeps = set(thread.states) == {"D"} or (bool(_FUSE.search(thread.wait)) and set(thread.states) <= {"D", "S"})
    return sleeps and len(thread.states) > 1 and not thread.ran


def _stuck(one: Watched, process: ProcessActivity, thread: Thread) -> Clue:
    name = (
        one.rank.shown if process is one.own else f"pid {process.pid} ({clean(process.name)}) beneath {one.rank.shown}"
    )
    how = "and cannot be interrupted " if thread.states[-1] == "D" else ""
    place = clean(thread.wait) or "an unknown place"
    text = f"{name} waits in the kernel {how}(state {thread.states[-1]}, in {place})"
    if _DRIVER.search(thread.wait):
        return one.clue("gpu_fault", Grade.POSSIBLE, text, others=("ib_fabric", "software_bug"))
    if mount := _mount_of(process, thread):
        silent = isinstance(_space_of(one, mount), Unread)
        where = f"{text}, on {clean(mount.point)} ({clean(mount.kind)} {clean(mount.source)})"
        network = bool(_NETWORK.match(mount.kind))
        return one.clue("storage_hang", Grade.CERTAIN if silent and network else Grade.LIKELY, where,
                        others=() if network else ("checkpoint_write",))  # fmt: skip
    known = any(waits.search(thread.wait) for waits, _ in _WAITS) or bool(_LOCAL.search(thread.wait))
    return one.clue("storage_hang", Grade.LIKELY if known else Grade.POSSIBLE, text, others=("deadlock", "gpu_fault"))


def _mount_of(process: ProcessActivity, thread: Thread) -> MountUse | None:
    """Return the file system that a thread waits for: of the kind that the kernel's function names."""
    for waits, kind in _WAITS:
        if waits.search(thread.wait):
            return next((mount for mount in process.mounts if kind.search(mount.kind)), None)
    if _LOCAL.search(thread.wait) or thread.wait in ("", "0"):
        used = [mount for mount in process.mounts if mount.used]
        written = [mount for mount in used if any(_is_on(it.path, mount, used) for it in process.written)]
        remote = [mount for mount in used if _NETWORK.match(mount.kind)]
        return next(iter((*remote, *written)), None)
    return None


def _is_on(path: str, mount: MountUse, mounts: Iterable[MountUse]) -> bool:
    return mount_of(path, mounts) is mount


def _space_of(one: Watched, mount: MountUse) -> Space | Unread | None:
    spaces = one.facts.spaces or {}
    return next((space for path, space in spaces.items() if _is_on(path, mount, one.own.mounts)), None)


_BUSY, _MOSTLY, _LITTLE, _IDLE = 0.9, 0.8, 0.3, 0.05  # CPUs that a rank keeps busy


def _alone(seen: Sequence[Watched]) -> Iterator[Sign]:
    """Yield the one rank that works while all others wait, or that waits while all others are busy."""
    if len(seen) == 1 or any(one.own.ended or _is_held(one.own) for one in seen):
        return
    for one in seen:
        others = [other.share for other in seen if other is not one]
        pace = f"{one.rank.shown} uses {one.share:.0%} of a CPU, the others {min(others):.0%} to {max(others):.0%}"
        if any(it.grown >= _MUCH for it in one.own.written):
            continue  # it writes: see there
        if one.share >= _MOSTLY and max(others) <= _LITTLE and not one.spins:
            meaning = f"the others wait for {_who(one)}, which works"
            yield one.clue("slow_rank", Grade.POSSIBLE, pace, still=False, slow=True, works=True, meaning=meaning)
        short_of_cpu = one.facts.node.cpu >= _BUSY  # where others want it too, it does not get all of one
        if (one.wants >= _BUSY or (short_of_cpu and one.share >= 3 * _IDLE)) and max(others) <= _IDLE:
            meaning = f"the others wait for {_who(one)}, which computes"
            yield one.clue("slow_rank", Grade.POSSIBLE, pace, works=True, others=("deadlock",), meaning=meaning)
        elif one.wants <= _IDLE and min(others) >= _BUSY:
            yield one.clue("deadlock", Grade.POSSIBLE, pace, others=("data_loader", "storage_hang", "slow_rank"))


def _programs(seen: Sequence[Watched]) -> Iterator[Sign]:
    """Yield the one rank whose program, which it started, computes while all ranks wait."""
    busy = [(one, it) for one in seen for it in one.beneath if not one.is_loader(it) and _computes(it)]
    if busy and len({one.rank.pid for one, _ in busy}) == 1 < len(seen) and all(one.share <= _IDLE for one in seen):
        one, child = max(busy, key=lambda pair: pair[1].cpu_seconds)
        share = child.cpu_seconds / max(one.facts.seconds, 0.1)
        name = f"pid {child.pid} ({clean(child.name)}) beneath {one.rank.shown}"
        meaning = f"the others wait for {_who(one)}, which works: a program that it started computes"
        text = f"{name} uses {share:.0%} of a CPU, while all ranks wait"
        yield one.clue("slow_rank", Grade.POSSIBLE, text, works=True, meaning=meaning)


def _who(one: Watched) -> str:
    return "a process" if one.rank.rank is None else f"rank {one.rank.rank}"


_WRITES_FAST = 1 << 26  # bytes of one file in the same time: the job gets on with it
_MUCH, _ENOUGH = 1 << 20, 1 << 16  # bytes of files while the ranks were watched: of a checkpoint, of work


def _writes(seen: Sequence[Watched]) -> Iterator[Sign]:
    """Yield the ranks that write a file while more others write none."""
    found = [[it for it in one.own.written if it.grown >= _MUCH and it.path not in one.own.output] for one in seen]
    others = [one for one, files in zip(seen, found, strict=True) if not files]
    if len(others) * 2 < len(seen) or not others:
        return
    idle = all(one.share <= _IDLE for one in others)
    for one, it in ((one, it) for one, files in zip(seen, found, strict=True) for it in files):
        pace = f"{moved(it.grown)} in {one.facts.seconds:.0f} s, {moved(it.end)} so far"
        text = f"{one.rank.shown} writes {clean(it.path)}: {pace}"
        if it.grown >= _WRITES_FAST:
            yield Motion(SOURCE, None, one.rank.node, moves=True, text=text)
        else:
            meaning = f"the others wait for {_who(one)}, which works: it writes a file" if idle else ""
            yield one.clue("checkpoint_write", Grade.POSSIBLE, text, works=True, meaning=meaning)


def _ended_loaders(one: Watched) -> Iterator[Sign]:
    for child in one.loaders:
        if child.ended and len(child.looks) > 1:
            code = child.looks[-1].exit_code
            text = f"pid {child.pid} ({clean(child.name)}) beneath {one.rank.shown} has ended{_end(code)[0]}"
            yield one.clue("data_loader", Grade.LIKELY, text, kind=_kind(code))


def _loaders(seen: Sequence[Watched]) -> Iterator[Sign]:
    """Yield the rank with fewer data loaders than the others, and the one whose loaders work while all else waits."""
    alive = [sum(not it.ended for it in one.loaders) for one in seen]
    usual, times = Counter(alive).most_common(1)[0] if alive else (0, 0)
    for one, count in zip(seen, alive, strict=True):
        if times == len(seen) - 1 > 1 and count < usual:
            text = f"{one.rank.shown} has {count} data loaders, the others {usual}"
            yield one.clue("data_loader", Grade.POSSIBLE, text)
    active = [one for one in seen if any(_works(it) for it in one.loaders)]
    if len(active) == 1 < len(seen) and all(one.share <= _IDLE for one in seen):
        (one,) = active
        count = sum(map(_works, one.loaders))
        text = f"data loaders of {one.rank.shown} work ({count}), while all ranks wait"
        yield one.clue("data_loader", Grade.LIKELY, text, still=False, slow=True)
        meaning = f"the others wait for the data loaders of {_who(one)}, which work"
        yield one.clue("data_loader", Grade.POSSIBLE, text, works=True, meaning=meaning)


def _works(process: ProcessActivity) -> bool:
    return _computes(process) or (process.grown("disk_read") or 0) >= _MUCH


def _computes(process: ProcessActivity) -> bool:
    """Return whether a process computed, or would have if others had not had the CPU."""
    return process.wanted_seconds >= _LITTLE or (process.states == "RR" and process.cpu_seconds > 0)


_GROWS = 1 << 22  # bytes of memory: what a program reads, makes or loads


def _aside(one: Watched) -> str:
    """Return what works for a rank while the rank itself may wait, as a program, a download, a table that grows."""
    for it in one.beneath:
        name = f"pid {it.pid} ({clean(it.name)}) beneath {one.rank.shown}"
        if _computes(it):
            return f"{name} computes"
        amount = (it.grown("read") or 0) + (it.grown("written") or 0)
        if amount >= _ENOUGH:
            return f"{name} moved {moved(amount)} in {one.facts.seconds:.0f} s"
    more = max(it.grown("rss") or 0 for it in (one.own, *one.beneath))
    return (
        f"the memory of {one.rank.shown} grew by {moved(more)} in {one.facts.seconds:.0f} s" if more >= _GROWS else ""
    )


_NOTHING, _SOME, _TRAFFIC = 0.005, 0.05, 4096  # CPUs, and bytes


def _motions(seen: Sequence[Watched]) -> Iterator[Motion]:
    alone = len(seen) > 1 and sum(one.share > _IDLE for one in seen) == 1
    for one in seen:
        if motion := _motion(one, alone=alone):
            moves, text = motion
            number = one.rank.rank
            yield Motion(SOURCE, number, one.rank.node, moves, f"{one.rank.shown} {text}", pid=one.rank.pid)
        if text := _aside(one):
            yield Motion(SOURCE, one.rank.rank, one.rank.node, moves=True, text=text, pid=one.rank.pid, aside=True)


def _motion(one: Watched, *, alone: bool) -> tuple[bool, str] | None:  # noqa: PLR0911  one for each sign
    """Return whether a rank works, and how that was seen; None if that cannot be seen from outside.

    A rank that only waits may keep a CPU busy, and one that is busy while all others wait may be in a loop.
    """
    seconds = f"{one.facts.seconds:.0f} s"
    if one.own.ended or _is_held(one.own):
        return False, f"is in state {one.own.states[-1]}"
    files = [it for it in one.own.written if it.grown >= _ENOUGH and it.path not in one.own.output]
    if files:
        return True, f"wrote to {clean(files[0].path)}"
    disk, traffic = one.grown("disk_read"), one.grown("read", "written")
    if disk is not None and disk >= _MUCH:
        return True, f"read {moved(disk)} from files in {seconds}"
    if traffic is None:
        return None
    if one.share >= _SOME and traffic >= _TRAFFIC and not one.spins and not alone:
        return True, f"computed and moved {moved(traffic)} in {seconds}"
    if one.share <= _NOTHING and traffic < _TRAFFIC and not disk:
        return False, f"used no CPU and moved no data in {seconds}"
    return None
