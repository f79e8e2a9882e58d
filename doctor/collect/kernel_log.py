"""The kernel log since boot: journalctl -k, and dmesg where the journal shows nothing to this user.

An ordinary user's journal opens, holds no kernel message, and ends with exit status 0: that is not a clean log.
"""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Command, Evidence, Status
from doctor.model.fact import Read, Unread
from doctor.model.facts import KernelLogFacts
from doctor.parse.kernel_messages import DRIVER, message_time, xid_events

# Of a long log the end is kept: what came last matters most.
JOURNAL = Command(("journalctl", "-k", "-b", "--no-pager", "-o", "short"), root=True, tail=True, holding=DRIVER)
DMESG = Command(("dmesg",), root=True, tail=True, holding=DRIVER)

_NO_MATTER_OF_ROOT = (Status.TIMEOUT, Status.UNANSWERED, Status.FAILED)
_NAMES = {JOURNAL: "journalctl -k", DMESG: "dmesg"}


def kernel_log(evidence: Evidence) -> Read[KernelLogFacts]:
    """Read the first of the two that shows kernel messages."""
    for command, name in _NAMES.items():
        lines = _messages(evidence, command)
        if oldest := next((time for line in lines if (time := message_time(line))), ""):
            return KernelLogFacts(xid_events(lines), name, oldest)
    return _unreadable(evidence)


def _messages(evidence: Evidence, command: Command) -> list[str]:
    """Return the kernel's lines, each of which bears a time; the journal's own remarks do not ("-- No entries --")."""
    reply = evidence.reply(command)
    if reply.status is not Status.OK or reply.exit_status != 0:
        return []
    return [line for line in reply.stdout.splitlines() if line.strip()]


def _unreadable(evidence: Evidence) -> Unread:
    """Say why. A command that hung, broke or was never answered is unknown; all else is what only root may read."""
    replies = {command: evidence.reply(command) for command in _NAMES}
    for command, reply in replies.items():
        why = trouble(command, reply)
        unfinished = reply.status is Status.OK and reply.exit_status is None
        if isinstance(why, Unread) and (reply.status in _NO_MATTER_OF_ROOT or unfinished):
            return why
    said = [text for reply in replies.values() for text in (reply.stderr.strip(), reply.reason) if text]
    return Unread(
        "the kernel log shows nothing to this user" + (f": {said[-1].splitlines()[0]}" if said else ""),
        needs_root=True,
        fix="sudo journalctl -k -b --no-pager | grep NVRM",
    )


READERS = (Reader(KernelLogFacts, (JOURNAL, DMESG), kernel_log),)
