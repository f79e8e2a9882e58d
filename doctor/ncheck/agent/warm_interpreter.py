"""An interpreter that is started once: it prints what it is, and then runs each program that it gets in a fork.

A start takes 20 ms, and seconds on a cold network file system, or where python3 is a script that looks for the real
one. A fork has the same environment but for what is set for it, and a library that ends its process ends the fork only.
"""

import json
import os
import select
import subprocess
import threading
import time

from ncheck.agent.commands import LARGEST_OUTPUT, completed, decoded, end_group, not_started, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Optional, Sequence

    from ncheck.agent.commands import Environment, Process, Reply

_OURS, _FORK = b"ncheck-ran:", b"ncheck-fork:"
_LATE = 1.0  # seconds that the interpreter may take to say that the time of a fork was over
_OWN_END = 0.2  # seconds in which it may end by itself: what its start-up files set up has an end, too
_LARGEST_ANSWER = 16 * LARGEST_OUTPUT  # two outputs, of which each character can become six

# What the dynamic loader and Python read when a process starts: a fork cannot have another.
_AT_THE_START = ("LD_", "PYTHON", "PATH")

# Follows the program that says what the interpreter is.
SERVE = r"""
def ncheck_run(asked, out, err):
    import traceback
    status = 1
    try:
        os.setpgid(0, 0)
        for number, target in ((os.open(os.devnull, os.O_RDWR), 0), (out, 1), (err, 2)): os.dup2(number, target)
        for name, value in asked["changed"].items():
            if value is None: os.environ.pop(name, None)
            else: os.environ[name] = value
        sys.argv = ["-c"] + asked["words"]
        exec(compile(asked["text"], "<string>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if status and not isinstance(end.code, int): sys.stderr.write("%s\n" % end.code)
    except BaseException: traceback.print_exc()
    finally:
        try: sys.stdout.flush(), sys.stderr.flush()
        finally: os._exit(status)
def ncheck_serve(asked):
    import select, signal, time
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    began, pid = time.monotonic(), os.fork()
    if not pid:
        os.close(out), os.close(err)
        ncheck_run(asked, out_end, err_end)
    os.close(out_end), os.close(err_end)
    print("ncheck-fork:%d" % pid)
    sys.stdout.flush()
    texts, reading, ends, status = {out: b"", err: b""}, [out, err], began + asked["seconds"], None
    def reaped():
        done, status = os.waitpid(pid, os.WNOHANG)
        return status if done else None
    while reading or status is None:
        left = ends - time.monotonic()
        ready = select.select(reading, [], [], max(0.0, min(left, 0.2 if reading else 0.005)))[0]
        for number in ready:
            data = os.read(number, 65536)
            texts[number] = (texts[number] + data)[:asked["most"]]
            if not data: reading.remove(number)
        if status is None: status = reaped()
        if left <= 0 or not ready and status is not None: break
    late = status is None
    try: os.killpg(pid, signal.SIGKILL)
    except OSError: late and os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 0.5
    while status is None and time.monotonic() < until:
        time.sleep(0.005)
        status = reaped()
    os.close(out), os.close(err)
    code = None if late else -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    texts = [texts[number].decode("utf-8", "replace") for number in (out, err)]
    print("ncheck-ran:" + json.dumps({"code": code, "texts": texts, "seconds": time.monotonic() - began}))
    sys.stdout.flush()
print("ncheck-ran:{}")
sys.stdout.flush()
while True:
    line = sys.stdin.readline()
    if not line: break
    ncheck_serve(json.loads(line))
"""


class WarmInterpreter:
    """A program that ends with SERVE, and the reply to its beginning, as `commands.run` would give it."""

    def __init__(self, argv: "Sequence[str]", timeout: float, environment: "Environment") -> None:
        self.environment: "Environment" = completed(environment)
        self.lock = threading.Lock()
        self.process: "Optional[Process]" = None
        self.data: "Dict[int, bytes]" = {}
        began = time.monotonic()
        try:
            process = self.process = start(argv, self.environment, stdin=subprocess.PIPE)
        except (OSError, ValueError) as error:
            self.reply: "Reply" = not_started(argv, self.environment, error)
            return
        self.data = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
        ready = self._next_message(began + timeout) is not None
        self.reply = {"status": "ok", "seconds": round(time.monotonic() - began, 4), "exit_status": 0}
        self.reply["stdout"], self.reply["stderr"] = map(decoded, self.data.values())
        if not ready:
            self._lost(process, began + timeout)

    def __del__(self) -> None:
        self.end()

    def run(self, text: str, words: "Iterable[str]", seconds: float, environment: "Environment") -> "Optional[Reply]":
        """Run a program in a fork, for so long at most; return the reply, None where it must be started by itself."""
        wanted = completed(environment)
        names = [name for name in {**wanted, **self.environment} if wanted.get(name) != self.environment.get(name)]
        if any(name.startswith(_AT_THE_START) for name in names) or not self.lock.acquire(blocking=False):
            return None
        try:
            if not self.process:
                return None
            changed = {name: wanted.get(name) for name in names}
            asked = {
                "text": text, "words": list(words), "changed": changed, "seconds": seconds, "most": LARGEST_OUTPUT,
            }  # fmt: skip
            return self._ran(self.process, asked, time.monotonic() + seconds + _LATE)
        finally:
            self.lock.release()

    def end(self) -> None:
        """End it, with all that it started in its group."""
        process, self.process = self.process, None
        if process:
            for stream in (process.stdin, process.stdout, process.stderr):
                try:
                    stream.close()
                except OSError:
                    pass  # what was written last did not arrive
            _ends_within(process, _OWN_END)
            end_group(process.pid)
            _ends_within(process, 0.1)  # longer where it sleeps in the kernel

    def _ran(self, process: "Process", asked: "Dict[str, Any]", ends: float) -> "Optional[Reply]":
        self.data = dict.fromkeys(self.data, b"")
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            result = self._next_message(ends)
        except OSError:
            result = None
        if result is None:
            self._end_with_its_fork()
            if time.monotonic() < ends:
                return None
            result = {"code": None, "seconds": asked["seconds"] + _LATE, "texts": ("", "")}
        reply: "Reply" = {"status": "ok", "seconds": round(result["seconds"], 4), "exit_status": result["code"]}
        if result["code"] is None:
            reply.update({"status": "timeout", "reason": "ended because of its time limit"})
        reply["stdout"], reply["stderr"] = result["texts"]
        return reply

    def _end_with_its_fork(self) -> None:
        """End it in the middle of a program, which runs in a process group of its own."""
        lines = b"".join(self.data.values()).split(b"\n")
        self.end()
        for line in lines:
            if line.startswith(_FORK) and line[len(_FORK) :].isdigit():
                end_group(int(line[len(_FORK) :]))

    def _next_message(self, ends: float) -> "Optional[Dict[str, Any]]":
        """Read until it says that it is ready for more, and return what else it says; None where it does not."""
        out, err = self.data
        poll = select.poll()
        poll.register(out, select.POLLIN)
        poll.register(err, select.POLLIN)
        left = 2
        while left:
            ready = poll.poll(max(0.0, ends - time.monotonic()) * 1000)
            if not ready:
                return None
            for number, _ in ready:
                data = os.read(number, 65536)
                self.data[number] += data
                message = _last_message(self.data[out]) if number == out and b"\n" in data else None
                if message is not None:
                    return message
                if not data:
                    poll.unregister(number)
                    left -= 1
                if len(self.data[number]) > _LARGEST_ANSWER:
                    return None
        return None

    def _lost(self, process: "Process", ends: float) -> None:
        """Note that it ended, or said too much or nothing in time."""
        try:
            self.reply["exit_status"] = process.wait(max(0.0, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.reply.update({"status": "timeout", "exit_status": None, "reason": "ended because of its time limit"})
        self.end()


def _ends_within(process: "Process", seconds: float) -> None:
    """Wait for the end of a process for so long at most."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass


def _last_message(output: bytes) -> "Optional[Dict[str, Any]]":
    """Return what the interpreter says last in a whole line, None where it says nothing."""
    lines = [line for line in output.split(b"\n")[:-1] if line.startswith(_OURS)]
    return json.loads(lines[-1][len(_OURS) :].decode()) if lines else None
