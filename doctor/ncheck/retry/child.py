"""The job as a child: its output passes through and is kept, and signals, stops and its end are those of the job.

ncheck and the job are one process group. What the terminal sends, such as ^C, the job gets by itself; what is sent to
ncheck alone is passed on.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import termios
import threading
import tty
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import BinaryIO

from ncheck.lazy_dataclass import dataclass

_CHUNK = 65536
_HEAD, _TAIL = 64 * 2**20, 4 * 2**20  # bytes of a log that are kept: the beginning, and the end
_LONGEST_LINE = 2**20  # bytes that wait for the end of their line
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and the program would inherit that
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # who sends one wants no second try
_PASSED_ON = (*_ENDING, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGTSTP)
_HEEDED = (*_PASSED_ON, signal.SIGCHLD, signal.SIGWINCH)
_LOOK = 0.5  # seconds between looks at the job: a thread that the checks left may take its SIGCHLD, and nobody hears it


@dataclass(frozen=True)
class JobEnd:
    """How the job ended. `code`: its exit code, negative for the signal that ended it.

    `signalled`: the signal that somebody sent while it ran, "" for none. `unread`: nobody read its output any more.
    """

    code: int
    signalled: str = ""
    unread: bool = False

    @property
    def exit_code(self) -> int:
        """The exit code as a shell has it: 128 and the number of the signal."""
        return self.code if self.code >= 0 else 128 - self.code

    @property
    def shown(self) -> str:
        """The end in words."""
        if self.code >= 0:
            return f"exit code {self.code}"
        return f"ended by {next((one.name for one in signal.Signals if one == -self.code), f'signal {-self.code}')}"


class Log:
    """The output of one try in a file: standard output and error, line by line, in the order of their arrival.

    Of a long one the beginning and the end are kept. A full disk ends the log, and not the job: `lost` says why.
    """

    def __init__(self, file: BinaryIO, head: int = _HEAD, tail: int = _TAIL) -> None:
        self._file, self._left, self._most = file, head, tail
        self._tail: deque[bytes] = deque()
        self._waiting: dict[int, bytes] = {}
        self._size = self._dropped = 0
        self._lock = threading.Lock()
        self.lost = ""

    def add(self, stream: int, data: bytes) -> None:
        """Take what a stream printed; the end without a line end waits for the rest of its line."""
        with self._lock:
            data = self._waiting.pop(stream, b"") + data
            whole, _, rest = data.rpartition(b"\n")
            if len(rest) > _LONGEST_LINE:
                whole, rest = data, b""
            elif whole or len(rest) < len(data):
                whole += b"\n"
            if rest:
                self._waiting[stream] = rest
            self._keep(whole)

    def close(self) -> None:
        """Write what waits, and the end."""
        with self._lock:
            for rest in self._waiting.values():
                self._keep(rest + b"\n")
            if self._dropped:
                self._write(b"[ncheck: %d bytes are left out here]\n" % self._dropped)
            for part in self._tail:
                self._write(part)
            with suppress(OSError):
                self._file.close()

    def _keep(self, data: bytes) -> None:
        if len(data) <= self._left:
            self._left -= len(data)
            self._write(data)
            return
        self._left = 0
        self._tail.append(data)
        self._size += len(data)
        while self._size > self._most and len(self._tail) > 1:
            self._size -= len(gone := self._tail.popleft())
            self._dropped += len(gone)

    def _write(self, data: bytes) -> None:
        if self.lost:
            return
        try:
            self._file.write(data)
        except OSError as error:
            self.lost = error.strerror or str(error)


def run_job(argv: Sequence[str], log: Log | None, environ: Mapping[str, str] = os.environ) -> JobEnd:
    """Run the job to its end; without a log its output is that of this process. Raises OSError if it cannot start."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)
    try:
        with ExitStack() as after:
            channels = _channels(after, log) if log else ()
            actions = [(os.POSIX_SPAWN_DUP2, one.inner, number) for one in channels for number in one.numbers]
            child = os.posix_spawnp(
                argv[0], list(argv), dict(environ), file_actions=actions, setsigmask=before, setsigdef=RESTORED
            )
            for one in channels:
                one.start()
            code, signalled = _to_its_end(child, channels)
            for one in channels:
                one.finish()
        return JobEnd(code, signalled, any(one.unread for one in channels))
    finally:
        if log:
            log.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _to_its_end(child: int, channels: Sequence[_Channel]) -> tuple[int, str]:
    """Wait for the job and pass signals on. Return its code, and the signal that somebody sent before its end."""
    code, signalled = None, ""
    while True:
        info = signal.sigtimedwait(_HEEDED, _LOOK if code is None else 0)
        if info is None and code is not None:
            return code, signalled
        if info is None or info.si_signo == signal.SIGCHLD:
            code = _code_of(child) if code is None else code
            continue
        number = signal.Signals(info.si_signo)
        if number == signal.SIGWINCH:
            for one in channels:
                one.resize()
        elif info.si_pid != child:  # a shell that ends its own group ends the job, and no user does
            if number in _ENDING and signal.getsignal(number) is not signal.SIG_IGN:
                signalled = signalled or number.name
            if info.si_code <= 0 and code is None:  # sent by a process: the terminal's own go to the job, too
                with suppress(ProcessLookupError):
                    os.kill(child, number)


def _code_of(child: int) -> int | None:
    """Return the code of the job that has ended, None if it runs. Stop with it first, where it is stopped."""
    while (found := os.waitpid(child, os.WNOHANG | os.WUNTRACED))[0]:
        if not os.WIFSTOPPED(found[1]):
            return os.waitstatus_to_exitcode(found[1])
        _stop_with(child)
    return None


def _stop_with(child: int) -> None:
    """Stop like the job, so that the shell sees it, and go on with it."""
    os.kill(os.getpid(), signal.SIGSTOP)
    if not os.waitid(os.P_PID, child, os.WCONTINUED | os.WNOHANG):  # fg continues both, kill -CONT only ncheck
        os.kill(child, signal.SIGCONT)


class _Channel:
    """One output of the job: what it writes to `inner` goes to `target` unchanged, and to the log.

    A terminal has a terminal in its place, so that programs print line by line as they would.
    """

    def __init__(self, numbers: tuple[int, ...], log: Log) -> None:
        self.numbers, self.target, self.unread = numbers, numbers[0], False
        self._log, self._is_terminal = log, os.isatty(numbers[0])
        if self._is_terminal:
            self._outer, self.inner = os.openpty()
            tty.setraw(self.inner)  # the real terminal translates
            self.resize()
        else:
            self._outer, self.inner = os.pipe()
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def resize(self) -> None:
        """Give the job's terminal the size of the real one."""
        if self._is_terminal:
            with suppress(OSError):
                size = fcntl.ioctl(self.target, termios.TIOCGWINSZ, bytes(8))
                fcntl.ioctl(self.inner if self.inner >= 0 else self._outer, termios.TIOCSWINSZ, size)

    def start(self) -> None:
        """Begin to copy; the job alone has the inner end now."""
        os.close(self.inner)
        self.inner = -1
        self._thread.start()

    def finish(self) -> None:
        """Copy what is there, and wait for no process that the job left behind with its output open."""
        os.write(self._end, b".")
        self._thread.join()

    def close(self) -> None:
        """Close what is open."""
        for number in (self.inner, self._outer, self._ended, self._end):
            if number >= 0:
                os.close(number)

    def _copy(self) -> None:
        os.set_blocking(self._outer, False)
        while data := self._read():
            self._log.add(self.target, data)
            if not self._written(data):
                self.unread = True
                os.close(self._outer)  # the job's next output fails, as it would without ncheck
                self._outer = -1
                return

    def _read(self) -> bytes:
        """Return what the job printed next; nothing at the end."""
        while True:
            ready, _, _ = select.select([self._outer, self._ended], [], [])
            try:
                return os.read(self._outer, _CHUNK)
            except BlockingIOError:
                if self._ended in ready:
                    return b""
            except OSError:  # a terminal that nobody has open any more
                return b""

    def _written(self, data: bytes) -> bool:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self.target, rest) :]
            except BlockingIOError:  # noqa: PERF203  a terminal that another program made so
                select.select([], [self.target], [])
            except OSError:
                return False
        return True


def _channels(after: ExitStack, log: Log) -> tuple[_Channel, ...]:
    """Return a channel for standard output and error, one for both where they are the same; none for a closed one."""
    open_ = [number for number in (1, 2) if _is_open(number)]
    same = len(open_) > 1 and os.path.sameopenfile(1, 2)
    channels = []
    for numbers in [(1, 2)] if same else [(number,) for number in open_]:
        channels.append(channel := _Channel(numbers, log))
        after.callback(channel.close)
    return tuple(channels)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
