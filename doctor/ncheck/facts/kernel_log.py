"""GPU errors in the kernel log: Xid lines of the NVIDIA driver."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from shlex import quote

from ncheck.facts.definition import Fact, sudo_refused, trouble
from ncheck.model.check import Problem
from ncheck.model.evidence import Command, Evidence, Status
from ncheck.model.fact import Read, Unread


@dataclass(frozen=True)
class XidEvent:
    """One `NVRM: Xid` line: the GPU's PCI address, the number, the line itself."""

    pci: str
    xid: int
    line: str


@dataclass(frozen=True)
class KernelLogFacts:
    """The Xid lines since boot. `source` is "journalctl -k" or "dmesg"; `oldest` is the time of the first line read."""

    xids: tuple[XidEvent, ...]
    source: str
    oldest: str | Unread = ""


DRIVER = "NVRM"  # the prefix of the NVIDIA driver's messages


# [  913.2] NVRM: Xid (PCI:0000:91:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+)")


# Nov 20 10:01:02 node07 kernel: Linux version 6.1.0
_SYSLOG_TIME = re.compile(r"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) ")


# [    0.000000] Linux version 6.1.0
_UPTIME = re.compile(r"^(\[ *\d+\.\d+\])")


def xid_events(lines: Iterable[str]) -> tuple[XidEvent, ...]:
    """Return every Xid in the order of the log; the PCI address includes the function number, as in sysfs."""
    found = ((_XID.search(line), line) for line in lines if DRIVER in line)
    return tuple(XidEvent(_address(hit[1]), int(hit[2]), line.strip()) for hit, line in found if hit)


def message_time(line: str) -> str:
    """Return the time at the start of a line as printed, or ""."""
    found = _SYSLOG_TIME.match(line) or _UPTIME.match(line)
    return found[1] if found else ""


def _address(text: str) -> str:
    return (text if "." in text else text + ".0").lower()


# What messages of disks and file systems hold: see facts/storage_log.py.
OF_STORAGE = (
    "I/O error", "medium error", "Remounting filesystem", "EXT4-fs error", "orruption", "has been shut down",
    "forced readonly", "BTRFS error", "QID", "controller is down", "Device not ready", "nfs: server", "was evicted by",
)  # fmt: skip


HOLDING = "|".join((DRIVER, *OF_STORAGE))


# Of a long log only the end is kept: recent lines matter most.
JOURNAL = Command(("journalctl", "-k", "-b", "--no-pager", "-o", "short"), root=True, tail=True, holding=HOLDING)


DMESG = Command(("dmesg",), root=True, tail=True, holding=HOLDING)


_ROOT_DOES_NOT_HELP = (Status.TIMEOUT, Status.UNANSWERED, Status.FAILED)


_NAMES = {JOURNAL: "journalctl -k", DMESG: "dmesg"}


def kernel_log(evidence: Evidence) -> Read[KernelLogFacts]:
    """Read the first command that shows kernel messages."""
    for command, name in _NAMES.items():
        lines = _messages(evidence, command)
        if oldest := next((time for line in lines if (time := message_time(line))), ""):
            return KernelLogFacts(xid_events(lines), name, oldest)
    return _unreadable(evidence)


def kernel_lines(evidence: Evidence) -> Read[tuple[str, ...]]:
    """Return the lines that were sent of the first log that can be read."""
    for command in _NAMES:
        lines = _messages(evidence, command)
        if any(map(message_time, lines)):
            return tuple(lines)
    return _unreadable(evidence)


def _messages(evidence: Evidence, command: Command) -> list[str]:
    """Return the lines of the log; remarks of the journal, such as "-- No entries --", have no time."""
    reply = evidence.reply(command)
    if reply.status is not Status.OK or reply.exit_status != 0:
        return []
    return [line for line in reply.stdout.splitlines() if line.strip()]


def _unreadable(evidence: Evidence) -> Unread:
    """Return the reason. A command that hung, failed or got no answer is unknown; otherwise only root can read it."""
    replies = {command: evidence.reply(command) for command in _NAMES}
    for command, reply in replies.items():
        why = trouble(command, reply)
        unfinished = reply.status is Status.OK and reply.exit_status is None
        if isinstance(why, Unread) and (reply.status in _ROOT_DOES_NOT_HELP or unfinished or sudo_refused(reply)):
            return why
    errors = [text for reply in replies.values() for text in (reply.stderr.strip(), reply.reason) if text]
    return Unread(
        "this user cannot read the kernel log" + (f": {errors[-1].splitlines()[0]}" if errors else ""),
        needs_root=True,
        fix="sudo journalctl -k -b --no-pager | grep NVRM",
    )


FACTS = (Fact(KernelLogFacts, (JOURNAL, DMESG), kernel_log),)


# The GPU needs a reset, the machine a reboot, or a link or memory a check before a job can use it.
FATAL = frozenset(
    {46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, *range(143, 151), 155, 156, 158}
)  # fmt: skip


# NVIDIA's Xid catalogue says that no action is needed.
HARMLESS = frozenset({14, 37, 38, 43, 44, 63, 92, 93, 121, 137, 141, 152, 153})


OFF_THE_BUS = 79


def problems(log: KernelLogFacts, *, fatal: bool) -> Iterator[Problem]:
    """Yield one problem per GPU: its fatal events, or those that are neither fatal nor harmless."""
    events = [e for e in log.xids if e.xid not in HARMLESS and (e.xid in FATAL) == fatal]
    for pci in dict.fromkeys(event.pci for event in events):
        yield _problem(pci, [event for event in events if event.pci == pci], fatal=fatal)


def _problem(pci: str, events: list[XidEvent], *, fatal: bool) -> Problem:
    counts = Counter(event.xid for event in events)
    xids = ", ".join(_times(xid, count) for xid, count in sorted(counts.items()))
    last = {event.xid: event.line for event in events}
    message = f"the driver reported {xids} for the GPU at {pci}"
    fix = _fix(pci, counts, fatal=fatal)
    return Problem(message, fix, tuple(last.values()), look=not fatal, summary=f"{xids} of a GPU")


def _times(xid: int, count: int) -> str:
    return f"Xid {xid}" if count == 1 else f"Xid {xid} ({count} times)"


def _fix(pci: str, counts: Counter[int], *, fatal: bool) -> str:
    if not fatal:
        return "sudo journalctl -k -g NVRM"
    return "sudo systemctl reboot" if OFF_THE_BUS in counts else f"sudo nvidia-smi --gpu-reset -i {quote(pci)}"
