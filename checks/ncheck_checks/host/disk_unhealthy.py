"""A disk is dead, or a RAID array lacks a disk

## What it finds
NVMe drives that the driver has given up ("dead") and disks that the kernel took offline: errors. As warnings: NVMe
drives in another state than "live", a path to a disk that was lost while another still leads there (multipath), drives
that say that they are too hot, and arrays of Linux's own RAID that lack a disk or are broken. Every user can read these
states. Removable disks, and the drives' own reports (SMART), which only root can read, are left out.

## Why it matters
What is on a dead disk is gone: a scratch folder, a cache, a checkpoint. An array without its spare disk loses its data
with the next one, and is slow while it is filled. A drive that is too hot slows down, and the ranks that read from it
with it.

## What to type
`cat /sys/class/nvme/nvme*/state /proc/mdstat` on the named node, then `sudo nvme smart-log /dev/NAME` or
`sudo mdadm --detail /dev/NAME`. Exchange the disk; if many drives are hot, look at the fans.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.disks import LOST, UNHEALTHY_DISK, DiskFacts, Heat, RaidArray

_HEALTHY = ("live", "running", "created", "new")


@node_check("NC658", Severity.ERROR, DiskFacts, explains=UNHEALTHY_DISK, hardware=True, next_step="ticket")
def disk_unhealthy(node: NodeView) -> Iterator[Problem | NotApplicable]:
    disks = node[DiskFacts]
    if not disks.states and not disks.arrays:
        yield NotApplicable("no disk shows its state")
    for name, state in disks.states.items():
        if name in disks.paths:
            message = f'{name}, one of several paths to a disk, is in the state "{state}"'
            yield _problem(message, "sudo multipath -ll", summary="a path to a disk is lost")
        elif state not in _HEALTHY:
            yield _problem(
                f'the disk {name} is in the state "{state}"',
                f"sudo smartctl -a {quote('/dev/' + name)}",
                None if state in LOST else Severity.WARNING,
                "a disk is dead" if state in LOST else "a disk is not ready",
            )
    for name, heat in disks.hot.items():
        line = f"sudo nvme smart-log {quote('/dev/' + name)}"
        yield _problem(f"the drive {name} says that it is too hot{_degrees(heat)}", line, summary="a drive is hot")
    for name, array in disks.arrays.items():
        if words := _wrong(array):
            line = f"sudo mdadm --detail {quote('/dev/' + name)}"
            yield _problem(f"the RAID array {name} ({array.level}) {words}", line, summary="a RAID array lacks a disk")


def _problem(message: str, line: str, severity: Severity | None = Severity.WARNING, summary: str = "") -> Problem:
    return Problem(message, line, look=True, summary=summary, severity=severity)


def _degrees(heat: Heat) -> str:
    if heat.now is None:
        return ""
    return f": {heat.now} °C" + (f", critical from {heat.critical} °C" if heat.critical is not None else "")


def _wrong(array: RaidArray) -> str:
    """Return what is wrong; "inactive" is how an array of which the firmware knows shows itself, and is not."""
    if array.degraded:
        missing = "a disk" if array.degraded == 1 else f"{array.degraded} disks"
        return f"lacks {missing}" + (", and is being filled" if array.action in ("recover", "resync") else "")
    return "is broken: a disk of it is gone" if array.state == "broken" else ""
