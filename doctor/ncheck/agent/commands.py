"""Running a program on the node: bounded in time and output, in a session of its own, nothing on its input."""

import os
import select
import shutil
import signal
import subprocess
import time

LARGEST_OUTPUT = 1024 * 1024  # bytes of stdout and of stderr each; a program that says more is ended
SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"  # ibstat lies in sbin, off many PATHs
ENVIRONMENT = {"LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1", "GIT_OPTIONAL_LOCKS": "0"}
_FIRST = 10  # lines of a log that say when it begins
_STRIDE = 0.2  # seconds between two looks at a program that ended while a child of its own keeps the pipes open


def run(argv, timeout, environment=None, pass_fds=(), *, cwd="/", tail=False):  # noqa: PLR0913  words of one call
    """Run it to its end or to `timeout` seconds; return the fields of a Reply.

    A program that says too much is ended; with `tail` it goes on, and what is kept is the last that it said.
    """
    environment = dict(os.environ if environment is None else environment, **ENVIRONMENT)
    environment["PATH"] = ":".join(part for part in (environment.get("PATH", ""), SYSTEM_FOLDERS) if part)
    started = time.monotonic()
    try:
        process = _started(argv, environment, pass_fds, cwd)
    except (OSError, ValueError) as error:
        return not_started(argv, environment, error)
    try:
        streams, ended, truncated = _gathered(process, started + timeout, tail)
    finally:
        _end(process)
    status = "ok" if ended or (truncated and not tail) else "timeout"
    reply = {"status": status, "seconds": round(time.monotonic() - started, 4)}
    reply["exit_status"] = process.returncode if ended else None
    reply["stdout"], reply["stderr"] = (decoded(b"".join(stream)) for stream in streams)
    reply["truncated"] = truncated
    if not ended:
        reply["reason"] = "it was ended: " + ("too much output" if status == "ok" else "its time was over")
    return reply


def decoded(data):
    """Return bytes as text that can be read: what is not UTF-8 as hexadecimal numbers."""
    return data.decode("utf-8", "backslashreplace")


def thinned(log, word):
    """Return a log's first lines, and of the rest those that hold the word: a kernel says a hundred kilobytes."""
    lines = log.splitlines(keepends=True)
    return "".join(lines[:_FIRST] + [line for line in lines[_FIRST:] if word in line])


def not_started(argv, environment, error):
    """Return the reply for a program that could not be started."""
    there = argv and shutil.which(argv[0], path=environment["PATH"])
    if isinstance(error, FileNotFoundError) and not there:
        return {"status": "missing", "reason": "no {} on the PATH".format(argv[0])}
    if isinstance(error, PermissionError):
        return {"status": "denied", "reason": str(error)}
    return {"status": "failed", "reason": "cannot be started: {}".format(error)}


def _started(argv, environment, pass_fds, cwd):
    # Looked up by hand: Popen would look on the PATH of this process, and not on the one that the program gets.
    program = shutil.which(argv[0], path=environment["PATH"])
    if program is None:
        raise FileNotFoundError(argv[0])
    return subprocess.Popen(
        argv, executable=program, env=environment, cwd=cwd, start_new_session=True, pass_fds=pass_fds,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _gathered(process, deadline, tail):
    """Read both streams until the program ended. Return them, whether it ended, and whether it said too much."""
    streams = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    open_streams, cut = dict.fromkeys(streams, 0), False
    poll = select.poll()
    for number in streams:
        poll.register(number, select.POLLIN)
    while open_streams:
        ended = process.poll() is not None  # asked before the streams: what it wrote last is there when it has ended
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


def _ended(process, deadline):
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def end_group(pid):
    """End a process group, where it is still there."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def _end(process):
    """End the program and what it started. One that sleeps in the kernel cannot be ended: it is not waited for."""
    end_group(process.pid)
    process.stdout.close()
    process.stderr.close()
    try:
        process.wait(0.1)
    except subprocess.TimeoutExpired:
        pass
