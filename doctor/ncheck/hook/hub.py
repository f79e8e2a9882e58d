"""The side of rank 0: it takes attendance, has the nodes examined, and sends every rank the same verdict.

It runs in the job's own process, in one loop with the link of rank 0, and never waits for a single peer.
"""

from __future__ import annotations

import errno
import json
import os
import selectors
import socket
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import IO, TYPE_CHECKING, Any

from ncheck.hook.attendance import Attendance, Member, NotMet, Told, Trouble, member_from
from ncheck.hook.connection import ENDED, MISUSE, Child, Connection
from ncheck.hook.doors import Place, PortsTakenError, listen, open_first, plain
from ncheck.hook.wire import LARGEST_FROM_HUB, End
from ncheck.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen

    from ncheck.hook.launchers import Rank

    StartExaminer = Callable[[Attendance, Mapping[str, socket.socket], float], Popen[bytes]]

_MOST_UNPROVED = 256
_FEWEST_UNPROVED = 16
_TO_PROVE = 3.0  # seconds: a rank needs a round trip
_ACCEPTS = 64  # in a row, before those who are in have their turn
_LEAST_ATTENDANCE = 2.0  # seconds, however little time the ranks that came first have left: they try twice a second
_MASTER_PORT_AFTER = 3.0  # seconds without a rank of another machine
_TO_OPEN_CHANNELS = 5.0
_TO_HANG_UP = 1.0
_MORE_ENTRIES = 64
_LOOK = 0.1  # seconds between two looks at the examiner, whose pipe others may hold
_FULL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_CHUNK = 1 << 20
_LARGEST_REPORT = LARGEST_FROM_HUB // 2
_LOG_KEPT = 4096  # bytes of the examiner's standard error

_ATTENDANCE, _CHANNELS, _EXAMINATION, _TELLING, _DONE = range(5)


class _Peer:
    """Somebody who is connected; a rank once `member` is known."""

    def __init__(self, connection: Connection, address: str, since: float) -> None:
        self.connection, self.address, self.since = connection, address, since
        self.member: Member | None = None
        self.gone = False
        self.left = False  # it said that it goes on without a verdict


class Hub:
    """The meeting of one job. `tick` is called whenever something came, and at `wake` at the latest."""

    def __init__(  # noqa: PLR0913  the words of one call
        self,
        *,
        rank: Rank,
        own: Member,
        token: bytes,
        place: Place,
        selector: selectors.BaseSelector,
        timeout: float,
        start_examiner: StartExaminer,
    ) -> None:
        self._rank, self._own, self._token, self._place, self._selector = rank, own, token, place, selector
        self._timeout, self._start_examiner = timeout, start_examiner
        self._opened = time.monotonic()
        self._deadline = self._opened + timeout  # the earliest of all ranks that came
        self._until = 0.0  # the end of the stage, from the second one on
        self._stage = _ATTENDANCE
        self._listeners: list[socket.socket] = []
        self._pausing = 0.0  # no file descriptor is left: until when nobody is accepted
        self._doors: list[int] = []
        self._peers: dict[Connection, _Peer] = {}  # in the order in which they came
        self._by_rank: dict[int, _Peer] = {}
        self._extras: list[_Peer] = []  # duplicates, and ranks that this job does not have
        self._late: list[_Peer] = []  # came when the attendance was taken
        self._troubles: list[Trouble] = []
        self._ended_later: list[Member] = []
        self._tickets: dict[str, str] = {}  # of a leader's agent channel -> its machine
        self._channels: dict[str, socket.socket] = {}
        self._reached_at = ""  # this host's address that ranks of other machines were seen to reach
        self._remote_came = False
        self._entries = 0
        self._examiner: Child | None = None
        self._result = bytearray()
        self._log = bytearray()
        self._pipes: dict[IO[bytes], bytearray] = {}
        self._most_unproved = _MOST_UNPROVED
        self._seconds = 0.0  # that the examiner has
        self._hang_up = 0.0  # when to wait no longer for ranks that were told
        self._news = b""

    # What runs the hub.

    def limit_files(self, free: int) -> None:
        """Keep strangers from taking the file descriptors that the ranks need."""
        self._most_unproved = min(_MOST_UNPROVED, max(_FEWEST_UNPROVED, free - self._rank.size))

    def adopt(self, sock: socket.socket, address: str) -> None:
        """Take in somebody who connected."""
        sock.setblocking(False)  # noqa: FBT003
        connection = Connection(self._selector, sock, End(self._token, hub=True), self)
        self._peers[connection] = _Peer(connection, address, time.monotonic())

    @property
    def done(self) -> bool:
        return self._stage == _DONE

    @property
    def wake(self) -> float:
        """When to call `tick` if nothing comes."""
        times = [self._pausing] if self._pausing else []
        oldest = next((peer.since + _TO_PROVE for peer in self._peers.values() if peer.member is None), None)
        if oldest is not None:
            times.append(oldest)
        if self._stage == _ATTENDANCE:
            times.append(self._attendance_ends)
            if self._wants_master_port:
                times.append(self._master_port_at)
        elif self._stage == _CHANNELS:
            times.append(self._until)
        elif self._stage == _EXAMINATION:
            times += [self._until, time.monotonic() + _LOOK]
        else:
            times.append(self._until if self._unsent else self._hang_up)
        return min(times)

    def tick(self) -> None:
        now = time.monotonic()
        self._resume(now)
        self._drop_slow(now)
        if self._stage == _ATTENDANCE:
            self._open_master_port(now)
            if self._all_came or now >= self._attendance_ends:
                self._ask_for_channels(now)
        if self._stage == _CHANNELS and (not self._tickets or now >= self._until):
            self._examine(now)
        if self._stage == _EXAMINATION:
            self._look_at_examiner(now)
        if self._stage == _TELLING and (not self._ranks or now >= (self._until if self._unsent else self._hang_up)):
            self._stage = _DONE

    def close(self) -> None:
        """Close everything and end the examiner."""
        try:
            for connection in list(self._peers):
                connection.close()
            self._peers.clear()
            for sock in (*self._listeners, *self._channels.values()):
                self._forget(sock)
                sock.close()
        finally:
            for pipe in self._pipes:
                self._forget(pipe)
            if self._examiner:
                self._examiner.end()

    def break_off(self, outcome: NotMet) -> None:
        """Tell the ranks why there will be no verdict, as far as that can be done without waiting."""
        if self._stage < _TELLING:
            self._tell_not_met(outcome)

    # Doors.

    def _open(self) -> None:
        """Open the first free port, now that rank 0 itself is there: nobody else can come before it."""
        if self._rank.size > 1:
            try:
                self._listen(open_first(self._place.ports))
            except PortsTakenError as error:
                self._tell_not_met(NotMet("ports", f"ncheck could open no port for the other ranks: {error}"))

    def _listen(self, listener: socket.socket) -> None:
        self._listeners.append(listener)
        self._doors.append(listener.getsockname()[1])
        self._selector.register(listener, selectors.EVENT_READ, lambda _: self._accept(listener))

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTS):
            try:
                sock, address = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _FULL:
                    self._make_room()
                    return
                continue  # that one hung up before it was accepted
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            strangers = [peer for peer in self._peers.values() if peer.member is None]
            if len(strangers) >= self._most_unproved:
                self._drop(strangers[0])
            self.adopt(sock, plain(str(address[0])))

    def _make_room(self) -> None:
        """No file descriptor is left: end the oldest stranger, or accept nobody for a moment."""
        stranger = next((peer for peer in self._peers.values() if peer.member is None), None)
        if stranger:
            self._drop(stranger)
            return
        self._pausing = time.monotonic() + _LOOK
        for listener in self._listeners:
            self._forget(listener)

    def _resume(self, now: float) -> None:
        if self._pausing and now >= self._pausing:
            self._pausing = 0.0
            listeners, self._listeners, self._doors = self._listeners, [], []
            for listener in listeners:
                self._listen(listener)

    def _drop(self, peer: _Peer) -> None:
        del self._peers[peer.connection]
        peer.connection.close()

    def _drop_slow(self, now: float) -> None:
        for peer in [peer for peer in self._peers.values() if peer.member is None and now >= peer.since + _TO_PROVE]:
            self._drop(peer)

    @property
    def _wants_master_port(self) -> bool:
        port = self._place.master_port
        local = self._rank.local_size == self._rank.size or self._rank.nodes == 1
        return port is not None and not local and not self._remote_came and port not in self._doors

    @property
    def _master_port_at(self) -> float:
        return self._opened + min(_MASTER_PORT_AFTER, self._timeout / 6)

    def _open_master_port(self, now: float) -> None:
        """Open the job's own port too, where nobody came by the others: a firewall may let only that one through."""
        port = self._place.master_port
        if port is not None and self._wants_master_port and now >= self._master_port_at:
            self._place = replace(self._place, master_port=None)  # once is enough
            with suppress(OSError):  # the launcher's own store has it
                self._listen(listen(port))

    def _forget(self, file: Any) -> None:  # noqa: ANN401  whatever a selector takes
        with suppress(KeyError, ValueError, OSError):
            self._selector.unregister(file)

    # Attendance.

    @property
    def _ranks(self) -> list[_Peer]:
        """All who are to be told."""
        return [peer for peer in self._peers.values() if peer.member is not None]

    @property
    def _all_came(self) -> bool:
        return len(self._by_rank) + len(self._extras) >= self._rank.size

    @property
    def _attendance_ends(self) -> float:
        spare = min(5.0, self._timeout / 4)
        return max(self._opened + min(_LEAST_ATTENDANCE, self._timeout / 2), self._deadline - spare)

    @property
    def _verdict_due(self) -> float:
        return self._deadline - min(1.0, self._timeout / 10)

    def proved(self, connection: Connection) -> None:
        """Part of what a Connection calls: the hello follows."""

    def heard(self, connection: Connection, message: object) -> None:
        peer = self._peers[connection]
        what = message.get("what") if isinstance(message, dict) else None
        try:
            if not isinstance(message, dict):
                raise ValueError("no message")  # noqa: TRY004, TRY301
            if peer.member is not None:
                if what == "leave":
                    self._leave(peer, peer.member, message.get("kind"))
            elif what == "rank":
                self._enter(peer, member_from(message.get("member"), peer.address), message.get("seconds"))
            elif what == "channel":
                self._keep_channel(peer, str(message.get("ticket")))
        except ValueError:
            connection.close()
            self.over(connection, MISUSE)

    def _enter(self, peer: _Peer, member: Member, seconds: object) -> None:
        self._entries += 1
        if self._entries > 2 * self._rank.size + _MORE_ENTRIES:
            raise ValueError("many more ranks than there are")
        if not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:  # noqa: PLR2004
            raise ValueError("no time")
        peer.member = member
        self._register(peer, member)
        if self._stage == _ATTENDANCE:
            self._deadline = min(self._deadline, time.monotonic() + float(seconds))
        peer.connection.say({"what": "welcome", "member": asdict(self._own)})
        if self._stage >= _TELLING:
            peer.connection.say_text(self._news)
        if peer.address:
            self._see_address(peer, member)
        else:
            self._open()

    def _register(self, peer: _Peer, member: Member) -> None:
        if member.size != self._rank.size:
            words = f"{member.shown} has WORLD_SIZE {member.size}, and {self._own.shown} has {self._rank.size}"
            self._troubles.append(Trouble("world-size", (member.rank,), words))
        first = self._by_rank.get(member.rank)
        if first and first.member:
            words = f"rank {member.rank} came twice: {first.member.shown} and {member.shown}"
            self._troubles.append(Trouble("duplicate-rank", (member.rank,), words))
        if self._stage != _ATTENDANCE:
            self._late.append(peer)
        elif first or member.rank >= self._rank.size:
            self._extras.append(peer)
        else:
            self._by_rank[member.rank] = peer

    def _see_address(self, peer: _Peer, member: Member) -> None:
        remote = member.machine != self._own.machine
        if remote or not self._reached_at:
            with suppress(OSError):
                self._reached_at = plain(peer.connection.own_address)
        self._remote_came = self._remote_came or remote

    def _leave(self, peer: _Peer, member: Member, kind: object) -> None:
        """Let a rank go on with its job. If its time was over, it goes on without a verdict, and so do all."""
        peer.left = True
        if kind == "overran" and self._stage < _TELLING:
            self._tell_not_met(NotMet("overran", f"the time of {member.shown} was over before there was a verdict"))

    def over(self, connection: Connection, reason: str) -> None:
        peer = self._peers.pop(connection, None)
        if peer is None or peer.member is None:
            return
        peer.gone = True
        if peer.left or self._stage >= _TELLING:
            return
        if reason == ENDED:
            if self._stage >= _EXAMINATION or peer in self._late:
                self._ended_later.append(peer.member)
        elif reason == MISUSE:
            words = f"{peer.member.shown} sent what ncheck does not send"
            self._troubles.append(Trouble("misuse", (peer.member.rank,), words))
        else:
            words = f"the connection to {peer.member.shown} broke"
            self._troubles.append(Trouble("lost", (peer.member.rank,), words))

    def _attendance(self) -> Attendance:
        members = [(rank, peer) for rank, peer in sorted(self._by_rank.items()) if peer.member]
        troubled = {rank for trouble in self._troubles if trouble.kind in {"misuse", "lost"} for rank in trouble.ranks}
        return Attendance(
            members=tuple(self._placed(peer.member) for _, peer in members if peer.member),
            missing=tuple(rank for rank in range(self._rank.size) if rank not in self._by_rank),
            ended=tuple(rank for rank, peer in members if peer.gone and not peer.left and rank not in troubled),
            problems=tuple(self._troubles),
            remote_came=self._remote_came,
            doors=tuple(self._doors),
            evidence=self._evidence(),
        )

    def _placed(self, member: Member) -> Member:
        """Give the ranks of this host the address that others were seen to reach."""
        here = member.machine == self._own.machine
        return replace(member, address=self._reached_at) if here and self._reached_at else member

    def _evidence(self) -> str:
        if self._rank.local_size == self._rank.size or self._rank.nodes == 1:
            return "one-machine"
        if self._remote_came:
            return "remote-came"
        return "master-port-open" if self._rank.master_port in self._doors else ""

    # Channels to the nodes' agents.

    def _ask_for_channels(self, now: float) -> None:
        self._stage, self._until = _CHANNELS, now + min(_TO_OPEN_CHANNELS, max(0.0, self._verdict_due - now) / 3)
        leaders: dict[str, _Peer] = {}
        for _, peer in sorted(self._by_rank.items()):
            if peer.member and not peer.gone:
                leaders.setdefault(peer.member.machine, peer)
        for machine, peer in leaders.items():
            ticket = os.urandom(16).hex()
            self._tickets[ticket] = machine
            peer.connection.say({"what": "open", "ticket": ticket})

    def _keep_channel(self, peer: _Peer, ticket: str) -> None:
        machine = self._tickets.pop(ticket, None)
        if machine is None or self._stage != _CHANNELS:
            raise ValueError("no such channel")
        del self._peers[peer.connection]
        self._channels[machine] = peer.connection.detach()

    # Examination.

    def _examine(self, now: float) -> None:
        self._tickets.clear()
        self._stage, self._until = _EXAMINATION, self._verdict_due
        self._seconds = max(0.0, self._until - now)
        try:
            process = self._start_examiner(self._attendance(), dict(self._channels), self._seconds)
        except Exception as error:  # noqa: BLE001  whatever it is, the job is to go on
            self._tell_not_met(NotMet("crashed", f"the checks could not be started: {_words(error)}"))
            return
        finally:
            for sock in self._channels.values():
                sock.close()
            self._channels.clear()
        self._examiner = Child(process)
        for pipe, kept in ((process.stdout, self._result), (process.stderr, self._log)):
            if pipe:
                os.set_blocking(pipe.fileno(), False)
                self._pipes[pipe] = kept
                self._selector.register(pipe, selectors.EVENT_READ, lambda _, pipe=pipe: self._read_pipe(pipe))

    def _read_pipe(self, pipe: IO[bytes]) -> None:
        """Take what the examiner wrote: a line of JSON is its report, whoever holds the pipe after that."""
        if self._stage != _EXAMINATION:
            return
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            self._forget(pipe)
        kept = self._pipes[pipe]
        kept += data
        if kept is self._log:
            del kept[:-_LOG_KEPT]
        elif b"\n" in data:
            self._take_verdict(bytes(kept.partition(b"\n")[0]))
        elif len(kept) > _LARGEST_REPORT:
            self._tell_not_met(NotMet("crashed", "the checks wrote too long a report"))

    def _take_verdict(self, line: bytes) -> None:
        try:
            verdict = json.loads(line)
        except (ValueError, RecursionError):
            verdict = None
        if isinstance(verdict, dict):
            self._tell(Told(verdict, tuple(self._ended_later)))
        else:
            self._tell_not_met(NotMet("crashed", "the checks wrote no report"))

    def _look_at_examiner(self, now: float) -> None:
        if self._examiner and self._examiner.is_over:
            for pipe in self._pipes:
                self._read_pipe(pipe)
            if self._stage == _EXAMINATION:
                self._tell_not_met(NotMet("crashed", "the checks ended without a report" + self._last_words()))
        elif now >= self._until:
            self._tell_not_met(NotMet("overran", f"the checks took more than {self._seconds:.3g} s"))

    def _last_words(self) -> str:
        lines = self._log.decode("utf-8", "replace").strip().splitlines()
        return f": {printable(lines[-1].strip(), 300)}" if lines else ""

    # Telling.

    @property
    def _unsent(self) -> bool:
        return any(peer.connection.unsent for peer in self._ranks)

    def _tell(self, told: Told) -> None:
        self._send_all({"what": "verdict", "verdict": told.verdict, "ended": [asdict(one) for one in told.ended]})

    def _tell_not_met(self, outcome: NotMet) -> None:
        self._send_all({"what": "no verdict", **asdict(outcome)})

    def _send_all(self, news: dict[str, object]) -> None:
        self._stage = _TELLING
        self._hang_up = time.monotonic() + _TO_HANG_UP
        self._until = max(self._hang_up, self._deadline)
        self._news = json.dumps(news).encode()
        for peer in self._ranks:
            peer.connection.say_text(self._news)


def _words(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {error}", 300)
