"""The side of every rank, rank 0 too: it finds the hub, says who it is, starts its node's agent when asked to, and
waits for the verdict.
"""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.decode import MisfitError
from ncheck.hook.meeting.connection import Connection
from ncheck.hook.meeting.messages import (
    ENDED,
    FOREIGN,
    Alive,
    Came,
    Channel,
    Leave,
    Look,
    Member,
    NotMet,
    Open,
    Outcome,
    Told,
    Wait,
    Welcome,
    read,
)
from ncheck.hook.meeting.ports import connecting
from ncheck.hook.meeting.rules import LONGER
from ncheck.hook.meeting.search import Search
from ncheck.hook.meeting.wire import End
from ncheck.this_machine.process import end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen

    from ncheck.hook.meeting.ports import Place
    from ncheck.rank_variables import Rank

    StartNodePart = Callable[[socket.socket], Popen[bytes]]


class Link:
    """One rank's part in the meeting. `outcome` is set at the end."""

    def __init__(  # noqa: PLR0913, PLR0917  the words of one call
        self,
        own: Member,
        selector: selectors.BaseSelector,
        timeout: float,
        start_node_part: StartNodePart,
        living: Callable[[list[int]], list[int]],
        show: Callable[[Mapping[str, str]], None],
        patience: float = 0.0,
    ) -> None:
        self._living, self._show = living, show
        self._own, self._selector, self._start_node_part = own, selector, start_node_part
        self._timeout, self._deadline = timeout, time.monotonic() + timeout
        self._patient_until = time.monotonic() + patience
        self._calling: Connection | None = None  # the hub of this process
        self._hub: Connection | None = None  # since it proved that it is
        self._sure = False  # the hub is no stranger: the token is secret, or it is a process of this user here
        self._hub_member: Member | None = None  # since it said welcome
        self._channel: tuple[Connection, str] | None = None
        self._child: Popen[bytes] | None = None
        self._token = b""
        self._search: Search | None = None
        self._call_again: Callable[[], socket.socket] | None = None
        self.outcome: Outcome | None = None

    def call(self, sock: socket.socket, token: bytes, call_again: Callable[[], socket.socket]) -> None:
        """Meet the hub of this process."""
        self._token, self._call_again = token, call_again
        self._calling = Connection(self._selector, sock, End(token, hub=False), self)

    def search(self, rank: Rank, token: bytes, place: Place) -> None:
        """Meet the hub of another process."""
        self._token = token
        self._search = Search(rank, token, place, selector=self._selector, deadline=self._deadline, owner=self)

    @property
    def wake(self) -> float:
        return min(self._deadline, self._search.wake) if self._searching and self._search else self._deadline

    @property
    def _searching(self) -> bool:
        return self._search is not None and self._hub is None

    def tick(self) -> None:
        if self.outcome is None and time.monotonic() >= self._deadline:
            if not self._waits_longer():
                self._give_up()
        elif self.outcome is None and self._searching and self._search:
            self._search.tick()

    def close(self) -> None:
        """Close everything and end the node's agent."""
        try:
            for connection in (self._calling, self._hub, self._channel[0] if self._channel else None):
                if connection:
                    connection.close()
            if self._search:
                self._search.close()
        finally:
            if self._child:
                end(self._child)

    def hang_up(self) -> None:
        """Close the connection to the hub; the node's agent may go on."""
        if self._hub:
            self._hub.close()

    def leave(self, kind: str) -> None:
        """Say that this process lives, and goes on without a verdict."""
        if self._hub:
            self._hub.say(Leave(kind))

    def _waits_longer(self) -> bool:
        """Whether rank 0, which was not found, may still come: it has a process on this machine, or the job would be
        stopped because nobody listens where it should be, and it may still start there.
        """
        now = time.monotonic()
        if not self._searching or self._search is None or now >= self._patient_until:
            return False
        lives = bool(self._living([0]))
        if not lives and not self._search.may_start(now):
            return False
        self._deadline += LONGER
        self._search.extend(self._deadline)
        if self._own.rank == 1:  # one of those that wait
            process = ", which has a process on this host" if lives else ""
            self._show({"note": f"still waiting for rank 0{process}: NCHECK_TIMEOUT=SECONDS limits this"})
        return True

    def _give_up(self) -> None:
        if self._hub_member:
            self.leave("overran")
            self._finish(NotMet("overran", f"rank 0 sent no verdict within {self._timeout:.3g} s"))
        elif self._search:
            self._finish(self._search.failure())
        else:
            self._finish(NotMet("overran", f"no verdict within {self._timeout:.3g} s"))

    def _finish(self, outcome: Outcome) -> None:
        """Hang up: the hub waits for that, so that the port is free when it goes on."""
        self.outcome = outcome
        if self._hub:
            self._hub.close()

    # What a Connection calls.

    def proved(self, connection: Connection) -> None:
        if self._channel and connection is self._channel[0]:
            self._start(connection, self._channel[1])
            self._channel = None
        elif self._hub is None:
            self._hub = connection
            self._sure = self._search is None or self._search.trusts(connection)
            if self._search:
                self._search.found(connection)
            remaining = max(0.0, self._deadline - time.monotonic())
            connection.say(Came(self._own, remaining))
        else:
            connection.close()

    def heard(self, connection: Connection, value: object) -> None:
        try:
            message = read(value)
        except MisfitError:
            connection.close()
            self.over(connection, FOREIGN)
            return
        match message:
            case Welcome(member):
                self._hub_member = member
            case Look(ranks):
                connection.say(Alive(tuple(self._living(list(ranks)))))
            case Wait():
                self._deadline = min(self._deadline + LONGER, self._patient_until + self._timeout)
            case Open(ticket):
                self._open_channel(ticket)
            case Told():
                self._finish(message if self._sure else replace(message, ended=()))
            case NotMet():
                self._finish(replace(message, is_error=message.is_error and self._sure))

    def over(self, connection: Connection, reason: str) -> None:
        if self._channel and connection is self._channel[0]:
            self._channel = None
        elif connection is self._hub and self.outcome is None:
            if self._hub_member is None and self._search:
                self._hub = None  # it turned us away, perhaps for want of room: the search goes on
            elif reason == ENDED:
                who = self._hub_member.shown if self._hub_member else "rank 0"
                self._finish(NotMet("ended", f"{who} ended before there was a verdict", is_error=self._sure))
            else:
                self._finish(NotMet("lost", "the connection to rank 0 broke"))

    # The channel of this node's agent.

    def _open_channel(self, ticket: str) -> None:
        if self._channel or self._child or not self._hub:
            return
        try:
            sock = self._call_again() if self._call_again else connecting(*self._hub.peer)
        except OSError:
            return  # the hub goes on without this node's agent, and says so
        self._channel = (Connection(self._selector, sock, End(self._token, hub=False), self), ticket)

    def _start(self, connection: Connection, ticket: str) -> None:
        connection.say(Channel(ticket))
        if connection.unsent:
            connection.close()
            return
        with connection.detach() as sock, suppress(Exception):  # the examiner sees the end of the channel
            self._child = self._start_node_part(sock)
