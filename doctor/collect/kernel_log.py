"""The kernel log since boot: journalctl -k, and dmesg where the journal shows nothing to this user.

An ordinary user's journal opens, holds no kernel message, and ends with exit status 0: that is not a clean log.
"""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.model.evidence import Command, Evidence, Status
from doctor.model.fact import Read, Unread
from doctor.model.facts import KernelLogFacts
from doctor.parse.kernel_messages import message_time, xid_events

JOURNAL = Command(("journalctl", "-k", "-b", "--no-pager", "-o", "short"), root=True)
DMESG = Command(("dmesg",), root=True)

_NAMES = {JOURNAL: "journalctl -k", DMESG: "dmesg"}


def kernel_log(evidence: Evidence) -> Read[KernelLogFacts]:
    """Read the first of the two that shows kernel messages."""
    for command, name in _NAMES.items():
        lines = _messages(evidence, command)
        xids = xid_events(lines)
        if lines and (xids or not evidence.reply(command).truncated):  # the end of a log is what matters most
            return KernelLogFacts(xids, name, message_time(lines[0]))
    return _unreadable(evidence)


def _messages(evidence: Evidence, command: Command) -> list[str]:
    """Return the kernel's lines; the journal's own remarks ("-- No entries --", "Hint: ...") are none."""
    reply = evidence.reply(command)
    if reply.status is not Status.OK or reply.exit_status not in (None, 0):
        return []
    lines = [line for line in reply.stdout.splitlines() if line.strip()]
    return [line for line in lines if not line.startswith(("-- ", "Hint:", "No journal files"))]


def _unreadable(evidence: Evidence) -> Unread:
    """Say why. A command that hung or was never answered is unknown; all else is what only root may read."""
    replies = {command: evidence.reply(command) for command in _NAMES}
    for command, reply in replies.items():
        why = trouble(command, reply)
        if isinstance(why, Unread) and reply.status in (Status.TIMEOUT, Status.UNANSWERED):
            return why
    said = [text for reply in replies.values() for text in (reply.stderr.strip(), reply.reason) if text]
    return Unread(
        "the kernel log shows nothing to this user" + (f": {said[-1].splitlines()[0]}" if said else ""),
        needs_root=True,
        fix="sudo journalctl -k -b --no-pager | grep NVRM",
    )


READERS = (Reader(KernelLogFacts, (JOURNAL, DMESG), kernel_log),)
