"""The side of rank 0: it takes attendance, starts the examination of the nodes, and sends every rank the same verdict.

It runs in the job's own process, in one loop with the link of rank 0, and never blocks on a single peer.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ncheck.hook.meeting.attendance import Attendance, Member, NotMet, Trouble, member_from, not_met_from
from ncheck.hook.meeting.connection import ENDED, MISUSE, Connection
from ncheck.hook.meeting.examination import Examination
from ncheck.hook.meeting.gate import Gate
from ncheck.hook.meeting.link import LONGER
from ncheck.hook.meeting.peer_user import is_other
from ncheck.hook.meeting.ports import Place, PortsTakenError, is_taken, listen, one_machine, open_first, plain
from ncheck.hook.meeting.rules import Double, certain, contradictions, may_come, other_job, size_text
from ncheck.hook.meeting.search import connecting
from ncheck.hook.meeting.wire import End
from ncheck.hook.neighbours import other_listener
from ncheck.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen

    from ncheck.rank_variables import Rank

    StartExaminer = Callable[[Attendance, Mapping[str, socket.socket], float], Popen[bytes]]

_LEAST_ATTENDANCE = 2.0  # seconds, even if the first ranks have less time left: ranks try twice a second
_MASTER_PORT_AFTER = 3.0  # seconds: ranks that started together and can use our port have connected by then
_TO_OPEN_CHANNELS = 5.0
_TO_HANG_UP = 1.0
_TO_SETTLE = 2.0  # as many processes as ranks connected, but not one of each rank: wait for others
_TO_LOOK = 1.0
_MOST_LOOKED_FOR = 1000  # ranks in a message
_MORE_ENTRIES = 64
_SHOWN = 8  # ranks in a message
_OTHER_FILES = 24  # for the hub and its children, in addition to one for each rank

_ATTENDANCE, _CHANNELS, _EXAMINATION, _SENDING, _DONE = range(5)


class _Peer:
    """A rank that connected, and its connection."""

    def __init__(self, connection: Connection, member: Member) -> None:
        self.connection, self.member = connection, member
        self.ended = False
        self.left = False  # it continues without a verdict, and sent a message about that
        self.sure = False  # no stranger: the token is secret, or it is a process of this user on this machine


class _Rival:
    """The owner of a port that is ours by the token: another job with the same id, or any other process.

    Where it is rank 0 of another job of this user, this rank 0 comes to it as a rank, and all ranks of both jobs get
    its verdict: `follow(message)`.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        port: int,
        token: bytes,
        own: Mapping[str, object],
        follow: Callable[[Mapping[str, object]], None],
    ) -> None:
        self._own, self._follow = own, follow
        self.other: Member | None = None  # rank 0 of another job of this user, since it said welcome
        self.leads = False  # it is there, and a verdict is to come
        self.is_stranger = False  # it knows the token, and belongs to another user
        self._connection: Connection | None = None
        with suppress(OSError):
            sock = connecting(socket.AF_INET, ("127.0.0.1", port))
            self._connection = Connection(selector, sock, End(token, hub=False), self)

    def close(self) -> None:
        if self._connection:
            self._connection.close()

    def proved(self, connection: Connection) -> None:
        self.is_stranger = is_other(connection.user)
        if self.is_stranger:
            connection.close()
        else:
            connection.say(self._own)

    def heard(self, connection: Connection, message: object) -> None:
        try:
            if isinstance(message, dict) and message.get("what") == "welcome":
                self.other, self.leads = member_from(message.get("member"), ""), True
            elif isinstance(message, dict) and message.get("what") in ("verdict", "no verdict"):
                self._follow(message)
        except ValueError:
            connection.close()
            self.leads = False

    def over(self, connection: Connection, reason: str) -> None:  # noqa: ARG002
        self.leads = False


class Hub:
    """The meeting of one job. `tick` is called after each message, and at `wake` at the latest.

    `room` is how many more files this process may open.
    """

    def __init__(  # noqa: PLR0913  the arguments of one call
        self,
        rank: Rank,
        own: Member,
        *,
        token: bytes,
        place: Place,
        selector: selectors.BaseSelector,
        timeout: float,
        room: int,
        start_examiner: StartExaminer,
        show: Callable[[Mapping[str, Any]], None],
        patience: float = 0.0,
        inherited: bool = False,
    ) -> None:
        self._inherited = inherited  # this process may be none of the job's: a rank has started it
        self._rank, self._own, self._place, self._selector = rank, own, place, selector
        self._timeout, self._room = timeout, room
        self._start_examiner, self._show = start_examiner, show
        self._opened = time.monotonic()
        self._patient_until = self._opened + patience
        self._look: tuple[float, set[_Peer]] | None = (
            None  # the search for processes of missing ranks: its end, its peers
        )
        self._alive: set[int] = set()  # missing ranks that have a process
        self._deadline = self._opened + timeout  # the earliest of all connected ranks
        self._until = 0.0  # the end of the stage, from the second stage on
        self._stage = _ATTENDANCE
        self._token = token
        self._rivals: list[_Rival] = []
        self._followed = False  # the verdict is one of them's
        files = room - rank.size - _OTHER_FILES
        self._gate = Gate(selector, token, self._introduce, files, secret=rank.secret)
        self._peers: dict[Connection, _Peer] = {}  # all that get the verdict
        self._by_rank: dict[int, _Peer] = {}  # the attendance
        self._extras = 0  # duplicates, and ranks that this job does not have
        self._entries, self._entered = 0, 0.0  # how many ranks connected, and when the last one did
        self._taken = False  # the attendance
        self._troubles: list[Trouble] = []
        self._doubts: list[Trouble] = []  # problems reported by processes that may be strangers
        self._doubles: list[Double] = []
        self._doubted: set[int] = set()  # ranks that several processes claim, one of which may be a stranger
        self._late: list[Double] = []  # such claims during the examination, and other sizes
        self._late_troubles: list[Trouble] = []
        self._late_doubts: list[Trouble] = []
        self._unwell: set[int] = set()  # ranks whose process ended or has another size, and may be a stranger
        self._shortened = False  # a process that may be a stranger made the attendance shorter
        self._ended_later: list[Member] = []
        self._machines: dict[str, list[_Peer]] = {}  # the connected ranks, the lowest last
        self._tickets: dict[str, _Peer] = {}  # the ranks that are asked to open the channel of their node
        self._channels: dict[str, socket.socket] = {}
        self._reached_at = ""  # this host's address that ranks of other machines have reached
        self._master_port_tried = False
        self._examination: Examination | None = None
        self._result: dict[str, Any] | NotMet | None = None
        self._news = b""

    # The loop calls these.

    def accept(self, sock: socket.socket) -> None:
        """Add rank 0 itself, by a socket pair."""
        self._gate.accept(sock, "")

    @property
    def done(self) -> bool:
        return self._stage == _DONE

    @property
    def wake(self) -> float:
        """When to call `tick` if there is no message."""
        times = [self._gate.wake]
        if self._stage == _ATTENDANCE:
            times.append(self._look[0] if self._look else self._attendance_ends)
            if self._wants_master_port:
                times.append(self._master_port_at)
        elif self._stage == _EXAMINATION and self._examination:
            times.append(self._examination.wake if self._result is None else 0.0)
        elif self._stage == _SENDING and not self._peers:
            times.append(self._attendance_ends)
        else:
            times.append(self._until)
        return min(times)

    def tick(self) -> None:
        now = time.monotonic()
        self._gate.tick(now)
        if self._stage == _ATTENDANCE:
            if self._wants_master_port and now >= self._master_port_at:
                self._open_master_port()
            if (self._all_came and not self._is_led) or (now >= self._attendance_ends and not self._waits_longer(now)):
                self._take_attendance(now)
        if self._stage == _CHANNELS and (not self._tickets or now >= self._until):
            self._examine()
        if self._stage == _EXAMINATION and self._examination:
            self._conclude(self._result)  # of the last tick: ranks that ended before it are known by now
            self._examination.tick(now)
            self._result = self._examination.result
        if self._stage == _SENDING and self._all_sent(now):
            self._stage = _DONE

    def close(self) -> None:
        """Close everything and end the examiner."""
        try:
            for connection in self._peers:
                connection.close()
            for rival in self._rivals:
                rival.close()
            self._gate.close()
            for sock in self._channels.values():
                sock.close()
        finally:
            if self._examination:
                self._examination.close()

    def break_off(self, outcome: NotMet) -> None:
        """Send the ranks why there will be no verdict, as far as possible without waiting."""
        self._conclude(outcome)

    # Ports

    def _open(self) -> None:
        """Open the first free port, after rank 0 itself has connected: so it is always the first."""
        if self._rank.size == 1:
            return
        if self._room < self._rank.size + _OTHER_FILES:
            text = f"rank 0 can open {self._room} more files, too few for {self._rank.size} ranks: raise ulimit -n"
            self._conclude(NotMet("files", text))
        try:
            listener = open_first(self._place.ports)
            self._gate.listen(listener)
            taken = self._place.ports[: self._place.ports.index(listener.getsockname()[1])]
            seconds = max(0.0, self._deadline - time.monotonic())
            own = {"what": "rank", "member": asdict(self._own), "seconds": seconds}
            self._rivals = [_Rival(self._selector, port, self._token, own, self._follow) for port in taken]
        except PortsTakenError as error:
            self._conclude(NotMet("ports", f"ncheck could open no port for the other ranks: {error}"))

    @property
    def _wants_master_port(self) -> bool:
        """Whether to open the job's own port too: a firewall may allow only that one.

        Also, ranks with another token know no other port of this job: so they are noticed.
        """
        return self._place.master_port is not None and not one_machine(self._rank) and not self._master_port_tried

    @property
    def _master_port_at(self) -> float:
        return self._opened + min(_MASTER_PORT_AFTER, self._timeout / 6)

    def _open_master_port(self) -> None:
        self._master_port_tried = True
        with suppress(OSError):  # the launcher's own store uses it
            self._gate.listen(listen(self._place.master_port or 0))

    # Attendance

    @property
    def _all_came(self) -> bool:
        """Whether all ranks are there. A rank whose place a stranger may have may still connect."""
        return len(self._by_rank) - len(self._unwell) == self._rank.size

    def _is_well(self, peer: _Peer) -> bool:
        return not peer.ended and peer.member.size == self._rank.size

    def _see_whether_well(self, peer: _Peer) -> None:
        if peer.sure or self._is_well(peer):
            self._unwell.discard(peer.member.rank)
        elif self._by_rank.get(peer.member.rank) is peer:
            self._unwell.add(peer.member.rank)

    @property
    def _is_led(self) -> bool:
        """Whether another job meets here, whose rank 0 gives the verdict."""
        return any(rival.leads for rival in self._rivals)

    @property
    def _attendance_ends(self) -> float:
        if self._is_led:
            return self._verdict_due
        spare = min(5.0, self._timeout / 4)
        ends = max(self._opened + min(_LEAST_ATTENDANCE, self._timeout / 2), self._deadline - spare)
        if len(self._by_rank) - len(self._unwell) + self._extras >= self._rank.size:  # one has the place of another
            return min(ends, self._entered + _TO_SETTLE)
        if len(self._by_rank) == self._rank.size:  # perhaps a stranger has the place of one, which still has some time
            return min(ends, max(self._entered + _TO_SETTLE, self._opened + self._timeout / 3))
        return ends

    def _waits_longer(self, now: float) -> bool:
        """Whether the missing ranks may still connect, after a look for their processes on the nodes of the others."""
        if now >= self._patient_until or self._is_led:
            return False
        if self._look is None:
            missing, leaders = self._missing(), dict[str, _Peer]()
            for peer in self._peers.values():
                leaders.setdefault(peer.member.machine, peer)
            self._alive.clear()
            self._look = now + _TO_LOOK, set(leaders.values())
            for peer in leaders.values():
                peer.connection.say({"what": "look", "ranks": missing[:_MOST_LOOKED_FOR]})
            return True
        until, looking = self._look
        if looking and now < until:
            return True
        self._look, missing = None, self._missing()
        if not may_come(self._rank, self._attendance(), self._alive, now - self._opened):
            return False
        self._deadline += LONGER
        for peer in self._peers.values():
            peer.connection.say({"what": "wait"})
        ranks = ", ".join(f"rank {number}{self._where(number)}" for number in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        seconds = f"{now - self._opened:.0f} s"
        self._show({"note": f"still waiting for {ranks}{more}, since {seconds}: NCHECK_TIMEOUT=SECONDS limits this"})
        return True

    def _missing(self) -> list[int]:
        return [number for number in range(self._rank.size) if number not in self._by_rank]

    @property
    def _verdict_due(self) -> float:
        return self._deadline - min(1.0, self._timeout / 10)

    def _introduce(self, connection: Connection, address: str, message: object) -> None:
        """Accept a connection that has proved to be of this job: a rank, or the channel of a node's agent."""
        try:
            if not isinstance(message, dict):
                raise ValueError("no message")  # noqa: TRY004, TRY301
            if message.get("what") == "channel":
                self._keep_channel(connection, str(message.get("ticket")))
            else:
                self._enter(connection, member_from(message.get("member"), address), message.get("seconds"))
        except ValueError:
            connection.close()

    def _enter(self, connection: Connection, member: Member, seconds: object) -> None:
        self._entries += 1
        if self._entries > 2 * self._rank.size + _MORE_ENTRIES:
            raise ValueError("many more ranks than there are")
        if not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:  # noqa: PLR2004
            raise ValueError("no time")
        earlier = self._by_rank.get(member.rank)
        same = earlier and (earlier.member.pid, earlier.member.machine) == (member.pid, member.machine)
        if earlier and self._stage >= _SENDING and (same or member.rank != 0):
            raise ValueError(
                "it has the verdict and has started a program since, or is of another job: both meet later"
            )
        self._entered = time.monotonic()
        peer = self._peers[connection] = _Peer(connection, member)
        peer.sure = self._rank.secret or connection.user is not None
        connection.hand_to(self)
        if not self._taken:
            self._register(peer)
            self._shorten(self._entered + seconds, sure=peer.sure)
        else:
            self._come_late(peer, None if same else earlier)
        connection.say({"what": "welcome", "member": asdict(self._own)})
        if self._stage >= _SENDING and member.rank == 0:  # of another job, which meets alone, and says so
            del self._peers[connection]
            connection.close()
        elif self._stage >= _SENDING:
            self._send([peer])
        if member.address:
            self._see_address(connection, member)
        else:
            self._open()

    def _come_late(self, peer: _Peer, earlier: _Peer | None) -> None:
        """Note what is wrong with a rank that comes while the nodes are examined."""
        if earlier and not earlier.ended:
            self._late.append(Double(earlier.member, peer.member, peer.sure and earlier.sure))
        if peer.member.size != self._rank.size:
            trouble = Trouble("world-size", (peer.member.rank,), size_text(peer.member, self._own))
            (self._late_troubles if peer.sure else self._late_doubts).append(trouble)

    def _late_problems(self) -> list[Trouble]:
        doubted = contradictions(self._late, self._late_doubts, self._meets_at, incomplete=False)
        return [*self._late_troubles, *doubted]

    @property
    def _meets_at(self) -> str:
        port = self._rank.master_port
        return f"{self._rank.master}:{port}" if self._rank.master and port else "the same place"

    def _shorten(self, deadline: float, *, sure: bool) -> None:
        """End in time for a rank. One that may be a stranger leaves the others enough time to connect."""
        if not sure:
            deadline = max(deadline, self._opened + self._timeout / 3)
            self._shortened = self._shortened or deadline < self._opened + self._timeout * 2 / 3
        self._deadline = min(self._deadline, deadline)

    def _register(self, peer: _Peer) -> None:
        member = peer.member
        first = self._by_rank.get(member.rank)
        if member.rank < self._rank.size and (first is None or self._gives_way(first, peer)):
            self._by_rank[member.rank] = peer
            self._see_whether_well(peer)
        else:
            self._extras += peer.sure
        if first and not first.ended:
            double = Double(first.member, member, peer.sure and first.sure)
            self._doubles.append(double)
            self._doubted |= set() if double.sure else {member.rank}
        if member.size != self._rank.size:
            trouble = Trouble("world-size", (member.rank,), size_text(member, self._own))
            (self._troubles if peer.sure else self._doubts).append(trouble)

    def _gives_way(self, first: _Peer, later: _Peer) -> bool:
        """Whether the later process of a rank replaces the first: that one ended, or may be a stranger."""
        return first.ended or (not first.sure and (later.sure or (self._is_well(later) and not self._is_well(first))))

    def _give_place(self, gone: _Peer) -> None:
        """Replace a process that left and may have been a stranger by another one of the same rank, connected or yet
        to connect: what it said counts no more. If one process remains, that is the rank.
        """
        rank = gone.member.rank
        others = [peer for peer in self._peers.values() if peer.member.rank == rank]
        if rank in self._doubted and len(others) <= 1:
            self._doubted.discard(rank)
            self._doubles = [double for double in self._doubles if double.sure or double.later.rank != rank]
        if self._by_rank.get(rank) is not gone:
            return
        if others:
            self._by_rank[rank] = others[0]
            self._see_whether_well(others[0])
        else:
            del self._by_rank[rank]
            self._unwell.discard(rank)
            self._doubts = [doubt for doubt in self._doubts if doubt.ranks != (rank,)]
        if self._stage == _CHANNELS:  # the attendance was taken with the one that left
            self._stage = _ATTENDANCE

    @property
    def _remote_came(self) -> bool:
        """Whether a rank of another machine is here, or was and is known to be no stranger."""
        return any(peer.member.machine != self._own.machine for peer in self._by_rank.values())

    def _see_address(self, connection: Connection, member: Member) -> None:
        remote = member.machine != self._own.machine
        if remote or not self._reached_at:
            self._reached_at = plain(connection.own_address)

    # The connections of ranks call these.

    def proved(self, connection: Connection) -> None:
        """Do nothing: the gate has checked it."""

    def heard(self, connection: Connection, message: object) -> None:
        """Handle a rank that continues without a verdict (if its time was over, all do), or a list of living ranks."""
        peer = self._peers[connection]
        if isinstance(message, dict) and message.get("what") == "alive" and self._look:
            ranks = message.get("ranks")
            self._alive.update(number for number in ranks if isinstance(number, int)) if isinstance(
                ranks, list
            ) else None
            self._look[1].discard(peer)
        elif isinstance(message, dict) and message.get("what") == "leave":
            peer.left = True
            if message.get("kind") == "overran" and peer.sure:
                text = f"the time of {peer.member.shown} was over before there was a verdict"
                self._conclude(NotMet("overran", text))

    def over(self, connection: Connection, reason: str) -> None:
        peer = self._peers.pop(connection)
        if self._look:
            self._look[1].discard(peer)
        for ticket in [ticket for ticket, leader in self._tickets.items() if leader is peer]:
            del self._tickets[ticket]
            self._ask_for_channel(peer.member.machine)
        if peer.left or self._stage >= _SENDING:
            return
        if reason == ENDED:
            peer.ended = True
            self._see_whether_well(peer)
            if self._taken and peer.sure:
                self._ended_later.append(peer.member)
            elif not self._taken and not peer.sure:
                self._give_place(peer)
            return
        misuse = reason == MISUSE
        text = "sent what ncheck does not send" if misuse else "lost its connection to rank 0"
        trouble = Trouble("misuse" if misuse else "lost", (peer.member.rank,), f"{peer.member.shown} {text}")
        self._troubles.append(trouble)

    # Channels to the nodes' agents

    def _take_attendance(self, now: float) -> None:
        self._stage, self._until = _CHANNELS, now + min(_TO_OPEN_CHANNELS, max(0.0, self._verdict_due - now) / 3)
        self._machines.clear()  # it may be the second time
        self._tickets.clear()
        for number, peer in sorted(self._by_rank.items(), reverse=True):
            if number in self._doubted and not peer.sure:
                continue  # it may be a stranger, so its machine is not used
            self._machines.setdefault(peer.member.machine, []).append(peer)
        for machine in self._machines:
            if machine not in self._channels:
                self._ask_for_channel(machine)

    def _ask_for_channel(self, machine: str) -> None:
        """Ask the lowest connected rank of a machine for a channel to its node's agent."""
        ranks = self._machines[machine]
        while ranks:
            leader = ranks.pop()
            if leader.connection in self._peers:
                ticket = os.urandom(16).hex()
                self._tickets[ticket] = leader
                leader.connection.say({"what": "open", "ticket": ticket})
                return

    def _keep_channel(self, connection: Connection, ticket: str) -> None:
        leader = self._tickets.pop(ticket, None)
        if leader is None:
            raise ValueError("no such channel")
        self._channels[leader.member.machine] = connection.detach()

    # Examination

    def _examine(self) -> None:
        self._stage, self._until, self._taken = _EXAMINATION, self._verdict_due, True
        self._tickets.clear()
        self._troubles += self._taken_port()
        seconds = max(0.0, self._until - time.monotonic())
        try:
            process = self._start_examiner(self._attendance(), dict(self._channels), seconds)
            self._examination = Examination(self._selector, process, self._until)
        except Exception as error:  # noqa: BLE001  whatever it is, the job goes on
            self._conclude(NotMet("crashed", printable(f"the checks could not be started: {error!r}", 300)))
        finally:
            for sock in self._channels.values():
                sock.close()
            self._channels.clear()

    def _attendance(self) -> Attendance:
        present = sorted(self._by_rank.items())
        return Attendance(
            members=tuple(self._placed(peer.member) for _, peer in present),
            missing=tuple(self._missing()),
            ended=tuple(number for number, peer in present if peer.ended and peer.sure),
            problems=(*self._troubles, *self._contradictions(), *self._other_jobs()),
            remote_came=self._remote_came,
            ports=self._gate.ports,
            evidence=self._evidence(),
            strangers=tuple(self._gate.turned_away),
        )

    def _contradictions(self) -> list[Trouble]:
        complete = len(self._by_rank) == self._rank.size and all(map(self._is_well, self._by_rank.values()))
        incomplete = not complete and bool(self._evidence())
        return contradictions(self._doubles, self._doubts, self._meets_at, incomplete=incomplete)

    def _other_jobs(self) -> list[Trouble]:
        """Return the problem of another job with the same id, whose verdict did not come."""
        pids = [rival.other.pid for rival in self._rivals if rival.other]
        text = other_job(pids, self._meets_at, "its rank 0 waits on this host too")
        return [Trouble("duplicate-rank", (0,), text)] if pids else []

    def _taken_port(self) -> list[Trouble]:
        """Return the problem of a taken MASTER_PORT, if no launcher keeps it for the ranks."""
        port = self._rank.master_port
        if self._rank.launcher != "variables" or port is None or port in self._gate.ports or not is_taken(port):
            return []
        owner = other_listener(port)
        return [Trouble("port-taken", (0,), f"MASTER_PORT {port} is taken on this host by {owner}")] if owner else []

    def _placed(self, member: Member) -> Member:
        """Give the ranks of this host the address that other machines have reached."""
        local = member.machine == self._own.machine
        return replace(member, address=self._reached_at) if local and self._reached_at else member

    def _evidence(self) -> str:
        if self._inherited:
            return ""
        if self._gate.turned_away or any(rival.is_stranger for rival in self._rivals):
            return ""  # these may be the missing ranks, with another NCHECK_TOKEN or user, which the job tolerates
        if self._shortened:
            return ""  # they could still have connected
        if one_machine(self._rank):
            return "one-machine"
        if self._remote_came:
            return "remote-came"
        return "master-port-open" if self._place.master_port in self._gate.ports else ""

    # The verdict

    def _follow(self, message: Mapping[str, object]) -> None:
        """Take over the verdict of another job that meets here, for the ranks that are here. Raises ValueError."""
        self._followed = True
        verdict = message.get("verdict")
        if message["what"] == "no verdict":
            self._conclude(not_met_from(message))
        elif isinstance(verdict, dict):
            self._conclude(verdict)

    def _conclude(self, result: dict[str, Any] | NotMet | None) -> None:
        if result is None or self._stage >= _SENDING:
            return
        self._stage = _SENDING
        if self._taken:
            result = self._with_late_ranks(result)
        if isinstance(result, NotMet):
            news = {"what": "no verdict", **asdict(result)}
        else:
            self._show(result)
            news = {"what": "verdict", "verdict": result, "ended": [asdict(member) for member in self._ended_later]}
        self._news = json.dumps(news).encode()
        self._send(list(self._peers.values()))

    def _with_late_ranks(self, result: dict[str, Any] | NotMet) -> dict[str, Any] | NotMet:
        """Correct the result by the missing ranks: those that connected meanwhile are not missing, and others stop the
        job whatever the result of the checks.
        """
        problems = self._late_problems()
        if problems and not isinstance(result, NotMet):
            apart = certain(problems)
            late = {**result, "late": printable("; ".join(apart), 1000)}
            return late if apart else NotMet("doubted", problems[-1].text)
        attendance, present = self._attendance(), {peer.member.rank for peer in self._peers.values()}
        missing = [number for number in attendance.missing if number not in present]
        if isinstance(result, NotMet):
            return self._even_unchecked(result, attendance, missing)
        if attendance.missing and not missing:
            came = ", ".join(f"rank {number}" for number in attendance.missing[:_SHOWN])
            return NotMet("late", f"{came} came too late to be checked: set NCHECK_TIMEOUT to more seconds")
        return result

    def _even_unchecked(self, outcome: NotMet, attendance: Attendance, missing: list[int]) -> NotMet:
        """Return the outcome with the ranks that are of no one job, have ended or are missing: the job cannot run."""
        gone = (peer.member for peer in self._by_rank.values() if peer.ended and peer.sure)
        ended = [*gone, *self._ended_later]
        apart = certain((*attendance.problems, *self._late_problems()))
        ranks = [*apart[:_SHOWN], *(f"{member.shown} ended" for member in ended[:_SHOWN])]
        ranks += [f"rank {number} did not come{self._where(number)}" for number in missing[:_SHOWN]]
        if not ranks:
            return outcome
        more = len(apart[_SHOWN:]) + len(ended[_SHOWN:]) + len(missing[_SHOWN:])
        ranks += [f"and {more} more"] if more else []
        text = printable(f"{', '.join(ranks)}; {outcome.text}", 1000)
        return NotMet("ranks", text, is_error=attendance.missing_is_error or bool(ended or apart))

    def _where(self, number: int) -> str:
        host = self._attendance().host_of(self._rank, number)
        return f" (it should be on {host})" if host else ""

    def _send(self, peers: list[_Peer]) -> None:
        self._until = time.monotonic() + _TO_HANG_UP
        for peer in peers:
            peer.connection.say_text(self._news)

    def _all_sent(self, now: float) -> bool:
        """Whether all ranks have hung up. Ranks that connect late, after an early end, get the verdict as well."""
        if self._peers:
            slow = any(connection.unsent for connection in self._peers)
            self._until = self._deadline if slow and self._until < self._deadline else self._until
            return now >= self._until
        return self._all_came or self._followed or not self._gate.ports or now >= self._attendance_ends
