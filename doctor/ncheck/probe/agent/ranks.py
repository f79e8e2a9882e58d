"""The rank processes of this node: started together, read until they end, and none of them left.

Each writes lines of JSON to a pipe of its own (nccl_rank/__init__.py describes them), and NCCL's log to its output.
After one has failed, the others are asked to end a moment later: what they report by then is used, too.
"""

import json
import os
import select
import signal
import subprocess
import time

from ncheck.agent.commands import decoded
from ncheck.probe.agent import segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

    from ncheck.agent.commands import Environment, Process
    from ncheck.probe.agent.nccl_log import Log

    Message = Dict[str, Any]
    Failure = Dict[str, Any]  # "step", "words", "rank", "code" and "late"

MOMENT = 1.0  # seconds in which the others may report a failure themselves
TO_ABORT = 4.0  # seconds for a rank that was asked to end
_LONGEST = 65536  # bytes of a line that does not end
_ENDED_BY_US = 3  # the exit status of a rank that was asked to end
_STRIDE, _SOON = 0.2, 0.01  # seconds between two looks; a process ends a moment after it has closed its pipes
_MOST_MESSAGES = 4096  # that are kept of one rank: the library that it loads may write to the pipe, too
_TIMES = ("seconds", "fastest", "slowest")
_MOST = 2**64


class Rank:
    """One rank: its process, and its messages."""

    def __init__(self, number: int, argv: "Sequence[str]", environment: "Environment", spec: "Dict[str, Any]") -> None:
        self.number, self.step = number, "start"
        self.messages: "List[Message]" = []
        self.failure: "Optional[Failure]" = None
        self.killed, self.asked_to_end = False, False
        self.status: "Optional[int]" = None
        self.segments: "Dict[str, int]" = {}  # {path: inode} of its shared memory, as far as it was seen
        reading, writing = os.pipe()
        try:
            text = json.dumps(dict(spec, fd=writing))
            self.process: "Process" = subprocess.Popen(  # type: ignore[assignment]
                argv, env=dict(environment, NCHECK_RANK=text), cwd="/", start_new_session=True, pass_fds=(writing,),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except (OSError, ValueError):
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self.pid = self.process.pid
        self.pipes = {reading: b"", self.process.stdout.fileno(): b""}
        self.own = reading

    def read(self, number: int, log: "Log") -> bool:
        """Read what one pipe has. Return whether more may come."""
        data = os.read(number, 65536)
        lines = (self.pipes[number] + data).split(b"\n")
        self.pipes[number] = lines.pop()[-_LONGEST:] if data else b""
        for line in lines:
            if number == self.own:
                self.take(line)
            else:
                log.take(decoded(line))
        return bool(data)

    def take(self, line: bytes) -> None:
        """Take one message; a line that is none, from a library, is ignored."""
        message = _message(line)
        if message is None or (len(self.messages) >= _MOST_MESSAGES and message["is"] not in ("failure", "done")):
            return
        if message["is"] == "step":
            self.step = message["step"]
        elif message["is"] == "failure":
            self.failure = {name: message.get(name) for name in ("step", "words", "code", "late")}
            self.failure["rank"] = self.number
        elif message["is"] == "held":
            self.segments.update(message["segments"])
        self.messages.append(dict(message, at=time.monotonic()))

    def messages_of(self, kind: str) -> "List[Message]":
        return [message for message in self.messages if message.get("is") == kind]

    def ended(self) -> bool:
        """Return whether the process has ended, and note its status."""
        if self.status is None and self.process.poll() is not None:
            self.status = self.process.returncode
        return self.status is not None

    def look(self) -> None:
        """Note its shared memory, as long as its process number is its own."""
        if not self.ended():
            self.segments.update(segments.seen([self.pid])[0])

    def died(self) -> bool:
        """Return whether it ended without a last message about its shared memory."""
        return self.process.returncode is None or self.process.returncode < 0

    def send(self, number: int) -> None:
        """Send its whole group a signal."""
        try:
            os.killpg(self.pid, number)
        except OSError:
            pass

    def explain(self, log: "Log") -> None:
        """Note why it failed if it sent no reason itself. A rank that was asked to end did not fail."""
        if self.failure or self.messages_of("done") or (self.asked_to_end and self.status == _ENDED_BY_US):
            return
        if self.killed or self.status is None:
            self.fail("its time was over in: " + self.step, None, late=True)
        elif self.status < 0:
            self.fail("it died of {} in: {}".format(_signal(-self.status), self.step), self.status)
        else:
            last = log.last[-1] if log.last else "no output"
            self.fail("it ended with exit status {} in: {}: {}".format(self.status, self.step, last), None)

    def fail(self, reason: str, code: "Optional[int]", *, late: bool = False) -> None:
        self.failure = {"step": self.step, "words": reason, "rank": self.number, "code": code, "late": late}

    def close(self) -> None:
        """End it and close its pipes."""
        self.look()
        self.send(signal.SIGKILL)
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            pass  # it sleeps in the kernel, and ends when it wakes
        if self.pipes:
            os.close(self.own)
            self.process.stdout.close()
        self.pipes = {}


def follow(ranks: "Sequence[Rank]", log: "Log", ends: float, reserve: float) -> None:
    """Read all ranks until they end: by `ends`, with the last `reserve` seconds to end ranks that hang."""
    course = _Course(ranks, log, ends, reserve)
    while course.goes_on():
        course.press(time.monotonic())
    for rank in ranks:
        rank.explain(log)
    for rank in ranks:
        if not rank.messages_of("done") and not any(other.failure for other in ranks):
            rank.fail("its time was over in: " + rank.step, None, late=True)  # all that are left were asked to end


class _Course:
    def __init__(self, ranks: "Sequence[Rank]", log: "Log", ends: float, reserve: float) -> None:
        self.ranks, self.log = ranks, log
        self.steps = [(ends - reserve / 2, signal.SIGTERM), (ends - reserve / 6, signal.SIGKILL), (ends + MOMENT, None)]
        self.hurried = self.over = False
        self.poll, self.owners = select.poll(), {}
        for rank in ranks:
            for number in rank.pipes:
                self.owners[number] = rank
                self.poll.register(number, select.POLLIN)

    def goes_on(self) -> bool:
        """Read what the pipes have; return whether there may be more."""
        ended = [rank.ended() for rank in self.ranks]  # before the pipes are read: then they have all that was written
        ready = self.poll.poll(0 if all(ended) else 1000 * (_STRIDE if self.owners else _SOON))
        for number, _ in ready:
            if not self.owners[number].read(number, self.log):
                self.poll.unregister(number)
                del self.owners[number]
        if all(ended) and not self.over:  # a child that left their group may print a moment longer
            self.over, self.steps = True, [(time.monotonic() + MOMENT, None)]
        return bool(self.steps) and (bool(ready) or not all(ended))

    def press(self, now: float) -> None:
        """End the ranks whose time has come: all soon after the first has failed, and all at the time limit."""
        if not self.hurried and any(_failed(rank) for rank in self.ranks):
            self.hurried = True
            soon = [now + MOMENT, now + MOMENT + TO_ABORT, now + 2 * MOMENT + TO_ABORT]
            self.steps = [(min(at, when), what) for (at, what), when in zip(self.steps, soon)]  # noqa: B905  Python 3.6
        while self.steps and now >= self.steps[0][0]:
            _, number = self.steps.pop(0)
            _signal_all(self.ranks, number)


def _message(line: bytes) -> "Optional[Message]":
    """Return a line in the form of a rank's messages; None for any other."""
    try:
        message = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("is"), str):
        return None
    kind = message["is"]
    wanted = {"step": ("step",), "failure": ("step", "words"), "library": ("version", "path"), "note": ("words",)}
    texts = all(isinstance(message.get(name), str) for name in wanted.get(kind, ()))
    is_valid = {"row": _is_row, "held": _is_held}.get(kind)
    return message if texts and (is_valid is None or is_valid(message)) else None


def _is_row(message: "Message") -> bool:
    numbers = [message.get(name) for name in _TIMES] + [message.get("size")]
    wrong = message.get("wrong")
    return (
        all(
            isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number < _MOST
            for number in numbers
        )
        and isinstance(message.get("in_place"), bool)
        and (wrong is None or (isinstance(wrong, int) and not isinstance(wrong, bool) and 0 <= wrong < _MOST))
    )


def _is_held(message: "Message") -> bool:
    segments_of_rank = message.get("segments")
    return isinstance(segments_of_rank, dict) and all(isinstance(inode, int) for inode in segments_of_rank.values())


def _failed(rank: "Rank") -> bool:
    return bool(rank.failure) or (rank.status is not None and not rank.messages_of("done"))


def _signal_all(ranks: "Iterable[Rank]", number: "Optional[int]") -> None:
    for rank in ranks:
        if number is not None and not rank.ended():
            rank.look()
            rank.killed, rank.asked_to_end = rank.killed or number == signal.SIGKILL, True
            rank.send(number)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal {}".format(number)


def first_cause(failures: "Iterable[Optional[Failure]]") -> "Optional[Failure]":
    """Return the failure that explains the others: one of its own comes before one that another rank caused.

    A rank that died sends no reason, and what the others report about it (also an internal error) is not their fault.
    """
    return min(filter(None, failures), key=_weight, default=None)


def _weight(failure: "Failure") -> "Tuple[bool, bool, bool, int]":
    remote = failure["code"] == 6  # ncclRemoteError: the failure of another rank
    died = failure["code"] is not None and failure["code"] < 0
    return bool(failure["late"]), remote, not died, failure["rank"]
