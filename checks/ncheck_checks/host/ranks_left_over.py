"""Ranks of an earlier job are still there, without their launcher

## What it finds
Nodes with processes that torchrun, mpirun or horovodrun started, whose launcher has ended, and that hold a GPU, a port
or shared memory. Nothing is reported while another process of the same kind of launcher runs there. Zombies hold
nothing and are not reported. Without root, only your own processes are seen.

## Why it matters
Such ranks wait for the others of their job for ever. A new job finds its port taken ("Address already in use"), its GPU
half full ("CUDA out of memory") or /dev/shm full.

## What to type
`ps -o pid,user,lstart,stat,args -p PID` shows when they began and what they are. `kill PID`, and after some seconds
`kill -9 PID`, ends them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.host_load import HostLoadFacts


@node_check("NC633", Severity.WARNING, HostLoadFacts)
def ranks_left_over(node: NodeView) -> Iterator[Problem | NotApplicable]:
    load = node[HostLoadFacts]
    if load.left_over:
        number, pids = len(load.left_over), ",".join(str(one.pid) for one in load.left_over)
        what = "1 rank of an earlier job is" if number == 1 else f"{number} ranks of an earlier job are"
        evidence = tuple(
            f"pid {one.pid} {one.name} ({one.variable} is set) holds {', '.join(one.holds)}" for one in load.left_over
        )
        yield Problem(
            f"{what} still there without a launcher: pid {pids.replace(',', ', ')}",
            f"ps -o pid,user,lstart,stat,args -p {pids}",
            evidence, look=True, summary="ranks of an earlier job are left over",
        )  # fmt: skip
    elif load.hidden:
        yield NotApplicable("this user is shown only its own processes (hidepid)")
