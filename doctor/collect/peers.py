"""Node to node: what each node's own ssh said of the nodes that it tried."""

from __future__ import annotations

from doctor.collect.reader import Reader, trouble
from doctor.hostlist import is_name, is_v6, quoted
from doctor.model.evidence import Answer, Cause, Evidence, JsonValue, Status
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import PeerSsh, PeerSshFacts
from doctor.ssh_words import cause_of, telling_line

PEERS = Answer("ssh-peers")
_OURS = 255  # ssh's own exit status; any other is that of the remote shell


def peers(evidence: Evidence) -> Read[PeerSshFacts]:
    """Read each edge. A node that had to try none is absent here: no launch opens ssh from it."""
    reply = evidence.reply(PEERS)
    if reply.status is Status.MISSING:
        return Unread("no ssh program there to reach the other nodes with")
    if why := trouble(PEERS, reply):
        return why
    said = reply.value["peers"] if isinstance(reply.value, dict) else None
    if not isinstance(said, dict):
        raise TypeError("peers is no mapping")
    if not said:
        return Absent("no ssh to other nodes was tried from here")
    return PeerSshFacts(tuple(_edge(target, answer) for target, answer in said.items()))


def _edge(target: str, answer: JsonValue) -> PeerSsh:
    """Read one edge. Raises ValueError for a target that no listing can have: it comes to stand in a line to type."""
    if not (is_name(target) or is_v6(target)):
        raise ValueError(f"{quoted(target)} is no host")
    if not isinstance(answer, dict):
        raise TypeError("a peer's answer is no mapping")
    status, stderr = answer["exit_status"], str(answer["stderr"])
    if status == 0:
        return PeerSsh(target, None)
    if answer.get("cut_short"):
        return PeerSsh(target, Cause.DEADLINE, "there was no time left to try it")
    return PeerSsh(target, _cause(status, stderr), telling_line(stderr) or _silent(status, answer.get("seconds")))


def _cause(status: JsonValue, stderr: str) -> Cause:
    known = cause_of(stderr)
    if status is None:
        return known or Cause.STALLED
    return known or (Cause.CLOSED if status == _OURS else Cause.NO_SHELL)


def _silent(status: JsonValue, seconds: JsonValue) -> str:
    if status is None:
        return f"ssh did not end within {seconds:.0f} s" if isinstance(seconds, float) else "it was never tried"
    return f"ssh ended with exit status {status} and no words"


READERS = (Reader(PeerSshFacts, (PEERS,), peers),)
