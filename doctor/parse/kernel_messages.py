"""What the kernel says of GPUs: `NVRM: Xid` lines, as journalctl -k and dmesg print them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from doctor.model.facts import XidEvent

DRIVER = "NVRM"  # what NVIDIA's driver begins its messages with

# [  913.2] NVRM: Xid (PCI:0000:91:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+)")
# Nov 20 10:01:02 node07 kernel: Linux version 6.1.0
_SYSLOG_TIME = re.compile(r"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) ")
# [    0.000000] Linux version 6.1.0
_UPTIME = re.compile(r"^(\[ *\d+\.\d+\])")


def xid_events(lines: Iterable[str]) -> tuple[XidEvent, ...]:
    """Return every Xid in the order of the log; the PCI address with its function number, as sysfs has it."""
    found = ((_XID.search(line), line) for line in lines if DRIVER in line)
    return tuple(XidEvent(_address(hit[1]), int(hit[2]), line.strip()) for hit, line in found if hit)


def message_time(line: str) -> str:
    """Return a line's own time, as it was printed, or ""."""
    found = _SYSLOG_TIME.match(line) or _UPTIME.match(line)
    return found[1] if found else ""


def _address(text: str) -> str:
    return (text if "." in text else text + ".0").lower()
