"""The protocol over one stream: the shell's greeting, the agent's start, the clock, and the questions."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
import threading
import time
from contextlib import suppress
from dataclasses import field, replace
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING

from ncheck.agent.frames import MOST, FrameError, inflated, length_of, message_of, packed, weight
from ncheck.expression import expression
from ncheck.fleet.bootstrap import Bootstrap, bootstrap
from ncheck.fleet.engine import COMMAND_NAME, EngineBrokeError, NodeFloodsError
from ncheck.fleet.framing import Lines, greeting_from, on_the_wire, reply_from
from ncheck.installed_packages import distributions
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Cause, Evidence, Login, Reply, Status
from ncheck.ssh import login as ssh
from ncheck.ssh.child import STDERR_KEPT
from ncheck.ssh.failures import cause_of
from ncheck.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ncheck.fleet.engine import Stream
    from ncheck.model.evidence import Greeting, JsonValue, Note, Source
    from ncheck.model.node import Node
    from ncheck.settings import JobEnvironment


CLOCK = Answer("clock")
_PINGS = 4
_PING = packed({"do": "ping"})
_CLOCK_GOOD_ENOUGH = 0.25  # seconds of uncertainty; skew matters from a whole second on
AFTER_THE_RUN = 5.0  # seconds that an agent may go on after the run, where the head has gone silent
_HEADER = 4
_FILES_OF_PYTHON = 16  # open files: a shell needs a number from 10 on, Python a few more to start a program
_LAST_WORDS = 5.0  # seconds to wait for a reason after the node closed its input
_GLANCE = 0.1  # seconds for what has come already
_QUIET = 5.0  # seconds without a word from an agent that has begun: then it is asked whether it is there
_IN_VAIN = 2  # so many more of them without a word: it is not, and the run goes on without it
_MOST_STRAYS = 1000  # unexpected messages of one session: more is a flood
_BY_SSH = frozenset({"paramiko", "openssh"})
_KILLED = frozenset({128 + 9, 128 + 15})  # as the kernel does without memory, or an administrator
_FROM_PAM = frozenset({ssh.LoginCause.SLURM_JOB_WANTED, ssh.LoginCause.PERSON_WANTED})


class Session:
    """Talks to one node. `module` returns the text of a module that the agent requests (pynvml)."""

    def __init__(self, stream: Stream, known: Known, wanted: SessionTerms, module: Callable[[str], str | None]) -> None:
        self.stream, self.known, self.wanted, self.module = stream, known, wanted, module
        self.lines = Lines(stream)
        self.script = bootstrap("", None)
        self.posted = b""
        self.asked: dict[str, Source] = {}
        self.pinged = (0.0, 0.0)  # when the last ping went: the time of day, and by time.monotonic()
        self.strays = self.pings = self.taken = self.looks = 0
        self.answered = self.starting = False

    def greet(self, started: float) -> None:
        """Send the script, and read the shell's greeting. `started` is when connecting began."""
        self.script = self.wanted.script()
        self.known.login = replace(self.stream.login, reached=False)
        began = time.monotonic()
        try:
            self._send_now(self.script.script.encode() + b"\n")
            noise = self.lines.until_marker(self.script.marker, self._left(self.wanted.connect_timeout))
            marked = self.lines.marked_until("end", self._left(self.wanted.connect_timeout))
        except (TimeoutError, OSError, EOFError, NodeFloodsError) as error:
            raise self._no_shell(error) from error
        if marked.get("command") != COMMAND_NAME:
            raise self._other_shell(marked)
        lossy: Callable[[], bool] | None = getattr(self.stream, "lossy", None)
        shell = time.monotonic() - began if lossy and not lossy() else 0.0
        self.known.greeting = replace(greeting_from(marked, noise), shell_seconds=shell)
        seconds = self.stream.login.seconds or time.monotonic() - started
        self.known.login = replace(self.stream.login, reached=True, seconds=seconds)

    def start(self, *requests: Request) -> None:
        """Send the agent with its first questions, and wait for python3 and for its answers, as `collect` does."""
        began = time.monotonic()  # Python reads the blob, which may be more than a pipe holds
        self.posted += self.wanted.start
        self._post(requests)
        flight = self.script.rest
        if not self.wanted.shared:  # on one stream for many nodes, messages have an address, which the agent says
            flight, self.posted = flight + self.posted, b""
        broke: OSError | None = None
        try:  # not before the greeting: another program could take it for commands
            self.stream.send(flight, self._left(self.wanted.connect_timeout))
        except ConnectionError as error:  # the node said why before
            broke = error
        except TimeoutError as error:
            with suppress(TimeoutError, OSError, EOFError, NodeFloodsError):
                self.lines.first_of(("go", "none", "left"), _GLANCE)  # what the shell said before it read no more
            raise self._not_started_in_time() from error
        version, path = self._python()
        # A container has to start, too; one stream for many nodes brings the agent to all before most are asked.
        seconds = 0.0 if self.wanted.enter or self.wanted.shared else time.monotonic() - began
        if self.known.greeting:
            python = f"{path} ({version})" if version else path
            self.known.greeting = replace(self.known.greeting, python=python, python_seconds=seconds)
        if broke:
            raise self._last_words() or self._broken(broke) from broke
        self.starting = True
        self._answers(requests)

    def collect(self, *requests: Request) -> None:
        """Ask for these, and keep each reply as it comes.

        Messages that are posted are sent together, when the next answer is waited for.
        """
        self._post(requests)
        self._answers(requests)

    def _post(self, requests: Sequence[Request]) -> None:
        self.taken = 0  # of the answers to these
        self.asked = {key: source for request in requests for key, source in request.asked.items()}
        self.posted += b"".join(request.frame for request in requests)

    def _answers(self, requests: Sequence[Request]) -> None:
        """Take the answers. The clock is asked now, since a python3 that starts would make it inexact."""
        if any(request.clock for request in requests):
            self.pings = _PINGS
            self._ping()
        while self.starting or self.pings or self.asked:
            self._handle(self._message())

    def bye(self) -> None:
        """End the agent, and close."""
        try:
            if self.wanted.agent:
                self.stream.send(packed({"do": "bye"}), 1.0)
        except OSError:
            pass
        self.stream.close()

    # Messages

    def _left(self, most: float) -> float:
        return max(0.0, min(most, self.wanted.deadline - time.monotonic()))

    def _send_now(self, data: bytes) -> None:
        """Send all at once. A shell that ended at once breaks the pipe; the reason is read from its output."""
        with suppress(ConnectionError):
            self.stream.send(data, self._left(self.wanted.connect_timeout))

    def _send_posted(self) -> None:
        frames, self.posted = self.posted, b""
        try:
            self.stream.send(frames, self._left(self.wanted.connect_timeout))
        except TimeoutError as error:
            raise self._timed_out("the node takes no more input") from error
        except OSError as error:
            raise self._last_words() or self._broken(error) from error

    def _last_words(self) -> SessionEndedError | None:
        """Return why the node takes no more input: the shell around --enter may have said so a moment before."""
        try:
            self._frame(_LAST_WORDS)
        except SessionEndedError as ended:
            return ended
        except (OSError, EOFError, FrameError, NodeFloodsError):
            return None
        return None

    def _message(self) -> dict[str, JsonValue]:
        """Return the next message."""
        if self.posted:
            self._send_posted()
        try:
            message = self._frame()
        except TimeoutError as error:
            raise self._timed_out("not all questions were answered") from error
        except EOFError as error:
            raise (self._broken if self.answered else self._python_ended)(error) from error
        except OSError as error:
            raise self._broken(error) from error
        except FrameError as error:
            raise SessionEndedError(Cause.FLOODED, f"the node sent something that is not a message: {error}") from error
        except NodeFloodsError as error:
            raise SessionEndedError(Cause.FLOODED, str(error)) from error
        self.answered = True
        return message if isinstance(message, dict) else {}

    def _handle(self, message: dict[str, JsonValue]) -> None:
        """Keep what a message brings, and count it where it answers nothing."""
        kind = message.get("is")
        if kind == "replies":
            self._keep(message.get("replies"))
        elif kind == "started" and self.starting:
            self.starting = False
            if "not_entered" in message:
                raise SessionEndedError(Cause.NOT_ENTERED, str(message["not_entered"])[:500])
        elif kind == "pong" and self.looks:  # it was sent before any ping for the clock that has no answer
            self.looks -= 1
        elif kind == "pong" and self.pings:
            self._read_clock(message.get("time"))
        else:
            self._stray(1)
        if kind == "wanted":
            name = str(message.get("module"))
            self.posted += _module_frame(name, self.module(name))

    def _keep(self, answers: JsonValue) -> None:
        """Keep each reply to a question; the rest is counted."""
        replies = answers if isinstance(answers, dict) else {}
        strays = 0 if replies else 1
        for key, reply in replies.items():
            source = self.asked.pop(key, None)
            if source is None:
                strays += 1
            else:
                self.known.replies[key] = reply_from(reply, asked=_kept(source, self.known.node.name))
        self._stray(strays)

    def _ping(self) -> None:
        """Ask the node for its time. Messages posted before are sent with it."""
        self.posted += _PING
        self.pinged = time.time(), time.monotonic()

    def _read_clock(self, node_time: JsonValue) -> None:
        """Keep the node's time; of a few answers the quickest is the most exact."""
        sent, sent_at = self.pinged
        half = (time.monotonic() - sent_at) / 2
        best = self.known.clock
        if isinstance(node_time, float) and math.isfinite(node_time) and (best is None or half < best[1]):
            self.known.clock = best = (node_time - (sent + half), half)
            self.known.replies[CLOCK.key] = Reply(Status.OK, value={"offset": best[0], "uncertainty": half})
        self.pings = 0 if best and best[1] < _CLOCK_GOOD_ENOUGH else self.pings - 1
        if self.pings:
            self._ping()

    def _stray(self, count: int) -> None:
        """Count unexpected messages. A node that keeps sending them costs the others time."""
        self.strays += count
        if self.strays > _MOST_STRAYS:
            raise SessionEndedError(Cause.FLOODED, f"the node sent {self.strays} unexpected messages")

    def _frame(self, most: float = float("inf")) -> object:
        """Return the content of the next frame. The shell around --enter prints a last line when all has ended."""
        header = self._exactly(_HEADER, most)
        if self.script.marker.encode().startswith(header):
            raise self._enter_ended()
        body = self._exactly(length_of(header), most)
        with _READING:
            text = inflated(body)
            self.taken += weight(text)
            if self.taken > MOST:
                raise SessionEndedError(Cause.FLOODED, f"the node sent more than {MOST // 2**20} MiB of answers")
            return message_of(text)

    def _exactly(self, wanted: int, most: float) -> bytes:
        """Return that many bytes. An agent that has begun answers pings, whatever it waits for: one that does not was
        stopped, or its node froze, and nobody waits for it to the end of the run.
        """
        ends, quiet, came = time.monotonic() + self._left(most), 0, len(self.lines.buffer)
        while True:
            left = max(0.0, ends - time.monotonic())
            try:
                return self.lines.exactly(wanted, min(left, _QUIET))
            except TimeoutError:
                if left <= _QUIET:
                    raise
            if not self.answered or self.wanted.shared:  # it has yet to begin, or is one of many on a stream
                continue
            quiet = quiet + 1 if len(self.lines.buffer) == came else 0
            came = len(self.lines.buffer)
            if quiet > _IN_VAIN:
                seconds = f"{quiet * _QUIET:.0f} s"
                why = "its python3 was stopped (SIGSTOP), or the node froze"
                raise SessionEndedError(Cause.CLOSED, f"it answered nothing for {seconds}, and no ping: {why}")
            if quiet == 1 and not self.pings:
                self.looks += 1
                with suppress(OSError):  # its input is full: it reads no more
                    self.stream.send(_PING, self._left(_GLANCE))

    def _python(self) -> tuple[str, str]:
        """Wait for a python3 to start, and return its version and path."""
        try:
            word, rest = self.lines.first_of(("go", "none", "left"), self._left(self.wanted.connect_timeout))
        except TimeoutError as error:
            raise self._not_started_in_time() from error
        except EOFError as error:
            raise self._python_ended(error) from error
        except OSError as error:
            raise self._small_only(str(error)) or self._broken(error) from error
        except NodeFloodsError as error:
            raise SessionEndedError(Cause.FLOODED, str(error)) from error
        if word == "go":
            version, _, path = rest.partition(" ")
            return version, path
        raise self._not_started(word, rest)

    # Why a session ended

    def _not_started(self, word: str, rest: str) -> SessionEndedError:
        reason = self._last_error()
        if word == "left" and "in" not in self.lines.marked:
            ended = f"--enter ended with exit status {rest}"
            return SessionEndedError(Cause.NOT_ENTERED, ended + (reason and f": {reason}"))
        if broken := rest if word == "none" else "":
            return self._python_fails(broken, reason)
        if (old := self.lines.marked.get("try", "")) and self.known.greeting:
            self.known.greeting = replace(self.known.greeting, old_python=printable(old, 200))
        reason = reason or "no python3 on PATH or in its usual places"
        return SessionEndedError(Cause.NO_PYTHON, reason + self._too_few_files())

    def _not_started_in_time(self) -> SessionEndedError:
        if self._left(1.0) <= 0:
            return self._timed_out("python3 had not started yet")
        seconds = f"{self.wanted.connect_timeout:.0f} s"
        marked = self.lines.marked
        if stalled := self._small_only(f"not within {seconds}"):
            return stalled
        if python := marked.get("try"):
            return self._python_fails(python, f"it did not start within {seconds}")
        return SessionEndedError(Cause.NO_PYTHON, f"python3 did not start within {seconds}")

    def _small_only(self, how: str) -> SessionEndedError | None:
        """Say that only the greeting, which is small, came through; None where more did. `how` nothing else came."""
        if "started" in self.lines.marked or self.stream.login.transport not in _BY_SSH:
            return None
        return SessionEndedError(Cause.STALLED, f"the login shell answered a small packet, and nothing larger ({how})")

    def _python_ended(self, error: EOFError) -> SessionEndedError:
        """Say why the shell ended before the agent answered: its exit status is that of python3."""
        status = self.stream.exit_status(self._left(2.0))
        python = self.lines.marked.get("try")
        if not python or status in _KILLED or self.wanted.enter:
            return self._broken(error)
        ended = "it ended at once" + ("" if status is None else f" with exit status {status}")
        words = self._last_error()
        return self._python_fails(python, ended + (f": {words}" if words else ""))

    def _python_fails(self, python: str, reason: str) -> SessionEndedError:
        """Note that a python3 is there and does not run: to install one is no remedy."""
        python = printable(python, 200)
        if self.known.greeting:
            self.known.greeting = replace(self.known.greeting, python=python)
        words = f"{python} is installed and does not run: {reason or 'it does not say why'}"
        return SessionEndedError(Cause.NO_PYTHON, words + self._too_few_files())

    def _enter_ended(self) -> SessionEndedError:
        if self.answered:
            reason = self._last_error() or "the --enter command ended before all questions were answered"
            return SessionEndedError(Cause.CLOSED, reason)
        reason = "the --enter command does not pass on standard input (docker exec needs -i)"
        return SessionEndedError(Cause.NOT_ENTERED, reason)

    def _no_shell(self, error: Exception) -> SessionEndedError:
        if isinstance(error, (NodeFloodsError, EngineBrokeError)):
            cause = Cause.FLOODED if isinstance(error, NodeFloodsError) else Cause.TRANSPORT
            return SessionEndedError(cause, str(error))
        if self.script.quoted_by(self.stream.stderr()):
            return self._other_shell({})
        if isinstance(error, TimeoutError):
            return self._silent_shell()
        if isinstance(error, EOFError):
            status = self.stream.exit_status(self._left(2.0))
            ended = "the login shell ended at once" + ("" if status is None else f" with exit status {status}")
            words = self._last_error()
            reason = ended + (f": {words}" if words else self.lines.last_line())
            known = cause_of(words + self.lines.last_line())  # PAM ends a shell, too
            return SessionEndedError(Cause(known.value) if known in _FROM_PAM else Cause.NO_SHELL, reason)
        return SessionEndedError(Cause.CLOSED, f"the connection broke before the shell answered: {error}")

    def _silent_shell(self) -> SessionEndedError:
        """Say why a login shell did not answer. Its first line fits into one packet: the network is not suspect."""
        if self.wanted.deadline - time.monotonic() <= 0:
            return self._timed_out("the login shell had not answered yet")
        reason = f"logged in, but the login shell did not answer within {self.wanted.connect_timeout:.0f} s"
        if len(self.stream.stderr()) >= STDERR_KEPT:
            printed = f"{reason}, and prints on standard error without end: {self._last_error()}"
            return SessionEndedError(Cause.FLOODED, printed)
        why = ": a start-up file such as ~/.bashrc hangs or reads input, or the home folder does not answer"
        return SessionEndedError(Cause.NO_SHELL, reason + (self.lines.last_line() or why))

    def _other_shell(self, marked: Mapping[str, str]) -> SessionEndedError:
        """Say which program reads the script in place of the remote command, and through what it came there."""
        program = printable(marked.get("command") or "another program", 40)
        start_up = "a start-up file replaces the login shell (exec, newgrp)"
        forced = "sshd runs a forced command (ForceCommand, or command= in authorized_keys)"
        why = (forced if marked["forced"] else start_up) if "forced" in marked else f"{start_up}, or {forced}"
        if self.stream.login.transport == "rsh":
            why = "the command given with --rsh does not run its arguments"
        return SessionEndedError(
            Cause.COMMAND_REPLACED, f"{why}: {program} reads standard input, and the command is lost"
        )

    def _broken(self, error: Exception) -> SessionEndedError:
        if isinstance(error, EngineBrokeError):
            return SessionEndedError(Cause.TRANSPORT, str(error))
        reason = self._last_error() or str(error) or "the session ended before all questions were answered"
        return SessionEndedError(Cause.CLOSED, reason + self._too_few_files())

    def _too_few_files(self) -> str:
        """Return that processes there may open too few files for a shell and Python, "" if that is not so."""
        files = self.lines.marked.get("files", "")
        few = files.isdecimal() and int(files[:9]) < _FILES_OF_PYTHON
        return f"; processes there may open only {files} files (ulimit -n)" if few else ""

    def _timed_out(self, state: str) -> SessionEndedError:
        return SessionEndedError(Cause.DEADLINE, f"the run's deadline passed: {state}")

    def _last_error(self) -> str:
        lines = self.stream.stderr().decode("utf-8", "backslashreplace").strip().splitlines()
        return lines[-1][:300] if lines else ""


def _kept(source: Source, node: str) -> JsonValue:
    """Return what is kept of a question with a node's reply."""
    if not isinstance(source, Answer):
        return None
    return source.arguments if source.round is not None else source.kept.get(node) if source.kept else None


@lru_cache(maxsize=8)  # every node with a GPU requests the same text of 150 kB
def _module_frame(name: str, text: str | None) -> bytes:
    frame: bytes = packed({"do": "module", "name": name, "text": text})
    return frame


class SessionEndedError(Exception):
    """The session cannot continue; what was collected is kept."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause, self.detail = cause, detail


@dataclass
class Known:
    """What is known of one node so far. The session adds to it as answers come, so an early end loses none."""

    node: Node
    login: Login | None = None
    greeting: Greeting | None = None
    replies: dict[str, Reply] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)
    clock: tuple[float, float] | None = None

    def evidence(self) -> Evidence:
        offset, uncertainty = self.clock or (None, None)
        login = self.login or Login(
            reached=False, cause=Cause.DEADLINE, detail="the run ended before this node was connected"
        )
        return Evidence(
            self.node.name, login, self.greeting, dict(self.replies), offset, uncertainty,
            self.node.places, self.node.slots, notes=dict(self.notes),
        )  # fmt: skip

    def fail(self, cause: Cause, detail: str, *, fix: str = "") -> None:
        """Keep the first cause: those that follow from it explain less."""
        login = self.login or Login(reached=False)
        if login.cause is None:
            self.login = replace(login, cause=cause, detail=detail, fix=fix or login.fix)


@dataclass(frozen=True)
class SessionTerms:
    """The limits and the environment of one node's session. Times are in seconds; `deadline` is by time.monotonic().

    `agent` tells whether one is needed: the shell's greeting alone starts no python on the node. `shared`: the nodes
    share one stream (agent/broadcast.py).
    """

    nonce: str
    deadline: float
    agent: bool = True
    connect_timeout: float = 15.0
    command_timeout: float = 10.0
    sudo: bool = False
    enter: str | None = None
    shared: bool = False
    environment: Mapping[str, JsonValue] = field(default_factory=dict)  # python, setup, active, avoid: agent/job.py

    def script(self) -> Bootstrap:
        """Return what starts the agent, whose own deadline is a little later than the run's."""
        seconds = max(1.0, self.deadline - time.monotonic()) + AFTER_THE_RUN
        python, setup = self.environment.get("python"), self.environment.get("setup")
        return _script(
            self.nonce, -(-seconds // AFTER_THE_RUN) * AFTER_THE_RUN if self.agent else None, enter=self.enter,
            python=python if isinstance(python, str) else None, setup=setup if isinstance(setup, str) else None,
            shared=self.shared,
        )  # fmt: skip

    @cached_property
    def start(self) -> bytes:
        """The message that starts the agent, as it is sent."""
        return bytes(packed({
            "do": "start", "command_timeout": self.command_timeout, "sudo": self.sudo,
            "setup_timeout": max(0.0, min(30.0, self.deadline - time.monotonic())),
            "environment": dict(self.environment),
        }))  # fmt: skip


_script = lru_cache(maxsize=64)(bootstrap)  # nodes that begin within a few seconds get the same one


class Request:
    """Questions as they are sent: made once for all nodes that are asked the same."""

    def __init__(self, sources: Sequence[Source]) -> None:
        asked = {source.key: source for source in sources}
        self.clock = asked.pop(CLOCK.key, None) is not None
        self.asked: Mapping[str, Source] = asked
        wire: list[JsonValue] = [on_the_wire(source) for source in asked.values()]
        self.frame = packed({"do": "collect", "sources": wire}) if wire else b""


ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")

FRAMEWORKS = (
    "torch", "tensorflow", "jax", "horovod", "oneflow", "paddlepaddle", "paddlepaddle-gpu", "deepspeed", "mpi4py",
)  # fmt: skip

_PREFIX_LOCK = threading.Lock()

# Answers are read one at a time: among hundreds of threads that do so, the one that hears what all nodes say would wait
# for its turn for so long that they seemed silent.
_READING = threading.Lock()

# Where the system keeps its python3, and administrators theirs: a node's own PATH leads to these.
_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")

# python  python3.11
_INTERPRETER = expression(r"python[0-9.]*", re.ASCII)


def job_environment(
    settings: JobEnvironment, environ: Mapping[str, str], program: Sequence[str] = ()
) -> dict[str, JsonValue]:
    """Return how the agent enters the job's environment, as agent/job.py reads it.

    The interpreter that the job's command names is in it, and what is active in the shell that runs ncheck. ncheck's
    own environment is `avoid`.
    """
    active: dict[str, JsonValue] = {name: environ[name] for name in ACTIVE if _is_path(environ.get(name, ""))}
    word = program[0] if program and _INTERPRETER.fullmatch(program[0].rpartition("/")[2]) else "python"
    on_path = _absolute(shutil.which(word, path=environ.get("PATH", os.defpath)))
    folders = {*_SYSTEM, *(f"{str(prefix).rstrip('/')}/bin" for prefix in active.values())}
    if on_path and on_path.rpartition("/")[0] not in folders:
        active["python"] = on_path
    return {
        "python": settings.python, "setup": settings.setup, "program": _absolute(word) if "/" in word else None,
        "active": active, "avoid": own_prefix(),
    }  # fmt: skip


def _absolute(path: str | None) -> str | None:
    """Return a whole path, with its links as they are; None for one that no line can show."""
    return os.path.abspath(path) if path and path.isprintable() else None  # noqa: PTH100  Path.absolute() keeps ".."


def _is_path(text: str) -> bool:
    return text.startswith("/") and text.isprintable()


def own_prefix() -> str | None:
    """Return the environment that holds only ncheck; None where a framework is installed beside it, or where ncheck
    is installed in the system's Python. Determined once for all nodes.
    """
    with _PREFIX_LOCK:
        return _own_prefix()


@cache
def _own_prefix() -> str | None:
    if sys.prefix == sys.base_prefix:
        return None
    names = {folder.stem.partition("-")[0].lower().replace("_", "-") for folder in distributions()}
    return sys.prefix if names.isdisjoint(FRAMEWORKS) else None
