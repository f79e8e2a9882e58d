"""One node's conversation over a link.Stream: the greeting, the agent's start, the clock, and what is asked of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ncheck.agent.frames import FrameError, length_of, packed, unpacked
from ncheck.fleet.bootstrap import Bootstrap, bootstrap
from ncheck.fleet.lines import Lines, NodeFloodsError
from ncheck.fleet.replies import greeting_from, on_the_wire, reply_from
from ncheck.model.evidence import Answer, Cause, Evidence, Login, Reply, Status
from ncheck.ssh.messages import cause_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ncheck.fleet.link import Stream
    from ncheck.model.evidence import Greeting, JsonValue, Source
    from ncheck.model.node import Node


CLOCK = Answer("clock")


_PINGS = 4


_CLOCK_GOOD_ENOUGH = 0.25  # seconds of uncertainty; skew matters from a whole second on


AFTER_THE_RUN = 5.0  # seconds that an agent may outlive the run whose head says nothing more


_HEADER = 4


_LAST_WORDS = 5.0  # seconds for them to come where the other direction is closed


_MOST_STRAYS = 1000  # messages that answer nothing, in one session: more is a flood


_SAID_BY_PAM = frozenset({Cause.SLURM_JOB_WANTED, Cause.PERSON_WANTED})


class Session:
    """Speaks with one node. `module` brings the text of a module that the agent asks for (pynvml)."""

    def __init__(self, stream: Stream, known: Known, wanted: Wanted, module: Callable[[str], str | None]) -> None:
        self.stream, self.known, self.wanted, self.module = stream, known, wanted, module
        self.lines = Lines(stream)
        self.script = bootstrap("", None)
        self.posted = b""
        self.asked: dict[str, Source] = {}
        self.pinged = (0.0, 0.0)  # when the last ping went: the time of day, and by time.monotonic()
        self.requests = self.strays = self.pings = 0
        self.answered = self.starting = False

    def greet(self, started: float) -> None:
        """Send the script and the agent, and hear the shell's greeting. `started` is when connecting began."""
        self.script = self._bootstrap()
        self.known.login = replace(self.stream.login, reached=False)
        try:
            self._send_script()
            noise = self.lines.until_marker(self.script.marker, self._left(self.wanted.connect_timeout))
            told = self.lines.told_until("end", self._left(self.wanted.connect_timeout))
        except (TimeoutError, OSError, EOFError, NodeFloodsError) as error:
            raise self._no_shell(error) from error
        self.known.greeting = greeting_from(told, noise)
        seconds = self.stream.login.seconds or time.monotonic() - started
        self.known.login = replace(self.stream.login, reached=True, seconds=seconds)

    def start(self) -> None:
        """See the agent start and enter the job's environment."""
        version, path = self._python()
        if self.known.greeting:
            self.known.greeting = replace(self.known.greeting, python=f"{path} ({version})" if version else path)
        self._post({
            "do": "start", "command_timeout": self.wanted.command_timeout, "sudo": self.wanted.sudo,
            "setup_timeout": min(30.0, self._left(30.0)), "environment": dict(self.wanted.environment),
        })  # fmt: skip
        self.starting = True

    def collect(self, sources: Sequence[Source]) -> None:
        """Ask for these, and keep each reply as it comes. What starts the agent travels with the first questions."""
        self.asked = {source.key: source for source in sources}
        if self.asked.pop(CLOCK.key, None):
            self.pings = _PINGS
            self._ping()
        if self.asked:
            self.requests += 1
            wire: list[JsonValue] = [on_the_wire(source) for source in self.asked.values()]
            self._post({"do": "collect", "id": self.requests, "sources": wire})
        while self.starting or self.pings or self.asked:
            self._heed(self._message())

    def bye(self) -> None:
        """Let the agent go, and close."""
        try:
            if self.wanted.agent:
                self.stream.send(packed({"do": "bye"}), 1.0)
        except OSError:
            pass
        self.stream.close()

    # What goes to and fro

    def _bootstrap(self) -> Bootstrap:
        wanted = self.wanted
        seconds = max(1.0, wanted.deadline - time.monotonic()) + AFTER_THE_RUN
        python, setup = wanted.environment.get("python"), wanted.environment.get("setup")
        return bootstrap(
            wanted.nonce, seconds if wanted.agent else None, enter=wanted.enter,
            python=python if isinstance(python, str) else None, setup=setup if isinstance(setup, str) else None,
        )  # fmt: skip

    def _left(self, most: float) -> float:
        return max(0.0, min(most, self.wanted.deadline - time.monotonic()))

    def _send_script(self) -> None:
        """Send all at once. A shell that ended at once breaks the pipe; why it ended is read from what it said."""
        try:
            self.stream.send(self.script.sent, self._left(self.wanted.connect_timeout))
        except ConnectionError:
            return

    def _post(self, message: dict[str, JsonValue]) -> None:
        """Send it when an answer is waited for, together with what else was posted."""
        self.posted += packed(message)

    def _send_posted(self) -> None:
        frames, self.posted = self.posted, b""
        try:
            self.stream.send(frames, self._left(self.wanted.connect_timeout))
        except TimeoutError as error:
            raise self._timed_out("it takes no more input") from error
        except OSError as error:
            raise self._last_words() or self._cut(error) from error

    def _last_words(self) -> SessionEndedError | None:
        """Hear why nothing more is taken: the shell around --enter may have said so a moment before."""
        try:
            self._frame(_LAST_WORDS)
        except SessionEndedError as ended:
            return ended
        except (OSError, EOFError, FrameError):
            return None
        return None

    def _message(self) -> dict[str, JsonValue]:
        """Return the next message."""
        if self.posted:
            self._send_posted()
        try:
            said = self._frame()
        except TimeoutError as error:
            raise self._timed_out("not all was answered in time") from error
        except (OSError, EOFError) as error:
            raise self._cut(error) from error
        except FrameError as error:
            raise SessionEndedError(Cause.FLOODED, f"the node sent what is no answer: {error}") from error
        self.answered = True
        return said if isinstance(said, dict) else {}

    def _heed(self, said: dict[str, JsonValue]) -> None:
        """Take in what a message tells, and count it where that answers nothing."""
        kind = said.get("is")
        if kind == "replies":
            self._keep(said.get("replies"))
        elif kind == "started" and self.starting:
            self.starting = False
            if "not_entered" in said:
                raise SessionEndedError(Cause.NOT_ENTERED, str(said["not_entered"])[:500])
        elif kind == "pong" and self.pings:
            self._read_clock(said.get("time"))
        else:
            self._stray(1)
        if kind == "wanted":
            name = str(said.get("module"))
            self.posted += _module_frame(name, self.module(name))

    def _keep(self, told: JsonValue) -> None:
        """Keep each reply to what was asked."""
        replies = told if isinstance(told, dict) else {}
        strays = 0 if replies else 1
        for key, reply in replies.items():
            source = self.asked.pop(key, None)
            if source is None:
                strays += 1
            else:
                asked = source.arguments if isinstance(source, Answer) and source.turn is not None else None
                self.known.replies[key] = reply_from(reply, asked=asked)
        self._stray(strays)

    def _ping(self) -> None:
        """Ask the node's time. What was posted before goes with it."""
        self._post({"do": "ping", "id": self.pings})
        self.pinged = time.time(), time.monotonic()

    def _read_clock(self, theirs: JsonValue) -> None:
        """Take in the node's time; of a few answers the quickest says it best."""
        sent, sent_at = self.pinged
        half = (time.monotonic() - sent_at) / 2
        best = self.known.clock
        if isinstance(theirs, float) and math.isfinite(theirs) and (best is None or half < best[1]):
            self.known.clock = best = (theirs - (sent + half), half)
            self.known.replies[CLOCK.key] = Reply(Status.OK, value={"offset": best[0], "uncertainty": half})
        self.pings = 0 if best and best[1] < _CLOCK_GOOD_ENOUGH else self.pings - 1
        if self.pings:
            self._ping()

    def _stray(self, count: int) -> None:
        """Count what answers nothing. A node that goes on with it costs the others their time."""
        self.strays += count
        if self.strays > _MOST_STRAYS:
            raise SessionEndedError(Cause.FLOODED, f"it sent {self.strays} messages that answer nothing")

    def _frame(self, most: float = float("inf")) -> object:
        """Return what the next frame holds. The shell around --enter has the last word when all has ended."""
        header = self.lines.exactly(_HEADER, self._left(most))
        if self.script.marker.encode().startswith(header):
            raise self._entered_and_left()
        return unpacked(self.lines.exactly(length_of(header), self._left(most)))

    def _python(self) -> tuple[str, str]:
        """Wait for a python3 to start, and return its version and path."""
        try:
            word, rest = self.lines.first_of(("go", "none", "left"), self._left(self.wanted.connect_timeout))
        except TimeoutError as error:
            if self._left(1.0) <= 0:
                raise self._timed_out("python3 had not started yet") from error
            seconds = f"{self.wanted.connect_timeout:.0f} s"
            raise SessionEndedError(Cause.NO_PYTHON, f"python3 did not start within {seconds}") from error
        except (OSError, EOFError) as error:
            raise self._cut(error) from error
        except NodeFloodsError as error:
            raise SessionEndedError(Cause.FLOODED, str(error)) from error
        if word == "go":
            version, _, path = rest.partition(" ")
            return version, path
        raise self._not_started(word, rest)

    # Why it ended

    def _not_started(self, word: str, rest: str) -> SessionEndedError:
        said = self._complaint()
        if word == "left" and "in" not in self.lines.told:
            ended = f"--enter ended with exit status {rest}"
            return SessionEndedError(Cause.NOT_ENTERED, ended + (said and f": {said}"))
        return SessionEndedError(Cause.NO_PYTHON, said or "no python3 on the PATH, nor where it usually lies")

    def _entered_and_left(self) -> SessionEndedError:
        if self.answered:
            said = self._complaint() or "--enter's command ended before all was answered"
            return SessionEndedError(Cause.CLOSED, said)
        said = "--enter's command passes no standard input on (docker exec wants -i for that)"
        return SessionEndedError(Cause.NOT_ENTERED, said)

    def _no_shell(self, error: Exception) -> SessionEndedError:
        if isinstance(error, NodeFloodsError):
            return SessionEndedError(Cause.FLOODED, str(error))
        if isinstance(error, TimeoutError):
            if self.wanted.deadline - time.monotonic() <= 0:
                return self._timed_out("the login shell had not answered yet")
            said = f"logged in, and the login shell did not answer within {self.wanted.connect_timeout:.0f} s"
            return SessionEndedError(Cause.STALLED, said + self.lines.shown())
        if isinstance(error, EOFError):
            status = self.stream.exit_status(self._left(2.0))
            ended = "the login shell ended at once" + ("" if status is None else f" with exit status {status}")
            words = self._complaint()
            said = ended + (f": {words}" if words else self.lines.shown())
            known = cause_of(words + self.lines.shown())  # an expired password or a missing Slurm job end a shell, too
            return SessionEndedError(known if known in _SAID_BY_PAM else Cause.NO_SHELL, said)
        return SessionEndedError(Cause.CLOSED, f"the connection broke before the shell answered: {error}")

    def _cut(self, error: Exception) -> SessionEndedError:
        said = self._complaint() or str(error) or "it ended before all was answered"
        return SessionEndedError(Cause.CLOSED, said)

    def _timed_out(self, what: str) -> SessionEndedError:
        return SessionEndedError(Cause.DEADLINE, f"the run's deadline came: {what}")

    def _complaint(self) -> str:
        lines = self.stream.stderr().decode("utf-8", "backslashreplace").strip().splitlines()
        return lines[-1][:300] if lines else ""


@lru_cache(maxsize=8)  # every node with a GPU asks for the same text of 330 kB
def _module_frame(name: str, text: str | None) -> bytes:
    frame: bytes = packed({"do": "module", "name": name, "text": text})
    return frame


class SessionEndedError(Exception):
    """The session cannot go on; what was collected stays. `reached`: a shell answered before."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause, self.detail = cause, detail


@dataclass
class Known:
    """What is known of one node so far. The session adds to it as things come, so that nothing is lost by a cut."""

    node: Node
    login: Login | None = None
    greeting: Greeting | None = None
    replies: dict[str, Reply] = field(default_factory=dict)
    clock: tuple[float, float] | None = None

    def evidence(self) -> Evidence:
        offset, uncertainty = self.clock or (None, None)
        login = self.login or Login(reached=False, cause=Cause.DEADLINE, detail="its turn never came")
        return Evidence(
            self.node.name, login, self.greeting, dict(self.replies), offset, uncertainty,
            self.node.places, self.node.slots,
        )  # fmt: skip

    def fail(self, cause: Cause, detail: str, *, fix: str = "") -> None:
        """Note why it went no further. The first cause stands: what follows from it explains less."""
        login = self.login or Login(reached=False)
        if login.cause is None:
            self.login = replace(login, cause=cause, detail=detail, fix=fix or login.fix)


@dataclass(frozen=True)
class Wanted:
    """What one node is needed for, and within what. Times are in seconds; `deadline` is by time.monotonic().

    `agent` tells whether one is needed at all: the shell's greeting costs the node no python.
    """

    nonce: str
    deadline: float
    agent: bool = True
    connect_timeout: float = 15.0
    command_timeout: float = 10.0
    sudo: bool = False
    enter: str | None = None
    environment: Mapping[str, JsonValue] = field(default_factory=dict)  # python, setup, active, avoid: agent/job.py
