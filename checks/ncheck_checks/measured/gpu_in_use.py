"""A GPU is already in use

## What it finds
GPUs that are in use before the job starts: more than 3 % of their memory and more than 1 GiB (the driver itself uses
less), a program that computes there, or kernels that run in more than 5 % of the time in two looks a second apart.
The finding names the processes, their programs and users as far as this user is shown them, and says where none is
listed. A server of MPS, the programs of a desktop and ncheck's own do not count, nor do kernels of no process where
persistence mode is off: the driver that wakes up keeps the GPU busy for a moment. Inside a job, what its own ranks use
does not count, nor does a program of others that uses next to nothing. Inside a container no processes are known.

Measurements on such a GPU are too low. With more than 10 % of the memory in use ncheck measures nothing on GPUs, except
with --force.

## Why it matters
A rank that shares its GPU is slow or ends with "CUDA out of memory", and all others wait for it or end with it. Often a
process of an earlier job is still running, or another user shares the node by mistake. Memory that no process has is
often left by one that died, and goes away with the last program that has the device open, or with a reset.

## What to type
`nvidia-smi` on the named nodes shows the processes. End your own with `kill PID`. Where none is listed,
`sudo fuser -v /dev/nvidia*` shows who has the device open. To measure anyway: `ncheck probe nodes.txt --force`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpus import GpuFacts, GpuProcess
from ncheck.facts.ranks import RanksFacts
from ncheck.topology.gpus import in_use, programs_on, share_in_use, unlisted, used_by_others

_SHOWN = 4  # processes of a GPU in a line
_NONE = "no process is listed (one in another container, or one that died and left this behind)"


@node_check("NC730", Severity.WARNING, GpuFacts, also=(RanksFacts, GpuHealthFacts))
def gpu_in_use(node: NodeView) -> Iterator[Problem]:
    facts, ranks, health = node[GpuFacts], node.maybe(RanksFacts), node.maybe(GpuHealthFacts)
    own = ranks.pids if isinstance(ranks, RanksFacts) else None
    held = {gpu.index: share_in_use(gpu) or 0.0 for gpu in in_use(facts if own is None else used_by_others(facts, own))}
    busy = _busy(health, facts, own) if isinstance(health, GpuHealthFacts) and health.busy else {}
    lines: dict[int, str] = {}
    lost = False
    for gpu in facts.gpus:
        programs = [one for one in programs_on(gpu, facts) if one.pid not in (own or ())]
        what = [f"{busy[gpu.index]}% busy"] if gpu.index in busy else []
        what += [f"{held[gpu.index]:.0%} of its memory"] if gpu.index in held else []
        if what or (own is None and not all(one.ended for one in programs)):
            lost = lost or unlisted(gpu) or any(one.ended for one in programs)
            lines[gpu.index] = ", ".join((*what, *(_called(programs) if not unlisted(gpu) else (_NONE,))))
    if lines:
        index, first = next(iter(lines.items()))
        several = f"{len(lines)} GPUs are in use before the job starts, such as GPU {index}: {first}"
        message = several if len(lines) > 1 else f"GPU {index} is in use before the job starts: {first}"
        evidence = tuple(f"GPU {index}: {what}" for index, what in lines.items()) if len(lines) > 1 else ()
        fix = "sudo fuser -v /dev/nvidia*" if lost else facts.usage_shown_by
        yield Problem(message, fix, evidence, look=True, summary="GPUs are in use")


def _busy(health: GpuHealthFacts, facts: GpuFacts, own: Collection[int] | None) -> dict[int, int]:
    """Return the GPUs that compute for others, with the percentage of the time."""
    awake = {gpu.index for gpu in health.gpus if gpu.persistence == 1}
    found = {}
    for gpu in facts.gpus:
        ours = own is not None and (gpu.processes is None or not gpu.processes.keys().isdisjoint(own))
        listed = bool(gpu.processes or gpu.graphics)
        if gpu.index in health.busy and not ours and (programs_on(gpu, facts) if listed else gpu.index in awake):
            found[gpu.index] = health.busy[gpu.index]
    return found


def _called(programs: list[GpuProcess]) -> list[str]:
    more = [f"{len(programs) - _SHOWN} more"] if programs[_SHOWN:] else []
    return [one.called for one in programs[:_SHOWN]] + more
