"""This node's rank of an all-reduce by torch.distributed over gloo, on CPUs, and the store where such ranks meet.

torch is imported once a node, in a child that is kept (gloo_rank.py). gloo waits beyond its own time-out where another
rank has died: a rank that is late is ended, with all that it started.
"""

import json
import os
import time
from collections import deque
from importlib.util import find_spec

from ncheck.agent.answers import MissingError
from ncheck.agent.commands import end_group
from ncheck.agent.keeping import KeptChild
from ncheck.agent.tasks.counters import READS as COUNTERS
from ncheck.agent.tasks.counters import carried, counters
from ncheck.agent.tasks.unanswered import unanswered

_PROGRAM = "ncheck.agent.tasks.gloo_rank"
_KEPT = "gloo"
_TO_END = 1.0  # seconds that a rank has less than this node: it should say itself that its time is over
_TO_REAP = 2.0  # seconds for the end of a rank that was ended to be told
_LAST = 20  # lines of a failure
_WIDEST = 400  # characters of one
_MOST = 256  # rows, and notes
_SHOWN = 4  # of those that a rank waits for

READS = ("torch.distributed with gloo, by the job's python3, run with -B -c (--probe gloo)", *COUNTERS)


def meeting(sources, arguments, timeout):
    """Open a store at arguments["address"] for all turns to come: {"address", "port", "version", "path"}."""
    child = _begun(sources, arguments, arguments["address"])
    words = "torch was not imported in its time"
    for one in child.told(time.monotonic() + timeout):
        words = one if isinstance(one, str) else one.get("failure", words)
        if "port" in child.known:
            return dict(child.known, address=arguments["address"])
    raise MissingError(words[:_WIDEST])


def answer(sources, arguments, timeout):
    """Return the turn: see answers/__init__.py."""
    began, before = time.monotonic(), counters()
    limit = min(arguments["timeout"], timeout)
    turn = _Turn(_begun(sources, arguments))
    turn.run(_asked(arguments, limit), began + limit)
    first = turn.said.get("first")
    return {
        "rows": turn.rows, "carried": carried(before, counters(), arguments["planned"]),
        "version": turn.child.known.get("version", ""), "library": turn.child.known.get("path", ""), "used": [],
        "log": turn.notes + ([] if turn.whole else list(turn.words)),
        "failure": None if turn.whole else turn.failure(arguments["first"], limit),
        "start": round(first - began, 4) if first else None, "left": [],
    }  # fmt: skip


def _asked(arguments, limit):
    seconds = max(0.5, limit - _TO_END)
    return {
        "turn": "{} {}".format(arguments["round"], " ".join(arguments["group"])), "meeting": arguments["meeting"],
        "rank": arguments["first"], "world": sum(arguments["ranks"]), "sizes": arguments["sizes"],
        "seconds": min(arguments["seconds"], seconds), "timeout": seconds, "variables": arguments["variables"],
    }  # fmt: skip


class _Torch(KeptChild):
    """The child that has torch: `known` are its "version", "path" and "port" once it told them."""

    def __init__(self, argv, environment):
        KeptChild.__init__(self, argv, environment)
        self.known = {}

    def started(self, pid):
        """Tell whether this is a process group of its own making: it is the child's word that it is."""
        try:
            return isinstance(pid, int) and os.getsid(pid) == self.process.pid and os.getpgid(pid) == pid
        except (OSError, OverflowError):
            return False

    def told(self, ends):
        for one in KeptChild.told(self, ends):
            if isinstance(one, dict):
                self.known.update((name, one[name]) for name in ("version", "path", "port") if name in one)
            yield one


def _begun(sources, arguments, address=""):
    """Return the child that has torch; where there is none, or where it has ended, a new one."""
    child = sources.kept.get(_KEPT)
    if child is None or not child.lives:
        if not sources.job.path:
            raise MissingError("no python3 on the PATH")
        text = find_spec(_PROGRAM).loader.get_source(_PROGRAM)
        argv = [sources.job.path, "-B", "-c", text, json.dumps({"store": address})]
        child = sources.kept[_KEPT] = _Torch(argv, sources.job.environment)
    return child


class _Turn:
    """What the child and its rank told of one turn."""

    def __init__(self, child):
        self.child, self.late, self.waits = child, False, []
        self.said, self.rows, self.notes = {"step": "importing torch"}, [], []
        self.words = deque(maxlen=_LAST)

    @property
    def whole(self):
        """Tell whether it measured what there was time and memory for."""
        return bool(self.rows) and "done" in self.said

    def run(self, asked, ends):
        """Hear the rank to its end, or end it when its time is over."""
        try:
            self.child.say(asked)
        except OSError:
            pass  # it has ended: why is in what it said last
        self.hear(ends)
        self.late = self.child.lives and time.monotonic() >= ends - _TO_END  # the rank may have said so, too
        if "ended" not in self.said and self.child.started(self.said.get("pid")):
            self.waits = unanswered(self.said["pid"])
            end_group(self.said["pid"])
            self.hear(time.monotonic() + _TO_REAP)
        if "ended" not in self.said:
            self.child.end()

    def hear(self, ends):
        for one in self.child.told(ends):
            if isinstance(one, str):
                self.words.append(one[:_WIDEST])
                continue
            self.rows += [one["row"]] if "row" in one and len(self.rows) < _MOST else []
            self.notes += [one["note"]] if isinstance(one.get("note"), str) and len(self.notes) < _MOST else []
            self.said.update({name: one[name] for name in one if _can_be(name, one[name])})
            if "ended" in self.said:
                return

    def failure(self, rank, limit):
        """Return where the rank stood, and in whose words it failed."""
        code = None if self.late else _code(self.said.get("ended"))  # a rank that was ended here was not killed
        told = self.said.get("failure")
        if self.late and self.waits:
            told = "filtered: {}: no answer within {:.0f} s".format(", ".join(self.waits[:_SHOWN]), limit)
        elif self.late:
            told = told or "it did not end within {:.0f} s, and was ended".format(limit)
        elif not told:
            told = (self.notes + list(self.words)[-1:] + ["it ended with status {}".format(code)])[0]
        return {"step": self.said["step"], "words": told[:_WIDEST], "rank": rank, "code": code, "late": self.late}


def _can_be(name, value):
    """Tell whether a value may be kept: torch, or what it loads, could print a line that looks like the rank's."""
    return isinstance(value, {"step": str, "failure": str, "pid": int, "ended": int, "first": float}.get(name, object))


def _code(status):
    """Return the exit status that a wait status means, the negative signal of what one ended; None where none came."""
    if status is None:
        return None
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
