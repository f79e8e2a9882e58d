"""The kernel reported errors of a disk

## What it finds
Lines in the kernel log since boot by which a disk or its file system failed: I/O and medium errors, NVMe commands that
timed out, NVMe controllers that were reset or removed, disks that failed in a RAID array, errors and corruption of
ext4, xfs and btrfs, and file systems that the kernel made read-only. Floppy and optical drives, loop devices, and
commands that a disk does not have are left out. Only root can read the kernel log on a default machine (--sudo).

## Why it matters
A disk that fails once fails again: a read ends with "Input/output error", or takes the 30 seconds of a timeout, while
all other ranks wait. Checkpoints, datasets and caches on it may be damaged.

## What to type
`sudo journalctl -k -b --no-pager | grep -w DISK` shows the messages with their times, `sudo smartctl -a /dev/DISK` what
the disk knows of itself. Take the node out of service if errors are recent or go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.disks import LOST, UNHEALTHY_DISK, DiskFacts, is_part
from ncheck.facts.kernel_log import last_at
from ncheck.facts.storage_log import StorageLogFacts


@node_check("NC648", Severity.WARNING, StorageLogFacts, also=(DiskFacts,), hardware=True, next_step="ticket")
def disk_errors(node: NodeView) -> Iterator[Problem]:
    states = node.maybe(DiskFacts)
    lost = [name for name, state in states.states.items() if state in LOST] if isinstance(states, DiskFacts) else []
    for disk in node[StorageLogFacts].disks:
        times = "an error" if disk.lines == 1 else f"{disk.lines} errors"
        fix = f"sudo journalctl -k -b --no-pager | grep -w {quote(disk.of)}"
        message = f"the kernel reported {times} of {disk.of}{last_at(disk.last)}"
        follows = UNHEALTHY_DISK if any(is_part(disk.of, name) for name in lost) else ""
        yield Problem(message, fix, tuple({disk.first: "", disk.last: ""}), look=True, follows=follows)
