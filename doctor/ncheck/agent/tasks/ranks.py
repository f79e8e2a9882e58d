"""The rank processes of this node: started together, heard to their end, and none of them left.

Each tells lines of JSON by a pipe of its own (nccl_rank/__init__.py says which), and NCCL its log by its output. When
one has failed the others are told to end a moment later: what they say of it by then is heard, too.
"""

import json
import os
import select
import signal
import subprocess
import time

from ncheck.agent.commands import decoded
from ncheck.agent.tasks import segments

MOMENT = 1.0  # seconds in which the others may tell of a failure themselves
TO_ABORT = 4.0  # seconds that a rank that was told to end may take
_LONGEST = 65536  # bytes of a line that does not end
_ENDED_BY_US = 3  # the exit status of a rank that was told to end
_STRIDE = 0.2
_MOST_TOLD = 4096  # lines of its own that are kept of one rank: the library that it loads may write there, too
_TIMES = ("seconds", "fastest", "slowest")
_MOST = 2**64


class Rank:
    """One rank: its process, and all that it told."""

    def __init__(self, number, argv, environment, spec):
        self.number, self.said, self.step, self.failure = number, [], "start", None
        self.killed, self.told_to_end, self.status = False, False, None
        self.segments = {}  # {path: inode} of what it was seen to have in shared memory
        reading, writing = os.pipe()
        try:
            text = json.dumps(dict(spec, fd=writing))
            self.process = subprocess.Popen(
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

    def read(self, number, log):
        """Read what is there of one pipe. Return whether it goes on."""
        data = os.read(number, 65536)
        lines = (self.pipes[number] + data).split(b"\n")
        self.pipes[number] = lines.pop()[-_LONGEST:] if data else b""
        for line in lines:
            if number == self.own:
                self.heed(line)
            else:
                log.take(decoded(line))
        return bool(data)

    def heed(self, line):
        """Take one line of its own; what somebody else wrote there is passed over."""
        said = _own_line(line)
        if said is None or (len(self.said) >= _MOST_TOLD and said["is"] not in ("failure", "done")):
            return
        if said["is"] == "step":
            self.step = said["step"]
        elif said["is"] == "failure":
            self.failure = {name: said.get(name) for name in ("step", "words", "code", "late")}
            self.failure["rank"] = self.number
        elif said["is"] == "held":
            self.segments.update(said["segments"])
        self.said.append(dict(said, at=time.monotonic()))

    def told(self, what):
        return [line for line in self.said if line.get("is") == what]

    def ended(self):
        """Tell whether the process has ended; the first time, see why it failed where it did not say."""
        if self.status is None and self.process.poll() is not None:
            self.status = self.process.returncode
        return self.status is not None

    def look(self):
        """See what it has in shared memory, as long as its number is its own."""
        if not self.ended():
            self.segments.update(segments.seen(["/proc/{}".format(self.pid)])[0])

    def died(self):
        """Tell whether it ended without telling last what it had."""
        return self.process.returncode is None or self.process.returncode < 0

    def send(self, what):
        """Send its whole group a signal."""
        try:
            os.killpg(self.pid, what)
        except OSError:
            pass

    def explain(self, log):
        """Say why it failed where it could not say so itself. A rank that we told to end did not fail."""
        if self.failure or self.told("done") or (self.told_to_end and self.status == _ENDED_BY_US):
            return
        if self.killed or self.status is None:
            self.fail("its time was over in: " + self.step, None, late=True)
        elif self.status < 0:
            self.fail("it died of {} in: {}".format(_signal(-self.status), self.step), self.status)
        else:
            last = log.last[-1] if log.last else "no words"
            self.fail("it ended with exit status {} in: {}: {}".format(self.status, self.step, last), None)

    def fail(self, words, code, *, late=False):
        self.failure = {"step": self.step, "words": words, "rank": self.number, "code": code, "late": late}

    def close(self):
        """Let nothing of it remain."""
        self.look()
        self.send(signal.SIGKILL)
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            pass  # it sleeps in the kernel and has been told
        if self.pipes:
            os.close(self.own)
            self.process.stdout.close()
        self.pipes = {}


def follow(ranks, log, ends, reserve):
    """Hear all ranks to their end: by `ends`, the last `reserve` seconds being there to end what hangs."""
    course = _Course(ranks, log, ends, reserve)
    while course.goes_on():
        course.press(time.monotonic())
    for rank in ranks:
        rank.explain(log)
    for rank in ranks:
        if not rank.told("done") and not any(other.failure for other in ranks):
            rank.fail("its time was over in: " + rank.step, None, late=True)  # all that are left were told to end


class _Course:
    def __init__(self, ranks, log, ends, reserve):
        self.ranks, self.log = ranks, log
        self.steps = [(ends - reserve / 2, signal.SIGTERM), (ends - reserve / 6, signal.SIGKILL), (ends + MOMENT, None)]
        self.hurried = self.over = False
        self.poll, self.owners = select.poll(), {}
        for rank in ranks:
            for number in rank.pipes:
                self.owners[number] = rank
                self.poll.register(number, select.POLLIN)

    def goes_on(self):
        """Read what is there; tell whether there may be more."""
        ended = [rank.ended() for rank in self.ranks]  # asked before the pipes: then they hold all that was written
        ready = self.poll.poll(0 if all(ended) else _STRIDE * 1000)
        for number, _ in ready:
            if not self.owners[number].read(number, self.log):
                self.poll.unregister(number)
        if all(ended) and not self.over:  # who prints on, a child that left their group, is heard a moment longer
            self.over, self.steps = True, [(time.monotonic() + MOMENT, None)]
        return bool(self.steps) and (bool(ready) or not all(ended))

    def press(self, now):
        """End what is to end by now: all soon after the first has failed, and everything in time."""
        if not self.hurried and any(_failed(rank) for rank in self.ranks):
            self.hurried = True
            soon = [now + MOMENT, now + MOMENT + TO_ABORT, now + 2 * MOMENT + TO_ABORT]
            self.steps = [(min(at, when), what) for (at, what), when in zip(self.steps, soon)]  # noqa: B905  Python 3.6
        while self.steps and now >= self.steps[0][0]:
            _, what = self.steps.pop(0)
            _each(self.ranks, what)


def _own_line(line):
    """Return a line of the shapes that a rank tells; None for any other."""
    try:
        said = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not isinstance(said.get("is"), str):
        return None
    kind = said["is"]
    wanted = {"step": ("step",), "failure": ("step", "words"), "library": ("version", "path"), "note": ("words",)}
    texts = all(isinstance(said.get(name), str) for name in wanted.get(kind, ()))
    whole = {"row": _is_row, "held": _is_held}.get(kind)
    return said if texts and (whole is None or whole(said)) else None


def _is_row(said):
    numbers = [said.get(name) for name in _TIMES] + [said.get("size")]
    wrong = said.get("wrong")
    return (
        all(isinstance(one, (int, float)) and not isinstance(one, bool) and 0 <= one < _MOST for one in numbers)
        and isinstance(said.get("in_place"), bool)
        and (wrong is None or (isinstance(wrong, int) and not isinstance(wrong, bool) and 0 <= wrong < _MOST))
    )


def _is_held(said):
    held = said.get("segments")
    return isinstance(held, dict) and all(isinstance(inode, int) for inode in held.values())


def _failed(rank):
    return rank.failure or (rank.status is not None and not rank.told("done"))


def _each(ranks, what):
    for rank in ranks:
        if what is not None and not rank.ended():
            rank.look()
            rank.killed, rank.told_to_end = rank.killed or what == signal.SIGKILL, True
            rank.send(what)


def _signal(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal {}".format(number)


def first_cause(ranks):
    """Return the failure that explains the others: who failed by itself comes before who was left alone.

    A rank that died says nothing, and what the others say of it (an internal error, too) is no cause of theirs.
    """
    failures = [rank.failure for rank in ranks if rank.failure]
    return min(failures, key=_weight) if failures else None


def _weight(failure):
    remote = failure["code"] == 6  # ncclRemoteError: another one's failure
    died = failure["code"] is not None and failure["code"] < 0
    return bool(failure["late"]), remote, not died, failure["rank"]
