"""This node's rank of a collective by torch.distributed over gloo, on CPUs, and the store where such ranks meet.

torch is imported once per node, in a child that keeps running (gloo_rank.py). If another rank has died, gloo waits
longer than its own time limit: a late rank is ended, with all that it started.
"""

import json
import os
import time
from collections import deque

from ncheck.agent.answers import MissingError
from ncheck.agent.commands import end_group
from ncheck.agent.long_lived_child import LongLivedChild, source_of
from ncheck.agent.traffic import READS as COUNTERS
from ncheck.agent.traffic import carried, counters
from ncheck.probe.agent.unanswered import unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence, Union

    from ncheck.agent.commands import Environment
    from ncheck.agent.sources import Arguments, Sources

_PROGRAM = "ncheck.probe.agent.gloo_rank"
_KEPT = "gloo"
_TO_END = 1.0  # seconds that a rank has less than this node: so it can report its time limit itself
_TO_REAP = 2.0  # seconds for the message that a rank has ended
_LAST = 20  # lines of a failure
_WIDEST = 400  # characters of a line
_MOST = 256  # rows, and notes
_SHOWN = 4  # addresses that a rank waits for

READS = ("torch.distributed with gloo, by the job's python3, run with -B -c (--probe gloo)", *COUNTERS)


def meeting(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Open a store at arguments["address"] for all later steps: {"address", "port", "version", "path"}; or
    {"importing": seconds}, where torch is still imported when the time is over.
    """
    began, child = time.monotonic(), _torch_child(sources, arguments["address"])
    reason = ""
    for message in child.messages(began + timeout):
        reason = message if isinstance(message, str) else message.get("failure", reason)
        if "port" in child.known:
            return dict(child.known, address=arguments["address"])
        if isinstance(message, dict) and "failure" in message:
            break
    if child.lives and "version" not in child.known:
        return {"importing": round(time.monotonic() - began, 1)}
    raise MissingError(reason[:_WIDEST] or "torch opened no store within the time limit")


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return the result of a step: see step.py."""
    began, before = time.monotonic(), counters()
    limit = min(arguments["timeout"], timeout)
    step = _Step(_torch_child(sources))
    step.run(_request(arguments, limit), began + limit)
    first = step.state.get("first")
    return {
        "rows": step.rows, "carried": carried(before, counters(), arguments["planned"]),
        "version": step.child.known.get("version", ""), "library": step.child.known.get("path", ""), "used": [],
        "log": step.notes + ([] if step.complete else list(step.lines)),
        "failure": None if step.complete else step.failure(arguments["first"], limit),
        "start": round(first - began, 4) if first else None, "left": [],
    }  # fmt: skip


def _request(arguments: "Arguments", limit: float) -> "Dict[str, Any]":
    seconds = max(0.5, limit - _TO_END)
    return {
        "step": "{} {}".format(arguments["round"], " ".join(arguments["group"])), "meeting": arguments["meeting"],
        "rank": arguments["first"], "world": sum(arguments["ranks"]), "op": arguments["op"],
        "sizes": arguments["sizes"], "repeats": arguments["repeats"],
        "seconds": min(arguments["seconds"], seconds), "timeout": seconds, "variables": arguments["variables"],
    }  # fmt: skip


class _Torch(LongLivedChild):
    """The child with torch: `known` are the "version", "path" and "port" of its messages."""

    def __init__(self, argv: "Sequence[str]", environment: "Environment") -> None:
        LongLivedChild.__init__(self, argv, environment)
        self.known: "Dict[str, Any]" = {}

    def started(self, pid: object) -> bool:
        """Return whether this is a process group that the child made: its message alone is no proof."""
        try:
            return isinstance(pid, int) and os.getsid(pid) == self.process.pid and os.getpgid(pid) == pid
        except (OSError, OverflowError):
            return False

    def messages(self, ends: float) -> "Iterator[Union[str, Dict[str, Any]]]":
        for message in LongLivedChild.messages(self, ends):
            if isinstance(message, dict):
                self.known.update((name, message[name]) for name in ("version", "path", "port") if name in message)
            yield message


def _torch_child(sources: "Sources", address: str = "") -> "_Torch":
    """Return the child with torch; a new one if there is none, or if it has ended."""
    child = sources.kept.get(_KEPT)
    if child is None or not child.lives:
        if not sources.job.path:
            raise MissingError("no python3 on the PATH")
        text = source_of(_PROGRAM)
        argv = [sources.job.path, "-B", "-c", text, json.dumps({"store": address})]
        child = sources.kept[_KEPT] = _Torch(argv, sources.job.environment)
    return child


class _Step:
    """The messages of the child and its rank in one step; `state` has the last value of each."""

    def __init__(self, child: "_Torch") -> None:
        self.child, self.late = child, False
        self.unanswered: "List[str]" = []
        self.state: "Dict[str, Any]" = {"step": "importing torch"}
        self.rows: "List[object]" = []
        self.notes: "List[str]" = []
        self.lines: "Deque[str]" = deque(maxlen=_LAST)

    @property
    def complete(self) -> bool:
        """Whether it measured all that time and memory allow."""
        return bool(self.rows) and "done" in self.state

    def run(self, request: object, ends: float) -> None:
        """Read the rank's messages until it ends, or end it at the time limit."""
        try:
            self.child.send(request)
        except OSError:
            pass  # it has ended: its last lines say why
        self.read(ends)
        self.late = self.child.lives and time.monotonic() >= ends - _TO_END  # the rank may have reported it, too
        if "ended" not in self.state and self.child.started(self.state.get("pid")):
            self.unanswered = unanswered(self.state["pid"])
            end_group(self.state["pid"])
            self.read(time.monotonic() + _TO_REAP)
        if "ended" not in self.state:
            self.child.end()

    def read(self, ends: float) -> None:
        for message in self.child.messages(ends):
            if isinstance(message, str):
                self.lines.append(message[:_WIDEST])
                continue
            self.rows += [message["row"]] if "row" in message and len(self.rows) < _MOST else []
            self.notes += [message["note"]] if isinstance(message.get("note"), str) and len(self.notes) < _MOST else []
            self.state.update({name: message[name] for name in message if _is_valid(name, message[name])})
            if "ended" in self.state:
                return

    def failure(self, rank: int, limit: float) -> "Dict[str, object]":
        """Return in which step the rank failed, and why."""
        code = None if self.late else _code(self.state.get("ended"))  # a rank that was ended here was not killed
        reason = self.state.get("failure")
        if self.late and self.unanswered:
            reason = "filtered: {}: no answer within {:.0f} s".format(", ".join(self.unanswered[:_SHOWN]), limit)
        elif self.late:
            reason = reason or "it did not end within {:.0f} s, and was ended".format(limit)
        elif not reason:
            reason = (self.notes + list(self.lines)[-1:] + ["it ended with status {}".format(code)])[0]
        return {"step": self.state["step"], "words": reason[:_WIDEST], "rank": rank, "code": code, "late": self.late}


def _is_valid(name: str, value: object) -> bool:
    """Return whether a value has the right type: torch, or what it loads, could print a line like a message."""
    return isinstance(value, {"step": str, "failure": str, "pid": int, "ended": int, "first": float}.get(name, object))


def _code(status: "Optional[int]") -> "Optional[int]":
    """Return the exit status of a wait status, or the negative number of the signal; None for None."""
    if status is None:
        return None
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
