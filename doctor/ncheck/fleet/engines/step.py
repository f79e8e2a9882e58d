"""One Slurm step under many streams: one srun process, one task per node, and who of them said what.

srun copies its standard input to every task. The first two pieces, the script and the agent, are sent once, as they
are; what follows is records with an address (agent/broadcast.py), and what was sent before is sent as its number, or as
the difference from it.
Standard output and error come back in lines, each with the number of its task (`--label`), so no node can speak in
another one's name. Lines without a number are srun's own words: which task is where (`--verbose`), and what failed.
"""

from __future__ import annotations

import base64
import binascii
import os
import select
import shlex
import threading
import time
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import TYPE_CHECKING

from ncheck.agent.broadcast import AGAIN, DELTA, HEADER, KEPT, LENGTH, NUMBER, OWN, Keeping
from ncheck.agent.frames import FrameError, inflated, length_of
from ncheck.expression import expression
from ncheck.fleet.bootstrap import parse_script
from ncheck.fleet.engine import REMOTE_COMMAND, EngineBrokeError, NodeFloodsError
from ncheck.fleet.engines.delta import delta
from ncheck.hostlist import unfold
from ncheck.lazy_dataclass import dataclass
from ncheck.ssh.child import CHUNK, STDERR_KEPT, start
from ncheck.text import printable
from ncheck.this_machine.process import end

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from subprocess import Popen

    from ncheck.model.evidence import Login

STARTED = b"ncheck-task"
# A task says that it started before it reads: until all have, Slurm may still end them all for one that did not.
TASK = shlex.split(REMOTE_COMMAND.removeprefix("exec ").replace("'IFS", f"'echo {STARTED.decode()};IFS", 1))
MOST_UNREAD = 16 * 2**20  # bytes of one node that nobody has read yet, or of its standard error
WORTH_KEEPING = 128  # bytes of a message that others may get, too
LATE = 1.0  # seconds that output may come after srun said that the task ended
LONGEST_LINE = 65536  # bytes; srun's are at most 1 KiB
ENDING = 2.0  # seconds for tasks to end at the end of their input, and once more at SIGTERM

# srun: launching StepId=2.0 on host node01, 1 tasks: 0
_LAUNCHING = expression(r"launching \S+ on host (\S+), \d+ tasks: (\d+)")
# srun: error: Task launch for StepId=3.0 failed on node node03: Communication connection failure
_NOT_LAUNCHED = expression(r"Task launch for \S+ failed on node (\S+): (.*)")
# srun: error: Node failure on node03
_NODE_FAILED = expression(r"(Node failure) on (\S+)")
# srun: error: node04: task 3: Exited with exit code 3
# srun: launch/slurm: _task_finish: node01: task 0: Completed
_ENDED = expression(r" \S+: tasks? ([\d,-]{1,65536}): (?:Exited with exit code (\d{1,3})|(.*))")
# srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
# slurmstepd-node01: error: *** STEP 4.0 ON node01 CANCELLED AT 2026-11-22T16:24:31 DUE TO TIME LIMIT ***
_ABORTED = expression(r"Job step aborted|Application launch failed|forcing job termination|Force Terminated|CANCELLED")
# srun: error: Unable to create step for job 4: Requested node configuration is not available
_COMPLAINT = expression(r"error:|CANCELLED|temporarily disabled|unrecognized option|invalid option")


@dataclass
class SrunTask:
    """One task: what it said that nobody has read yet, and how it ended. `reader` waits for `changed`."""

    node: str
    changed: threading.Condition = field(default_factory=threading.Condition)
    started: bool = False
    marker: str = ""
    address: bytes = b""
    unread: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    errors: int = 0  # bytes of standard error so far
    status: int | None = None
    ended_at: float | None = None  # by time.monotonic()
    flooded: bool = False
    closed: bool = False

    def take_line(self, line: bytes) -> None:
        """Keep a line of standard output: text at first, base64 once the agent has said its address."""
        with self.changed:
            if self.closed or self.flooded:
                return
            if not self.started and line == STARTED:
                self.started = True
            elif not self.address and (address := self._said_address(line)):
                self.address = address
            else:
                self.unread += _decoded(line) if self.address else line + b"\n"
            if len(self.unread) > MOST_UNREAD:
                self._flood()
            self.changed.notify_all()

    def take_error(self, line: bytes) -> None:
        """Keep the end of standard error; a node that does not stop is a flood there too."""
        with self.changed:
            if self.closed or self.flooded:
                return
            self.stderr += line
            self.errors += len(line)
            del self.stderr[:-STDERR_KEPT]
            if self.errors > MOST_UNREAD:
                self._flood()

    def _flood(self) -> None:
        self.flooded = True
        self.unread.clear()
        self.changed.notify_all()

    def _said_address(self, line: bytes) -> bytes:
        # ncheck-0f3a99bc12d4e5f6 shared 0123456789ABCDEF
        mark, _, address = line.partition(b" shared ")
        if not self.marker or mark != self.marker.encode() or len(address) != 16:  # noqa: PLR2004  8 bytes in hex
            return b""
        with suppress(binascii.Error):
            return base64.b16decode(address)
        return b""

    def end(self, status: int | None) -> None:
        with self.changed:
            if self.ended_at is None:
                self.status, self.ended_at = status, time.monotonic()
            self.changed.notify_all()


def _frames(data: bytes) -> list[bytes]:
    """Return the frames in what is sent together."""
    frames, at = [], 0
    while at < len(data):
        end = at + LENGTH + length_of(data[at : at + LENGTH])
        frames.append(data[at:end])
        at = end
    return frames


def _text_of(data: bytes) -> bytes:
    """Return the JSON of a single frame; b"" for anything else."""
    try:
        if length_of(data[:LENGTH]) == len(data) - LENGTH:
            text: bytes = inflated(data[LENGTH:])
            return text
    except FrameError:
        pass
    return b""


def _decoded(line: bytes) -> bytes:
    """Return what the agent said; the shell around --enter prints text after it."""
    try:
        return base64.b64decode(line, validate=True)
    except binascii.Error:
        return line + b"\n"


class SrunStep:
    """A running srun. Ended when its last stream is closed, or this object and its process end."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], nodes: Collection[str]) -> None:
        self.nodes = frozenset(nodes)
        self.tasks: dict[int, SrunTask] = {}
        self.by_node: dict[str, SrunTask] = {}
        self.lost: dict[str, str] = {}  # nodes that Slurm gave up, and why
        self.complaints: deque[str] = deque(maxlen=20)  # srun's own complaints
        self.aborted = self.over = False
        self.changed = threading.Condition()
        self.sending = threading.Lock()
        self.prologue = 0  # pieces of it that were sent
        self.kept = Keeping()
        self.numbers: dict[bytes, int] = {}
        self.base = (-1, b"")  # the last frame that was kept: its number and its text
        self.sent = 0  # bytes
        self.open = len(self.nodes)
        self.process = start([*argv, *TASK], environ, cwd="/")
        self._end = weakref.finalize(self, end, self.process, ENDING, ENDING)  # also when the interpreter ends
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None  # noqa: S101  all three were asked for
            os.set_blocking(pipe.fileno(), False)
        threading.Thread(target=_read, args=(weakref.ref(self), self.process), daemon=True).start()

    # While it starts

    def settled(self, timeout: float) -> bool:
        """Wait until each node's task has started or failed, or the step did; False where the time was over."""
        with self.changed:
            return self.changed.wait_for(self._settled, timeout)

    def _settled(self) -> bool:
        return self.over or self.aborted or all(self._known(node) for node in self.nodes)

    def _known(self, node: str) -> bool:
        task = self.by_node.get(node)
        return node in self.lost or (task is not None and (task.started or task.ended_at is not None))

    def not_started(self) -> dict[str, str]:
        """Return the nodes whose task did not start although others may have, each with the reason."""
        with self.changed:
            ended = {
                node: self._why_ended(task)
                for node, task in self.by_node.items()
                if not task.started and task.ended_at is not None and not (self.aborted or self.lost)
            }
            return {**ended, **self.lost}

    @property
    def doomed(self) -> bool:
        """Tell whether Slurm ends the step, or will: it does so when it could not start it on one of the nodes."""
        return self.over or self.aborted or bool(self.lost)

    @staticmethod
    def _why_ended(task: SrunTask) -> str:
        words = task.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        status = "" if task.status is None else f" with exit status {task.status}"
        return f"its task ended{status} before it began" + (f": {words[-1]}" if words else "")

    def complaint(self) -> str:
        """Return what srun said first of what is wrong: what follows from it comes later."""
        first = next(iter(self.complaints), "")
        return printable(first.removeprefix("srun: ").removeprefix("error: "), 500)

    # What comes

    def take(self, line: bytes, *, error: bool) -> None:
        """Take one line that srun printed."""
        label, _, rest = line.partition(b":")
        number = label.strip()
        if not number.isdigit():
            if error:
                self._srun_said(line.decode("utf-8", "backslashreplace"))
        elif task := self.tasks.get(int(number[:9])):
            if error:
                task.take_error(rest[1:] + b"\n")
                return
            before = task.started
            task.take_line(rest[1:])
            if task.started != before:
                self._notify()

    def _srun_said(self, line: str) -> None:
        if found := _LAUNCHING.search(line):
            self.tasks[int(found[2])] = self.by_node[found[1]] = SrunTask(found[1])
        elif found := _ENDED.search(line):
            for number in _numbers(found[1], len(self.tasks)):
                if task := self.tasks.get(number):
                    task.end(int(found[2]) if found[2] else 0 if found[3] == "Completed" else None)
        elif found := _NOT_LAUNCHED.search(line):
            self.lost[found[1]] = found[2]
        elif found := _NODE_FAILED.search(line):
            self.lost.update(dict.fromkeys(_names(found[2]) & self.nodes, found[1]))
        if not _ENDED.search(line) and _COMPLAINT.search(line):
            self.complaints.append(line.strip())
        self.aborted = self.aborted or bool(_ABORTED.search(line))
        self._notify()

    def _notify(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def end_of_output(self) -> None:
        """Let everybody who waits know that nothing will come any more."""
        self.over = True
        self._notify()
        for task in self.tasks.values():
            with task.changed:
                task.changed.notify_all()

    # What is sent

    def send_prologue(self, number: int, data: bytes, timeout: float) -> None:
        """Send a piece that all nodes get alike (0 the script, 1 the agent), unless another stream has sent it."""
        with _held(self.sending, timeout):
            if number == self.prologue:
                self.prologue += 1
                self._write(data, timeout)

    def send(self, address: bytes, data: bytes, timeout: float) -> None:
        """Send to one agent: whole, or the number of what all have kept."""
        with _held(self.sending, timeout):
            number = self.numbers.get(data, -1)
            if number in self.kept.items:
                record = HEADER.pack(address, AGAIN, number)
            elif len(data) >= WORTH_KEEPING:
                text = _text_of(data)
                parts = self._difference(text)
                if 0 < len(parts) < len(data) // 2:
                    record = HEADER.pack(address, DELTA, len(parts)) + parts
                else:
                    record = HEADER.pack(address, KEPT, len(data)) + data
                    self._keep(data, text)
            else:
                record = HEADER.pack(address, OWN, len(data)) + data
            self._write(record, timeout)

    def _difference(self, text: bytes) -> bytes:
        """Return a message as its difference from the last one that all have kept; b"" where there is none."""
        number, base = self.base
        parts = delta(text, base) if text and number in self.kept.items else b""
        return NUMBER.pack(number) + parts if parts else b""

    def _keep(self, data: bytes, text: bytes) -> None:
        self.numbers[data] = number = self.kept.keep(data)
        if text:
            self.base = number, text
        if len(self.numbers) > 2 * len(self.kept.items):
            self.numbers = {kept: held for kept, held in self.numbers.items() if held in self.kept.items}

    def _write(self, data: bytes, timeout: float) -> None:
        """Write all of it. After a part of it nobody could read on: then the step is given up."""
        pipe = self.process.stdin
        view, deadline = memoryview(data), time.monotonic() + timeout
        poll = select.poll()
        try:
            number = pipe.fileno() if pipe else -1
            poll.register(number, select.POLLOUT)
            while view:
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not poll.poll(remaining * 1000 + 1):
                    self.complaints.appendleft("srun takes no more input: one of the tasks does not read")
                    self.end_of_output()
                    raise TimeoutError("srun takes no more input")
                with suppress(BlockingIOError):
                    view = view[os.write(number, view[:CHUNK]) :]
        except (ValueError, BrokenPipeError):
            raise self.broke() from None
        self.sent += len(data)

    def broke(self) -> EngineBrokeError:
        return EngineBrokeError(f"the Slurm step ended: {self.complaint() or 'srun does not say why'}")

    # Its end

    def close_one(self) -> None:
        """Note that one of its streams was closed; the last one ends it."""
        with self.changed:
            self.open -= 1
            last = self.open == 0
        if last:
            self.close()

    def close(self, patience: float = ENDING) -> None:
        """End srun, and with it all tasks, which may take so many seconds to end by themselves."""
        if self._end.detach():
            end(self.process, patience, ENDING)


class StepStream:
    """The standard input and output of one task."""

    def __init__(self, step: SrunStep, task: SrunTask, login: Login) -> None:
        self.step, self.task, self.login = step, task, login
        self.agent: int | None = None  # bytes of the agent, which are sent after the script
        self.begun = self.complete = False

    def send(self, data: bytes, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        if not self.complete:
            self._send_prologue(data, timeout)
            return
        with self.task.changed:
            known = self.task.changed.wait_for(lambda: self.task.address or self._ended(), timeout)
            if self.task.closed or (known and not self.task.address):
                raise self._end_of_task()
        if not known:
            raise TimeoutError("the agent did not say its address")
        for frame in _frames(data):  # what all nodes are asked is the same, what each is asked beside it is not
            self.step.send(self.task.address, frame, deadline - time.monotonic())

    def _send_prologue(self, data: bytes, timeout: float) -> None:
        """Send the script and then the agent; what comes in place of the agent is for a shell that did not answer."""
        if not self.begun:
            self.begun = True
            marker, self.agent = parse_script(data.decode())
            if self.step.prologue == 0:  # all agents answer from now on, also those that nobody listens to yet
                for task in self.step.tasks.values():
                    task.marker = marker
            self.step.send_prologue(0, data, timeout)
        elif len(data) == self.agent:
            self.complete = True
            self.step.send_prologue(1, data, timeout)

    def receive(self, timeout: float) -> bytes:
        task, deadline = self.task, time.monotonic() + timeout
        with task.changed:
            while not (task.unread or self._ended()):
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError(f"nothing came for {timeout:.0f} s")
                task.changed.wait(remaining if task.ended_at is None else min(remaining, LATE))
            data = bytes(task.unread)
            task.unread.clear()
        if task.flooded:
            raise NodeFloodsError(f"over {MOST_UNREAD // 2**20} MiB of unexpected output came")
        if data:
            return data
        if isinstance(end := self._end_of_task(), EngineBrokeError) or task.closed:
            raise end
        return b""

    def _ended(self) -> bool:
        """Tell whether nothing more will come; what came just before may still be on its way."""
        task = self.task
        late = task.ended_at is not None and time.monotonic() >= task.ended_at + LATE
        return task.closed or task.flooded or self.step.over or late

    def _end_of_task(self) -> ConnectionError:
        """Return why it ended: closed here, the task itself, or the step with all its tasks."""
        if self.task.closed:
            return ConnectionError("the stream was closed")
        if self.task.node in self.step.lost:
            return ConnectionError(self.step.lost[self.task.node])
        if self.step.aborted or self.step.lost or self.task.ended_at is None:
            return self.step.broke()
        return ConnectionError("the task ended")

    def stderr(self) -> bytes:
        return bytes(self.task.stderr)

    def exit_status(self, timeout: float) -> int | None:
        with self.task.changed:
            self.task.changed.wait_for(lambda: self.task.ended_at is not None or self.step.over, timeout)
        return self.task.status

    def close(self) -> None:
        with self.task.changed:
            if self.task.closed:
                return
            self.task.closed = True
            self.task.unread.clear()
            self.task.changed.notify_all()
        if self.task.address and self.task.ended_at is None and not self.step.over:
            try:
                self.step.send(self.task.address, b"", 1.0)
            except OSError:
                self.step.end_of_output()  # srun reads no more: the others need not wait for that as well
        self.step.close_one()


@contextmanager
def _held(lock: threading.Lock, timeout: float) -> Iterator[None]:
    """Hold a lock that is waited for so long and no longer."""
    if not lock.acquire(timeout=max(0.0, timeout)):
        raise TimeoutError("srun takes no more input")
    try:
        yield
    finally:
        lock.release()


def _names(nodes: str) -> frozenset[str]:
    with suppress(ValueError):
        return frozenset(unfold(nodes))
    return frozenset()


def _numbers(text: str, most: int) -> list[int]:
    """Return the tasks of "0-2,5"."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and len(part) < 20:  # noqa: PLR2004  two numbers
            numbers += range(int(first), min(int(last) if last.isdigit() else int(first), most) + 1)
    return numbers[:most]


def _read(step_of: weakref.ref[SrunStep], process: Popen[bytes]) -> None:
    """Read what srun prints to the end, and hand on each line. Of what waits, standard error comes first: it says which
    task is where.
    """
    assert process.stdout  # noqa: S101  both were asked for
    assert process.stderr  # noqa: S101
    try:
        pipes = {process.stderr.fileno(): (bytearray(), True), process.stdout.fileno(): (bytearray(), False)}
        poll = select.poll()
        for number in pipes:
            poll.register(number, select.POLLIN)
        while pipes:
            ready = {number for number, _ in poll.poll()}
            for number, (buffer, error) in tuple(pipes.items()):
                if number in ready:
                    data = _some(number)
                    if data == b"":
                        poll.unregister(number)
                        del pipes[number]
                    step = step_of()
                    if step:
                        _lines(step, buffer, data or b"", error=error)
                    del step
    finally:
        process.stdout.close()
        process.stderr.close()
    if step := step_of():
        step.end_of_output()


def _some(number: int) -> bytes | None:
    try:
        return os.read(number, CHUNK)
    except BlockingIOError:
        return None


def _lines(step: SrunStep, buffer: bytearray, data: bytes, *, error: bool) -> None:
    buffer += data
    *lines, rest = bytes(buffer).split(b"\n")
    buffer[:] = rest if len(rest) < LONGEST_LINE else b""
    for line in lines:
        step.take(line, error=error)
