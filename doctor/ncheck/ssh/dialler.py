"""Many hosts dialled at once, by one thread: a host that is silent costs a descriptor, and no worker."""

from __future__ import annotations

import random
import resource
import selectors
import socket
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh.dial import ATTEMPT_DELAY, GreetedConnection, Race, SockAddress, addresses_of, no_name_server
from ncheck.ssh.failures import FailureError, failed
from ncheck.ssh.login import LoginCause
from ncheck.ssh.target import SshTarget

LOOK_UPS = 16  # of names, at the same time
LONG = 1.0  # seconds after which a look-up is not counted among them: the name server is slow, or hangs
SPARE_FILES = 64  # descriptors that are left to the logins: key files, agents, look-ups

Outcome = GreetedConnection | FailureError | None
"""What comes of a host: its connection, why there is none, or None where it is not to be dialled."""


@dataclass(eq=False)
class _Job:
    """A host that the dialler was given, and how far it came."""

    find: Callable[[], SshTarget | None]
    timeout: float
    begin: Callable[[], float]
    then: Callable[[Outcome], None]
    began: float = 0.0  # when its target and its addresses were first looked for
    looked: float = 0.0  # seconds that this took
    target: SshTarget | None = None
    addresses: list[SockAddress] = field(default_factory=list)

    @property
    def server(self) -> SockAddress:
        return self.addresses[0]


class Dialler:
    """Dials hosts in an order of its own. `width` is how many connections may wait for their login at one server.

    A server drops connections beyond some number (MaxStartups). Where descriptors are few, hosts wait for others.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.posted: deque[Callable[[], None]] = deque()  # by other threads
        self.unknown: list[_Job] = []  # whose addresses are to be looked up
        self.looking: set[_Job] = set()
        self.ready: deque[_Job] = deque()
        self.behind: defaultdict[SockAddress, deque[_Job]] = defaultdict(deque)  # others at their server
        self.racing: dict[Race, _Job] = {}
        self.arrived: dict[GreetedConnection, SockAddress] = {}  # and not logged in yet
        self.at: Counter[SockAddress] = Counter()  # connections without a login
        self.closed = False
        self.selector = selectors.DefaultSelector()
        self.wake, self.woken = socket.socketpair()
        self.wake.setblocking(False)  # noqa: FBT003
        self.woken.setblocking(False)  # noqa: FBT003
        self.selector.register(self.woken, selectors.EVENT_READ)
        threading.Thread(target=self._run, name="dialler", daemon=True).start()

    # From any thread

    def add(
        self,
        find: Callable[[], SshTarget | None],
        timeout: float,
        begin: Callable[[], float],
        then: Callable[[Outcome], None],
    ) -> None:
        """Dial a host, and call `then` once with what comes of it.

        `find` may take its time, and so may the name server: `timeout` seconds. `begin` is called when the first
        address is tried, and returns how many seconds are left; if none are, the host is left alone.
        """
        job = _Job(find, timeout, begin, then)
        self._post(lambda: self.unknown.append(job))

    def logged_in(self, arrival: GreetedConnection) -> None:
        """Note that the login of a connection is over, well or not."""
        self._post(lambda: self._leave(self.arrived.pop(arrival)))

    def close(self) -> None:
        """Stop, and close what has not arrived. `then` may still be called for a moment."""
        self.closed = True
        self._post(lambda: None)

    def _post(self, what: Callable[[], None]) -> None:
        self.posted.append(what)
        with suppress(OSError):  # it is awake already, or closed
            self.wake.send(b".")

    # In its own thread

    def _run(self) -> None:
        try:
            while not self.closed:
                self._turn()
        except Exception as error:  # noqa: BLE001  our fault, and it says so
            why = failed(LoginCause.TRANSPORT, f"{type(error).__name__}: {error}")
            for job in (*self.unknown, *self.looking, *self.ready, *self.racing.values()):
                job.then(why)
        finally:
            for race in self.racing:
                race.drop()
            for resource_ in (self.selector, self.woken, self.wake):
                resource_.close()

    def _turn(self) -> None:
        while self.posted:
            self.posted.popleft()()
        self._look_up()
        self._start()
        for key, _ in self.selector.select(self._idle()):
            if isinstance(key.data, Race):
                key.data.came(key.fileobj)
                self._settle(key.data)
            else:
                with suppress(BlockingIOError):
                    self.woken.recv(4096)
        now = time.monotonic()
        for race in [race for race in self.racing if race.due <= now]:
            race.turn()
            self._settle(race)

    def _idle(self) -> float | None:
        """Return how many seconds there is nothing to do unless something comes."""
        now = time.monotonic()
        due = [*(job.began + job.timeout for job in self.looking), *(race.due for race in self.racing)]
        if self.unknown or self.ready:
            due.append(now + ATTEMPT_DELAY)
        return max(0.0, min(due) - now) if due else None

    def _look_up(self) -> None:
        """Look up names, a few at once. One that takes long keeps no other waiting."""
        now = time.monotonic()
        for job in [job for job in self.looking if now >= job.began + job.timeout]:
            self.looking.discard(job)
            job.then(no_name_server(job.target, job.timeout) if job.target else None)
        able = sum(now < job.began + LONG for job in self.looking)
        while self.unknown and able < LOOK_UPS:
            number = random.randrange(len(self.unknown))  # noqa: S311  no secret
            self.unknown[number], self.unknown[-1] = self.unknown[-1], self.unknown[number]
            job = self.unknown.pop()
            job.began = now
            self.looking.add(job)
            able += 1
            threading.Thread(target=self._find, args=(job,), name="look-up", daemon=True).start()

    def _find(self, job: _Job) -> None:
        """Look for a host's target and its addresses, in a thread of their own."""
        failure: FailureError | None = None
        try:
            job.target = job.find()
            if job.target:
                job.addresses = addresses_of(job.target)
        except FailureError as error:
            failure = error
        except Exception as error:  # noqa: BLE001  our fault, and it says so
            failure = failed(LoginCause.TRANSPORT, f"{type(error).__name__}: {error}")
        self._post(lambda: self._found(job, failure))

    def _found(self, job: _Job, failure: FailureError | None) -> None:
        if job not in self.looking:  # it took too long
            return
        self.looking.discard(job)
        job.looked = time.monotonic() - job.began
        if job.addresses:
            self.ready.append(job)
        else:
            job.then(failure)

    def _start(self) -> None:
        """Dial the hosts that may be dialled now."""
        while self.ready and self._room():
            job = self.ready.popleft()
            if self.at[job.server] >= self.width:
                self.behind[job.server].append(job)
                continue
            seconds = job.begin()
            if seconds > 0:
                assert job.target  # noqa: S101  it has addresses
                race = Race(job.target, job.addresses, max(0.001, seconds - job.looked), self.selector)
                self.racing[race] = job
                self.at[job.server] += 1
                race.turn()
                self._settle(race)

    def _room(self) -> bool:
        """Tell whether there is a descriptor to spare; the last ones are for those that nobody else will make room."""
        if not (self.racing or self.arrived):
            return True
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            with socket.socket() as sock:  # numbers are given from the lowest on
                return limit == resource.RLIM_INFINITY or sock.fileno() < max(limit / 2, limit - SPARE_FILES)
        except OSError:
            return False

    def _settle(self, race: Race) -> None:
        """Hand on what came of a race, if it is over."""
        if race.outcome and (job := self.racing.pop(race, None)):
            if isinstance(race.outcome, GreetedConnection):
                self.arrived[race.outcome] = job.server
            else:
                self._leave(job.server)
            job.then(race.outcome)

    def _leave(self, server: SockAddress) -> None:
        """Note that a server has one connection less to wait for."""
        self.at[server] -= 1
        if self.behind[server]:
            self.ready.append(self.behind[server].popleft())
