"""Processes are stuck in the kernel

## What it finds
Nodes with processes that stay in one and the same uninterruptible sleep (state D) for 3 s. Kernel threads, which may
sleep like this for ever, and containers that are paused do not count, nor do processes that wait for a busy disk and
get on in between.

## Why it matters
Such a process waits for a driver or a file system that does not answer: an NFS server that is gone, a GPU that fell off
the bus, a disk that fails. No signal ends it, not even `kill -9`. A job that touches the same device or folder hangs in
the same place.

## What to type
`ps -eo pid,stat,wchan:32,user,args | awk '$2 ~ /^D/'` lists them with the kernel function that they wait in: nfs and
rpc stand for a network file system, nv and uvm for a GPU. `sudo dmesg | grep -A8 'blocked for more than'` has the
kernel's own report. Only the end of the cause, or a reboot, ends them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.host_load import HostLoadFacts

FIX = "ps -eo pid,stat,wchan:32,user,args | awk '$2 ~ /^D/'"


@node_check("NC620", Severity.WARNING, HostLoadFacts, hardware=True)
def process_stuck(node: NodeView) -> Iterator[Problem | NotApplicable]:
    load = node[HostLoadFacts]
    if load.stuck:
        names = ", ".join(sorted({one.name for one in load.stuck}))
        evidence = tuple(
            f"pid {one.pid} {one.name}" + (f" waits in {one.wait}" if one.wait else "") for one in load.stuck
        )
        number = len(load.stuck) + load.stuck_more
        what = "1 process is stuck" if number == 1 else f"{number} processes are stuck"
        yield Problem(f"{what} in the kernel: {names}", FIX, evidence, look=True, summary=what)
    elif load.hidden:
        yield NotApplicable("this user is shown only its own processes (hidepid)")
