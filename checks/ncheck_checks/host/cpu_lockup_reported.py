"""The kernel reported CPUs that hung

## What it finds
Lines in the kernel log since boot about CPUs that ran nothing else for a long time: soft lockups (20 seconds and more),
hard lockups, and RCU stalls. In a virtual machine the host may have been the cause: it did not run that CPU. Processes
that waited long for a disk or a server ("blocked for more than") are left out: process-stuck lists those that wait now.
Only root can read the kernel log on a default machine (--sudo).

## Why it matters
A rank on such a CPU stands still, and so do all others, until NCCL's or the launcher's timeout. The cause is most often
a driver, faulty hardware, or a host that is overloaded, and returns.

## What to type
`sudo journalctl -k -b --no-pager | grep -Ei -A20 'lockup|stall'` shows the process and the function that hung. Update
the driver that it names, or the kernel; if it names none, reboot the node and watch it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.hardware_log import HardwareLogFacts
from ncheck.facts.kernel_log import last_at


@node_check("NC657", Severity.WARNING, HardwareLogFacts, hardware=True)
def cpu_lockup_reported(node: NodeView) -> Iterator[Problem]:
    for one in node[HardwareLogFacts].lockups:
        times = "" if one.lines == 1 else f" {one.lines} times"
        yield Problem(
            f"the kernel reported a {one.of}{times}: a CPU hung{last_at(one.last)}",
            "sudo journalctl -k -b --no-pager | grep -Ei -A20 'lockup|stall'",
            tuple({one.first: "", one.last: ""}),
            look=True,
            summary="a CPU hung",
        )
