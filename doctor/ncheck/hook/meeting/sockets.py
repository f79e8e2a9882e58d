"""How the ranks of a job meet and get one verdict: one loop that has the sockets and the clock.

Rank 0 is the host, and does what rules.py says; every rank, rank 0 too, is a guest. `meet` runs in the job's own
process. It starts no thread, changes nothing of the process, and leaves nothing behind: no socket, no child, however it
ends.
"""

from __future__ import annotations

import os
import resource
import selectors
import socket
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from ncheck.decode import MisfitError
from ncheck.hook.meeting import guest, ports, rules
from ncheck.hook.meeting.connection import Connection, encoded, is_other, reason_of
from ncheck.hook.meeting.examination import Examination
from ncheck.hook.meeting.gate import Gate
from ncheck.hook.meeting.guest import Calls, Guest, LookForHost, Resolve, Target
from ncheck.hook.meeting.messages import (
    FOREIGN,
    Alive,
    Came,
    Channel,
    Leave,
    Look,
    Member,
    Message,
    NotMet,
    Open,
    Outcome,
    Told,
    Welcome,
    read,
)  # fmt: skip
from ncheck.hook.meeting.rules import (
    AskForChannel,
    Examine,
    HangUp,
    Meeting,
    MeetingStage,
    OpenPort,
    OtherJob,
    Say,
    Show,
)
from ncheck.hook.meeting.wire import End
from ncheck.hook.neighbours import inherited_from, living, other_listener
from ncheck.launchers import BARE
from ncheck.text import printable
from ncheck.this_machine.process import end
from ncheck.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen

    from ncheck.hook.meeting.attendance import Attendance
    from ncheck.rank_variables import Rank

    StartNodePart = Callable[[socket.socket], Popen[bytes]]
    StartExaminer = Callable[[Attendance, Mapping[str, socket.socket], float], Popen[bytes]]

_PLENTY = 1 << 20
_USUAL = 64  # open files of a process
_STRANGERS = 320  # files for those who have not yet proved who they are, and for the hub itself


def meet(  # noqa: PLR0913  the words of one call
    rank: Rank,
    token: bytes,
    *,
    timeout: float,
    start_node_part: StartNodePart,
    start_examiner: StartExaminer,
    rendezvous: str = "",
    show: Callable[[Mapping[str, Any]], None] = lambda _: None,
    patience: float = 0.0,
) -> Outcome:
    """Meet the other ranks, and return the verdict on the job: the same one on every rank, within `timeout` seconds.

    It waits longer, up to `patience` seconds, for ranks that have a process on a node from which others came: they are
    slow, and the job would wait for them too; and up to 75 s for ranks that may still start: see rules.py.
    `show({"note": ...})` says so every 30 s. A process that a rank has started waits for nobody longer, and who
    does not come is no error there: the others may have met, with that rank.

    `token` comes from `job_token`. `rendezvous` is NCHECK_RENDEZVOUS: HOST or HOST:PORT; SettingsError if it is not.

    `start_node_part(socket)` is called on the lowest rank of each node, `start_examiner(attendance, sockets, seconds)`
    on rank 0; the sockets, by `Member.machine`, are the other ends. Both start a child with `start_new_session=True`
    and `pass_fds`, and leave the sockets to the caller. The examiner has its standard output on a pipe and writes one
    line of JSON, an object; if it also has its standard error on a pipe, the last line of that explains a crash.

    `show(verdict)` is called on rank 0 before a rank gets the verdict: as soon as the first rank has ended, mpirun ends
    the others.
    """
    place = ports.place_of(rank, token, rendezvous)
    if rank.rank != 0 and not place.hosts:
        return NotMet("no-master", "the launcher's variables do not say where rank 0 is: set MASTER_ADDR")
    own = _own_member(rank)
    inherited = bool(inherited_from(rank))
    patience = 0.0 if inherited else patience
    with ExitStack() as stack:
        stack.callback(_close_all, _hold_standard_files())
        selector = stack.enter_context(selectors.DefaultSelector())
        now = time.monotonic()
        caller = GuestSockets(
            Guest(
                rank=rank, own=own, place=place if rank.rank else None, begun=now, timeout=timeout,
                deadline=now + timeout, patient_until=now + patience,
            ), token, selector=selector, start_node_part=start_node_part, show=show,
        )  # fmt: skip
        stack.callback(caller.close)
        if rank.rank != 0:
            return _run(selector, caller, None)
        room = _room_for(rank.size, stack)
        meeting = Meeting(
            rank=rank, own=own, begun=now, timeout=timeout, deadline=now + timeout, master_port=place.master_port,
            patient_until=now + patience, room=room, inherited=inherited,
        )  # fmt: skip
        host = HostSockets(meeting, token, place, selector=selector, start_examiner=start_examiner, show=show)
        stack.callback(host.close)
        caller.call_own(host.pair)
        return _run(selector, caller, host)


def _run(selector: selectors.BaseSelector, caller: GuestSockets, host: HostSockets | None) -> Outcome:
    try:
        while True:
            caller.tick()
            if host:
                host.tick()
            if (outcome := caller.guest.outcome) is not None:
                if host is None or host.meeting.done:
                    return outcome
                caller.hang_up()  # the host waits for the other ranks only
            wake = min(caller.guest.wake, host.wake if host else inf)
            for key, events in selector.select(max(0.0, wake - time.monotonic())):
                key.data(events)
    except Exception as error:
        caller.leave("crashed")
        if host:
            host.break_off(NotMet("crashed", printable(f"ncheck failed on rank 0: {error!r}", 300)))
        raise


class GuestSockets:
    """The sockets of one rank. It lets the rules of guest.py know what happens, and does what they say."""

    def __init__(
        self,
        begun: Guest,
        token: bytes,
        *,
        selector: selectors.BaseSelector,
        start_node_part: StartNodePart,
        show: Callable[[Mapping[str, str]], None],
    ) -> None:
        self.guest, self._token, self._selector = begun, token, selector
        self._start_node_part, self._show = start_node_part, show
        self._pair: Callable[[], socket.socket] | None = None  # leads to the host of this process
        self._calls: dict[Connection, Target | None] = {}
        self._host: Connection | None = None  # since it proved that it is
        self._channel: tuple[Connection, str] | None = None
        self._child: Popen[bytes] | None = None

    def tick(self) -> None:
        now = time.monotonic()
        if now >= self.guest.wake:
            self.do(guest.tick(self.guest, now, self._connected()))

    def call_own(self, pair: Callable[[], socket.socket]) -> None:
        """Meet the host of this process."""
        self._pair = pair
        self._calls[self._connection(pair())] = None

    def close(self) -> None:
        """Close everything and end the node's agent."""
        try:
            for connection in (*self._calls, self._host, self._channel[0] if self._channel else None):
                if connection:
                    connection.close()
        finally:
            if self._child:
                end(self._child)

    def hang_up(self) -> None:
        """Close the connection to the host, which waits for that; the node's agent may go on."""
        if self._host:
            self._host.close()

    def leave(self, kind: str) -> None:
        """Say that this process lives, and goes on without a verdict."""
        if self._host:
            self._host.say(Leave(kind))

    def _connection(self, sock: socket.socket) -> Connection:
        return Connection(self._selector, sock, End(self._token, hub=False), self)

    def _connected(self) -> set[Target]:
        return {target for connection, target in self._calls.items() if target and connection.connected}

    # What the rules want done.

    def do(self, step: guest.Step) -> None:
        self.guest, actions = step
        for action in actions:
            self._carry_out(action)
        if self.guest.outcome is not None:
            self.hang_up()

    def _carry_out(self, action: guest.Action) -> None:
        match action:
            case Came() | Leave() if self._host:
                self._host.say(action)
            case Look() if self._host:
                self._host.say(Alive(tuple(living(self.guest.rank, list(action.ranks)))))
            case Open():
                self._open_channel(action.ticket)
            case Resolve():
                self._resolve(action.hosts)
            case Calls():
                for connection in [one for one, target in self._calls.items() if target in action.ended]:
                    del self._calls[connection]
                    connection.close()
                for target in action.begun:
                    self._call(target)
            case LookForHost():
                lives = bool(living(self.guest.rank, [0]))
                self.do(guest.looked(self.guest, time.monotonic(), self._connected(), lives=lives))
            case Show():
                self._show(action.verdict)

    def _resolve(self, hosts: tuple[str, ...]) -> None:
        began, problem = time.monotonic(), ""
        found: list[ports.HubAddress] = []
        for host in hosts:
            try:
                found += ports.resolve(host)
            except OSError as error:  # noqa: PERF203
                problem = problem or error.strerror or str(error)
        took = time.monotonic() - began
        self.do(guest.resolved(self.guest, found, problem, began, took, self._connected()))

    def _call(self, target: Target) -> None:
        address, port = target
        try:
            sock = ports.connecting(address.family, address.at(port))
        except OSError as error:
            self.do(guest.call_ended(self.guest, target, reason_of(error)))
        else:
            self._calls[self._connection(sock)] = target

    def _open_channel(self, ticket: str) -> None:
        if self._channel or self._child or not self._host:
            return
        with suppress(OSError):  # the host goes on without this node's agent, and says so
            sock = self._pair() if self._pair else ports.connecting(*self._host.peer)
            self._channel = self._connection(sock), ticket

    # What the connections call.

    def proved(self, connection: Connection) -> None:
        if self._channel and connection is self._channel[0]:
            self._start(connection, self._channel[1])
            self._channel = None
            return
        target, secret = self._calls.pop(connection), self.guest.rank.secret
        if target and not secret and is_other(connection.user):  # another user of this machine, who could guess it
            connection.close()
            self.do(guest.call_ended(self.guest, target, FOREIGN))
            return
        self._host = connection
        sure = target is None or secret or connection.user is not None
        self.do(guest.found(self.guest, time.monotonic(), sure=sure))

    def heard(self, connection: Connection, value: object) -> None:
        try:
            message = read(value)
        except MisfitError:
            connection.close()
            self.over(connection, FOREIGN)
        else:
            self.do(guest.heard(self.guest, message))

    def over(self, connection: Connection, reason: str) -> None:
        if self._channel and connection is self._channel[0]:
            self._channel = None
        elif connection is self._host:
            self._host = None
            self.do(guest.host_left(self.guest, reason))
        elif target := self._calls.pop(connection, None):
            self.do(guest.call_ended(self.guest, target, reason))

    def _start(self, connection: Connection, ticket: str) -> None:
        connection.say(Channel(ticket))
        if connection.unsent:
            connection.close()
            return
        with connection.detach() as sock, suppress(Exception):  # the examiner sees the end of the channel
            self._child = self._start_node_part(sock)


class HostSockets:
    """The sockets of rank 0. It lets the rules know what happens, and does what they say."""

    def __init__(  # noqa: PLR0913  the words of one call
        self,
        meeting: Meeting,
        token: bytes,
        place: ports.Place,
        *,
        selector: selectors.BaseSelector,
        start_examiner: StartExaminer,
        show: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.meeting, self.token, self.selector = meeting, token, selector
        self._place, self._start_examiner, self._show = place, start_examiner, show
        rank = meeting.rank
        files = meeting.room - rank.size - rules.OTHER_FILES
        self._gate = Gate(selector, token, self._introduce, self._turned_away, files, secret=rank.secret)
        self._peers: dict[int, Connection] = {}
        self._numbers: dict[Connection, int] = {}
        self._others: list[_OtherHost] = []
        self._tickets: dict[str, AskForChannel] = {}
        self._channels: dict[str, socket.socket] = {}  # by machine
        self._examination: Examination | None = None
        self._encoded: tuple[Message, bytes] | None = None

    def pair(self) -> socket.socket:
        """Connect this process to its own meeting, with no port and no network."""
        ours, its = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003
        self._gate.accept(its, "")
        return ours

    @property
    def wake(self) -> float:
        """When to call `tick` if nothing happens."""
        examining = self._examination if self.meeting.stage is MeetingStage.EXAMINATION else None
        return min(self._gate.wake, self.meeting.wake, examining.wake if examining else inf)

    def tick(self) -> None:
        now = time.monotonic()
        self._gate.tick(now)
        unsent = self.meeting.stage is MeetingStage.SENDING and any(one.unsent for one in self._peers.values())
        self.do(rules.tick(self.meeting, now, unsent=unsent, channels=self._channels))
        if self._examination and self.meeting.stage is MeetingStage.EXAMINATION:
            self._examination.tick(now)
            if self._examination.result is not None:
                self.do(rules.examined(self.meeting, self._examination.result))

    def break_off(self, outcome: NotMet) -> None:
        """Send the ranks why there will be no verdict, as far as possible without waiting."""
        self.do(rules.broken_off(self.meeting, outcome, time.monotonic()))

    def close(self) -> None:
        """Close everything and end the examiner."""
        try:
            for connection in self._peers.values():
                connection.close()
            for other in self._others:
                other.close()
            self._gate.close()
            for sock in self._channels.values():
                sock.close()
        finally:
            if self._examination:
                self._examination.close()

    # What the rules want done.

    def do(self, step: rules.Step) -> None:
        self.meeting, actions = step
        for action in actions:
            self._carry_out(action)

    def _carry_out(self, action: rules.Action) -> None:
        match action:
            case Say(peers, message):
                for peer in peers:
                    self._say(peer, message)
            case HangUp(peer):
                connection = self._peers.pop(peer)
                del self._numbers[connection]
                connection.close()
            case AskForChannel(peer):
                ticket = os.urandom(16).hex()
                self._tickets[ticket] = action
                self._say(peer, Open(ticket))
            case OpenPort(port):
                self._open(port)
            case Examine(until):
                self._examine(until)
            case Show(verdict):
                self._show(verdict)

    def _say(self, peer: int, message: Message) -> None:
        if not self._encoded or self._encoded[0] is not message:  # a verdict is large, and the same for all
            self._encoded = message, encoded(message)
        if peer in self._peers:
            self._peers[peer].say_text(self._encoded[1])

    def _open(self, port: int | None) -> None:
        try:
            listener = ports.open_first(self._place.ports) if port is None else ports.listen(port)
        except ports.PortsTakenError as error:
            self.break_off(NotMet("ports", f"ncheck could open no port for the other ranks: {error}"))
            return
        except OSError:
            return  # the launcher's own store uses the MASTER_PORT
        self._gate.listen(listener)
        number = listener.getsockname()[1]
        self.do(rules.opened(self.meeting, number))
        taken = self._place.ports[: self._place.ports.index(number)] if port is None else ()
        self._others += [_OtherHost(self, one) for one in taken]

    def _examine(self, until: float) -> None:
        try:
            attendance = self.meeting.attendance(self._port_owner())
            process = self._start_examiner(attendance, dict(self._channels), max(0.0, until - time.monotonic()))
            self._examination = Examination(self.selector, process, until)
        except Exception as error:  # noqa: BLE001  whatever it is, the job goes on
            text = printable(f"the checks could not be started: {error!r}", 300)
            self.do(rules.examined(self.meeting, NotMet("crashed", text)))
        finally:
            for sock in self._channels.values():
                sock.close()
            self._channels.clear()

    def _port_owner(self) -> str:
        """Return who else has the MASTER_PORT, if no launcher keeps it for the ranks."""
        rank, port = self.meeting.rank, self.meeting.rank.master_port
        if rank.launcher != BARE.name or port is None or port in self.meeting.ports or not ports.is_taken(port):
            return ""
        return other_listener(port)

    # What the gate and the connections of ranks call.

    def _turned_away(self, address: str) -> None:
        self.do(rules.turned_away(self.meeting, address))

    def _introduce(self, connection: Connection, address: str, value: object) -> None:
        """Accept a connection that has proved to be of this job: a rank, or the channel of a node's agent."""
        message = None
        with suppress(MisfitError):
            message = read(value)
        if isinstance(message, Came):
            self._enter(connection, replace(message.member, address=address), message.seconds)
        elif isinstance(message, Channel) and (asked := self._asked(message.ticket)):
            self._channels[asked.machine] = connection.detach()
            self.do(rules.channel_opened(self.meeting, asked.machine))
        else:
            connection.close()

    def _enter(self, connection: Connection, member: Member, seconds: float) -> None:
        number = self.meeting.entries
        self._peers[number], self._numbers[connection] = connection, number
        connection.hand_to(self)
        sure = self.meeting.rank.secret or connection.user is not None
        now, reached_at = time.monotonic(), ports.plain(connection.own_address)
        self.do(rules.came(self.meeting, number, member, seconds, now, sure=sure, reached_at=reached_at))

    def _asked(self, ticket: str) -> AskForChannel | None:
        asked = self._tickets.pop(ticket, None)
        return asked if asked and self.meeting.asked.get(asked.machine) == asked.peer else None

    def proved(self, connection: Connection) -> None:
        """Do nothing: the gate has checked it."""

    def heard(self, connection: Connection, value: object) -> None:
        with suppress(MisfitError):
            message, number = read(value), self._numbers[connection]
            if isinstance(message, Alive):
                self.do(rules.answered(self.meeting, number, message.ranks))
            elif isinstance(message, Leave):
                self.do(rules.continues(self.meeting, number, message.kind, time.monotonic()))

    def over(self, connection: Connection, reason: str) -> None:
        number = self._numbers.pop(connection)
        del self._peers[number]
        self.do(rules.left(self.meeting, number, reason))


class _OtherHost:
    """The connection to the owner of a port that is ours by the token: see OtherJob."""

    def __init__(self, host: HostSockets, port: int) -> None:
        self._host, self._port = host, port
        self._connection: Connection | None = None
        with suppress(OSError):
            sock = ports.connecting(socket.AF_INET, ("127.0.0.1", port))
            self._connection = Connection(host.selector, sock, End(host.token, hub=False), self)

    def close(self) -> None:
        if self._connection:
            self._connection.close()

    def proved(self, connection: Connection) -> None:
        if is_other(connection.user):
            self._met(OtherJob(is_stranger=True))
            connection.close()
        else:
            meeting = self._host.meeting
            connection.say(Came(meeting.own, max(0.0, meeting.deadline - time.monotonic())))

    def heard(self, connection: Connection, value: object) -> None:
        try:
            message = read(value)
        except MisfitError:
            connection.close()
            self.over(connection, FOREIGN)
            return
        if isinstance(message, Welcome):
            self._met(OtherJob(message.member, leads=True))
        elif isinstance(message, Told | NotMet):
            self._host.do(rules.followed(self._host.meeting, message, time.monotonic()))

    def over(self, connection: Connection, reason: str) -> None:  # noqa: ARG002
        if self._port in self._host.meeting.others:
            self._met(replace(self._host.meeting.others[self._port], leads=False))

    def _met(self, other: OtherJob) -> None:
        self._host.do(rules.met_other(self._host.meeting, self._port, other))


def _room_for(ranks: int, stack: ExitStack) -> int:
    """Return how many more files this process may open: if need be more, up to its hard limit, until the stack ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _PLENTY
    used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else _USUAL  # noqa: PTH112, PTH208
    wanted = used + ranks + _STRANGERS
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft, most) - used


def _own_member(rank: Rank) -> Member:
    host_name = socket.gethostname()
    return Member(
        rank.rank, rank.size, rank.local_rank, host_name, rank.node_name, _machine(host_name), os.getpid(), "",
        __version__,
    )  # fmt: skip


def _machine(host_name: str) -> str:
    """Return what tells this machine, and this network namespace on it, from any other."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123  pathlib costs 5 ms
            boot_id = file.read().strip()
        return f"{boot_id} {os.readlink('/proc/self/ns/net')}"  # noqa: PTH115
    except OSError:
        return host_name


def _hold_standard_files() -> list[int]:
    """Hold what of 0, 1 and 2 is closed: else a socket would get the number, and with it what the job prints."""
    held = []
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004
        held.append(number)
    os.close(number)
    return held


def _close_all(numbers: list[int]) -> None:
    for number in numbers:
        os.close(number)
