"""Running a program on the node: bounded in time and output, in a session of its own, nothing on its input."""

import os
import select
import shutil
import signal
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # novm
    from typing import IO, Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypedDict

    Environment = Mapping[str, str]

    class Process(subprocess.Popen[bytes]):
        """As `start` makes it: all its streams are pipes that are asked for."""

        stdin: IO[bytes]
        stdout: IO[bytes]
        stderr: IO[bytes]

    class Reply(TypedDict, total=False):
        """The fields of the head's record of that name; which of them are there depends on what was asked."""

        status: str
        seconds: float
        reason: str
        exit_status: Optional[int]
        stdout: str
        stderr: str
        truncated: bool
        value: Any


LARGEST_OUTPUT = 1024 * 1024  # bytes of stdout and of stderr each
SYSTEM_FOLDERS = (
    "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"  # ibstat is in sbin, which many PATHs lack
)
ENVIRONMENT = {"LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1", "GIT_OPTIONAL_LOCKS": "0"}
_FIRST = 10  # first lines of a log: they show when it begins
_STRIDE = 0.2  # seconds between two looks at a program that ended while a child of its own keeps the pipes open


def run(  # noqa: PLR0913
    argv: "Sequence[str]",
    timeout: float,
    environment: "Optional[Environment]" = None,
    pass_fds: "Sequence[int]" = (),
    *,
    cwd: str = "/",
    tail: bool = False,
    begun: "Optional[Callable[[Process], object]]" = None,
) -> "Reply":
    """Run a program to its end or for `timeout` seconds; return the fields of a Reply.

    A program that prints too much is ended; with `tail` it goes on, and the last of its output is kept. `begun` is
    called with the process, for those who may want to end it.
    """
    environment = completed(os.environ if environment is None else environment)
    started = time.monotonic()
    try:
        process = start(argv, environment, pass_fds=pass_fds, cwd=cwd)
    except (OSError, ValueError) as error:
        return not_started(argv, environment, error)
    if begun:
        begun(process)
    try:
        streams, ended, truncated = _gathered(process, started + timeout, tail=tail)
    finally:
        _end(process)
    status = "ok" if ended or (truncated and not tail) else "timeout"
    reply: "Reply" = {"status": status, "seconds": round(time.monotonic() - started, 4)}
    reply["exit_status"] = process.returncode if ended else None
    reply["stdout"], reply["stderr"] = (decoded(b"".join(stream)) for stream in streams)
    reply["truncated"] = truncated
    if not ended:
        reply["reason"] = "ended because of " + ("too much output" if status == "ok" else "its time limit")
    return reply


def completed(environment: "Environment") -> "Dict[str, str]":
    """Return the environment in which a program runs: it speaks English, and the system's folders are on its PATH."""
    whole = dict(environment, **ENVIRONMENT)
    whole["PATH"] = ":".join(part for part in (environment.get("PATH", ""), SYSTEM_FOLDERS) if part)
    return whole


def decoded(data: bytes) -> str:
    """Return bytes as text that can be read: what is not UTF-8 as hexadecimal numbers."""
    return data.decode("utf-8", "backslashreplace")


def thinned(log: str, words: str) -> str:
    """Return a log's first lines, and of the rest those that hold one of the words: a log has a hundred kilobytes.

    Words are parted by "|".
    """
    lines, parted = log.splitlines(keepends=True), [word for word in words.split("|") if word in log]
    if not parted:
        return "".join(lines[:_FIRST])
    return "".join(lines[:_FIRST] + [line for line in lines[_FIRST:] if any(word in line for word in parted)])


def not_started(argv: "Sequence[str]", environment: "Environment", error: Exception) -> "Reply":
    """Return the reply for a program that could not be started."""
    there = argv and shutil.which(argv[0], path=environment["PATH"])
    if isinstance(error, FileNotFoundError) and not there:
        return {"status": "missing", "reason": "no {} on PATH".format(argv[0])}
    if isinstance(error, PermissionError):
        return {"status": "denied", "reason": str(error)}
    return {"status": "failed", "reason": "cannot be started: {}".format(error)}


def start(  # noqa: PLR0913
    argv: "Sequence[str]",
    environment: "Environment",
    *,
    cwd: str = "/",
    pass_fds: "Sequence[int]" = (),
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.PIPE,
) -> "Process":
    """Start a program in a session of its own, found on the PATH of its own environment. Raises OSError."""
    program = shutil.which(argv[0], path=environment.get("PATH"))  # Popen would use the PATH of this process
    if program is None:
        raise FileNotFoundError(argv[0])
    process: "Process" = subprocess.Popen(  # type: ignore[assignment]
        argv, executable=program, env=environment, cwd=cwd, start_new_session=True, pass_fds=pass_fds,
        stdin=stdin, stdout=subprocess.PIPE, stderr=stderr,
    )  # fmt: skip
    return process


def _gathered(process: "Process", deadline: float, *, tail: bool) -> "Tuple[Iterable[List[bytes]], bool, bool]":
    """Read both streams until the program ended. Return them, whether it ended, and whether it printed too much."""
    streams: "Dict[int, List[bytes]]" = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    open_streams, cut = dict.fromkeys(streams, 0), False
    poll = select.poll()
    for number in streams:
        poll.register(number, select.POLLIN)
    while open_streams:
        ended = process.poll() is not None  # before the streams: what it wrote last is there when it has ended
        left = deadline - time.monotonic()
        ready = poll.poll(max(0, min(left, _STRIDE)) * 1000)
        for number, _ in ready:
            data = os.read(number, 65536)
            open_streams[number] += len(data)
            streams[number].append(data)
            if open_streams[number] > LARGEST_OUTPUT and not tail:
                streams[number] = [b"".join(streams[number])[:LARGEST_OUTPUT]]
                return streams.values(), False, True
            if open_streams[number] > 2 * LARGEST_OUTPUT:
                streams[number] = [b"".join(streams[number])[-LARGEST_OUTPUT:]]
                open_streams[number], cut = LARGEST_OUTPUT, True
            if not data:
                poll.unregister(number)
                del open_streams[number]
        if not ready and (left <= 0 or ended):
            break
    cut = cut or any(sum(map(len, stream)) > LARGEST_OUTPUT for stream in streams.values())
    kept = [[b"".join(stream)[-LARGEST_OUTPUT:]] for stream in streams.values()]
    return kept, _ended(process, deadline), cut


def _ended(process: "Process", deadline: float) -> bool:
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def end_group(pid: int) -> None:
    """End a process group, where it is still there."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def _end(process: "Process") -> None:
    """End the program and what it started. One that sleeps in the kernel cannot be ended: it is not waited for."""
    end_group(process.pid)
    process.stdout.close()
    process.stderr.close()
    try:
        process.wait(0.1)
    except subprocess.TimeoutExpired:
        pass
