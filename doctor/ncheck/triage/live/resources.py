"""What the ranks and their nodes have left: room on file systems, memory, CPUs, open files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncheck.model.cluster import Cluster
from ncheck.model.fact import Unread
from ncheck.model.job import Job
from ncheck.text import size
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Sign
from ncheck.triage.facts.activity import ActivityFacts, Group, NodeActivity
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.watched_ranks import SOURCE, Watched, clean, mount_of, watched

READS = (ActivityFacts, ProcessesFacts)


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what is used up, or nearly."""
    seen = tuple(watched(job, cluster))
    for one in seen:
        yield from _room(one)
        yield from _memory(one)
        yield from _limits(one)
    yield from _nodes(seen)


_SHM = "/dev/shm"  # noqa: S108  only named
_NEARLY_NONE = 1 << 20  # bytes: no file system of a job is as small
_READ_ONLY_KINDS = ("squashfs", "erofs", "iso9660", "cramfs", "proc", "sysfs")


def _room(one: Watched) -> Iterator[Sign]:
    """Yield the file systems that a rank writes to and that are full, or do not answer."""
    spaces = one.facts.spaces or {}
    written = {it.path.rpartition("/")[0] for it in one.own.written}
    for path, space in spaces.items():
        mount = mount_of(path, one.own.mounts)
        if isinstance(space, Unread):
            if mount and mount.used and "no answer" in space.reason and path in {one.own.cwd, *written}:
                yield one.clue("storage_hang", Grade.LIKELY, f"the file system of {clean(path)}, where {one.rank.shown}"
                               f" works, does not answer ({clean(mount.kind)} {clean(mount.source)})")  # fmt: skip
            continue
        full = space.free < _NEARLY_NONE
        if path == _SHM:
            if full and space.size:
                text = f"{_SHM} of {one.rank.shown} is full: {size(space.free)} of {size(space.size)} free"
                yield one.clue("shm_too_small", Grade.POSSIBLE, text)
        elif path in {one.own.cwd, *written} and mount and not (mount.read_only or mount.kind in _READ_ONLY_KINDS):
            no_files = bool(space.files and not space.files_free)
            if space.size and (full or no_files):
                what = f"{size(space.free)} of {size(space.size)}" if full else f"none of {space.files} files"
                yield one.clue("disk_full", Grade.LIKELY if path in written else Grade.POSSIBLE, f"{clean(path)}, where"
                               f" {one.rank.shown} writes, is full: {what} free", looks=("df -h .",))  # fmt: skip


_MANY_FAULTS, _MUCH_SWAPPED = 200, 0.25  # reads from disk for memory, per second; share of a rank's memory


def _memory(one: Watched) -> Iterator[Sign]:
    swap, rss = one.own.looks[-1].swap or 0, one.own.looks[-1].rss
    faults = (one.own.grown("major") or 0) / max(one.facts.seconds, 0.1)
    if faults >= _MANY_FAULTS and one.facts.node.swapped_in > 0:
        text = f"{one.rank.shown} reads its own memory back from swap: {faults:.0f} major page faults per second"
        yield one.clue("host_memory", Grade.LIKELY, text, still=False)
    elif swap > _MUCH_SWAPPED * max(rss, 1) and swap > 1 << 28:
        yield one.clue("host_memory", Grade.POSSIBLE, f"{one.rank.shown} has {size(swap)} of its memory in swap")
    for group in _groups(one):
        yield from _memory_of_group(one, group)


def _groups(one: Watched) -> list[Group]:
    known = one.facts.groups or {}
    return [known[folder] for folder in one.own.groups if folder in known]


_AT_LIMIT = 0.97


def _memory_of_group(one: Watched, group: Group) -> Iterator[Sign]:
    if group.limit is None:
        return
    place = f"the control group of {one.rank.shown} ({size(group.limit)})"
    if group.killed:
        count = "a process" if group.killed == 1 else f"{group.killed} processes"
        yield one.clue("host_memory", Grade.LIKELY, f"the kernel has killed {count} of {place} for lack of memory",
                       others=("rank_crashed", "data_loader"), looks=("sudo journalctl -k -g oom",))  # fmt: skip
    elif group.used is not None and group.used >= _AT_LIMIT * group.limit:
        yield one.clue("host_memory", Grade.LIKELY, f"{place} is full: {size(group.used)} used, without cached files")


_HELD_BACK, _SATURATED, _SOME = 0.5, 0.9, 0.1


def _limits(one: Watched) -> Iterator[Sign]:
    for group in _groups(one):
        if group.throttled >= _HELD_BACK and group.cpus is not None:
            text = (f"{one.rank.shown} is throttled in {group.throttled:.0%} of its time: its control group may use"
                    f" {group.cpus:g} CPUs")  # fmt: skip
            yield one.clue("slow_rank", Grade.LIKELY, text, still=False, slow=True,
                           meaning="the CPU limit of a rank's control group slows it down")  # fmt: skip
    beneath = sum(it.cpu_seconds for it in one.beneath) / max(one.facts.seconds, 0.1)
    if one.own.cpus == 1 and one.facts.cpus > 1 and beneath > _SOME and one.share + beneath >= _SATURATED:
        text = f"{one.rank.shown} and {len(one.beneath)} processes beneath it share one CPU of {one.facts.cpus}"
        yield one.clue("slow_rank", Grade.POSSIBLE, text, still=False, slow=True,
                       looks=(f"taskset -cp {one.rank.pid}",),
                       meaning="a rank is bound to one CPU, with all its data loaders")  # fmt: skip
    if one.own.files and one.own.files_limit and one.own.files >= _AT_LIMIT * one.own.files_limit:
        text = f"{one.rank.shown} has {one.own.files} files open, of {one.own.files_limit} allowed"
        yield one.clue("nofile_limit", Grade.LIKELY, text)


_ALMOST_NONE, _PRESSED = 0.02, 0.1


def _nodes(seen: Sequence[Watched]) -> Iterator[Sign]:
    """Yield nodes without memory, and those that are busier than the others."""
    facts = {one.rank.node: one.facts for one in seen}
    for node, here in facts.items():
        it = here.node
        full = (it.pressure or {}).get("memory full", 0.0) >= _PRESSED
        scarce = it.memory > 0 and it.available < _ALMOST_NONE * it.memory
        if scarce or full:
            more = ", and its processes wait for memory" if full else ""
            text = f"{node} has {size(it.available)} of {size(it.memory)} memory left{more}"
            yield Clue(SOURCE, "host_memory", Grade.LIKELY, text, nodes=(node,), still=not full)
    yield from _busy_nodes({node: here.node for node, here in facts.items()})


_HALF, _LINE = 0.5, 0.8  # evaluations of a resource's use take this as the line of saturation


def _busy_nodes(nodes: Mapping[str, NodeActivity]) -> Iterator[Sign]:
    """Yield the node whose CPUs or disk are above the line while those of all others are far below it.

    A job that keeps all nodes busy alike uses them well.
    """
    for node, it in nodes.items():
        others = [other for name, other in nodes.items() if name != node]
        most = max((other.cpu for other in others), default=1.0)
        if it.cpu >= _LINE and most < _HALF:
            text = f"the CPUs of {node} are {it.cpu:.0%} busy, those of the other nodes at most {most:.0%}"
            yield Clue(SOURCE, "slow_rank", Grade.POSSIBLE, text, nodes=(node,), still=False, slow=True,
                       meaning="one node's CPUs are busier than the others'", others=("data_loader",))  # fmt: skip
        disk, busy = _busiest(it)
        most = max((_busiest(other)[1] for other in others), default=1.0)
        if busy >= _LINE and most < _HALF:
            text = f"disk {clean(disk)} of {node} is {busy:.0%} busy, those of the other nodes at most {most:.0%}"
            yield Clue(SOURCE, "data_loader", Grade.POSSIBLE, text, nodes=(node,), still=False, slow=True,
                       meaning="one node's disk is busier than the others'", others=("checkpoint_write",))  # fmt: skip


def _busiest(node: NodeActivity) -> tuple[str, float]:
    return max((node.disks or {}).items(), key=lambda pair: pair[1], default=("", 0.0))
