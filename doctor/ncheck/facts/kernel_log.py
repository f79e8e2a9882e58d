"""The kernel log: its lines about hardware, and what the facts that read it share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ncheck.expression import expression
from ncheck.facts.definition import sudo_refused, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence, Status
from ncheck.model.fact import Read, Unread
from ncheck.text import LONGEST_MESSAGE, printable


@dataclass(frozen=True)
class KernelLog:
    """The lines that were sent of a log. `source`: "journalctl -k" or "dmesg"; `oldest`: the time of the first line."""

    lines: tuple[str, ...]
    source: str
    oldest: str


@dataclass(frozen=True)
class Trouble:
    """What the log says of one thing, such as a disk or a server. `of`: its name; `lines`: how many; `first` and
    `last`: the first and the last of these lines.
    """

    of: str
    lines: int
    first: str
    last: str


# Nov 20 10:01:02 node07 kernel: Linux version 6.1.0
_SYSLOG_TIME = expression(r"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) ")

# [    0.000000] Linux version 6.1.0
_UPTIME = expression(r"^(\[ *\d+\.\d+\])")


def message_time(line: str) -> str:
    """Return the time at the start of a line as printed, or ""."""
    found = _SYSLOG_TIME.match(line) or _UPTIME.match(line)
    return found[1] if found else ""


def seconds_of(line: str) -> float | None:
    """Return the time at the start of a line in seconds, to be compared with others of the same log; None without one.

    The journal prints no year: a log that goes over New Year's Eve is out of order there.
    """
    time = message_time(line)
    if time.startswith("["):
        return float(time.strip("[] "))
    try:
        return datetime.strptime(f"2000 {time} +0000", "%Y %b %d %H:%M:%S %z").timestamp()
    except ValueError:
        return None


def last_at(line: str) -> str:
    """Return "; last at 09:12:44" for the end of a message, from the last line about something."""
    time = message_time(line)
    return f"; last at {time}" if time else ""


def troubles(lines: Mapping[str, list[str]]) -> tuple[Trouble, ...]:
    """Return what the lines say, which are there by the name of what they are about."""
    return tuple(
        Trouble(printable(of), len(own), *(printable(line.strip(), LONGEST_MESSAGE) for line in (own[0], own[-1])))
        for of, own in lines.items() if own
    )  # fmt: skip


# What messages of NVIDIA's drivers for GPUs and for NVSwitches hold: see facts/gpu_log.py.
OF_GPUS = ("NVRM", "SXid")

# What messages of disks and file systems hold: see facts/storage_log.py.
OF_STORAGE = (
    "I/O error", "medium error", "Remounting filesystem", "EXT4-fs error", "orruption", "has been shut down",
    "forced readonly", "BTRFS error", "QID", "controller is down", "Device not ready", "nfs: server", "was evicted by",
    "Removing after probe failure", "after reset failure", "frozen state error", "Disk failure on",
)  # fmt: skip

# What messages of hardware that fails hold, and few of those of corrected errors: see facts/hardware_log.py.
OF_HARDWARE = (
    ": Machine Check", "_STATUS[", " UE ", ", type: fatal", ", type: recoverable", "section_type: ", "section type: ",
    "Memory failure: ", "CMCI storm detected", "soft lockup", "hard LOCKUP", "detected stall", "expedited stalls",
    "health compromised", "Fatal error", "Health issue", "health recovery", "High temperature on", "(Fatal)",
    "timeout. Will cause",
)  # fmt: skip

HOLDING = "|".join((*OF_GPUS, *OF_STORAGE, *OF_HARDWARE))

# Of a long log only the end is kept: recent lines matter most.
JOURNAL = Command(("journalctl", "-k", "-b", "--no-pager", "-o", "short"), root=True, tail=True, holding=HOLDING)
DMESG = Command(("dmesg",), root=True, tail=True, holding=HOLDING)
_ROOT_DOES_NOT_HELP = (Status.TIMEOUT, Status.UNANSWERED, Status.FAILED)
_NAMES = {JOURNAL: "journalctl -k", DMESG: "dmesg"}


def kernel_log(evidence: Evidence) -> Read[KernelLog]:
    """Return the first log that can be read."""
    for command, source in _NAMES.items():
        lines = _messages(evidence, command)
        if oldest := next((time for line in lines if (time := message_time(line))), ""):
            return KernelLog(tuple(lines), source, oldest)
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
