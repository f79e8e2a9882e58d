"""TCP connections to a host name: every address is tried, within one deadline, and the server has to speak first."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh import failures
from ncheck.ssh.failures import FailureError, LoginFailure, failed
from ncheck.ssh.login import LoginCause
from ncheck.ssh.target import SshTarget

# What this client says first. It is said at once: a server that is no SSH server answers only then.
IDENTIFICATION = b"SSH-2.0-ncheck\r\n"

# Seconds before the next address is tried too; RFC 8305 calls it the connection attempt delay.
ATTEMPT_DELAY = 0.25
FEW_RETRANSMISSIONS = 2  # they take less than a second
FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}
LOCAL_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
SockAddress = tuple[int, tuple[Any, ...]]  # as getaddrinfo gives it: (host, port), or longer for IPv6
Found = tuple[int, int, int, str, tuple[Any, ...]]


@dataclass(frozen=True)
class GreetedConnection:
    """A connection whose server has spoken, after `seconds` of `timeout`. It is not blocking and has TCP_NODELAY, and
    IDENTIFICATION was sent.
    """

    sock: socket.socket
    address: str
    seconds: float
    timeout: float


def dial(target: SshTarget, timeout: float) -> GreetedConnection:
    """Connect to one host. Raises FailureError."""
    deadline = time.monotonic() + timeout
    addresses = _resolved(target, timeout)
    with selectors.DefaultSelector() as selector:
        race = Race(target, addresses, max(0.001, deadline - time.monotonic()), selector)
        race.turn()
        while not race.outcome:
            for key, _ in selector.select(max(0.0, race.due - time.monotonic())):
                race.came(key.fileobj)
            race.turn()
    if isinstance(race.outcome, FailureError):
        raise race.outcome
    return race.outcome


def addresses_of(target: SshTarget) -> list[SockAddress]:
    """Return the addresses, IPv6 and IPv4 in turn. It takes as long as the name server takes. Raises FailureError."""
    family = FAMILIES.get(target.address_family, socket.AF_UNSPEC)
    try:
        name = _wire_name(target.host_name)
        try:
            found = _asked(name, target, family, socket.AI_NUMERICHOST)
        except OSError:
            found = _asked(name, target, family, 0)
    except (OSError, UnicodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else f"it is not a host name ({error})") or str(error)
        raise FailureError(failures.name_unknown(target, why)) from None
    return _alternated([(info[0], info[4]) for info in found])


def no_name_server(target: SshTarget, seconds: float) -> FailureError:
    return FailureError(failures.name_unknown(target, f"the name server did not answer within {seconds:.0f} s"))


def _asked(name: bytes, target: SshTarget, family: int, flags: int) -> list[Found]:
    return [*socket.getaddrinfo(name, target.port, family, socket.SOCK_STREAM, 0, flags)]


def _wire_name(name: str) -> bytes:
    """Return a name as DNS has it. Python would load its tables of international names for ASCII names too."""
    return name.encode("ascii") if name.isascii() else name.encode("idna")


@dataclass
class _Lookup:
    """What a look-up in its own thread returned."""

    found: list[SockAddress] = field(default_factory=list)
    error: FailureError | None = None


def _resolved(target: SshTarget, timeout: float) -> list[SockAddress]:
    """Return the addresses. A name server that hangs ends with the timeout."""
    lookup = _Lookup()

    def ask() -> None:
        try:
            lookup.found = addresses_of(target)
        except FailureError as error:
            lookup.error = error

    thread = threading.Thread(target=ask, name=f"resolve {target.host_name}", daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        raise no_name_server(target, timeout)
    if lookup.error:
        raise lookup.error
    return lookup.found


def _alternated(addresses: Sequence[SockAddress]) -> list[SockAddress]:
    """Alternate the address families, so that broken IPv6 does not use up all the time."""
    first = [a for a in addresses if a[0] == addresses[0][0]]
    second = [a for a in addresses if a[0] != addresses[0][0]]
    turns: list[SockAddress] = []
    for index in range(max(len(first), len(second))):
        turns += first[index : index + 1] + second[index : index + 1]
    return turns


class Race:
    """Connections to several addresses, each started a little after the last. The first that is established wins, and
    then its server has to speak, as SSH servers do. What wakes it is registered with a selector that many races share.
    """

    def __init__(
        self, target: SshTarget, addresses: Sequence[SockAddress], timeout: float, selector: selectors.BaseSelector
    ) -> None:
        self.target, self.timeout, self.selector = target, timeout, selector
        self.waiting = list(addresses)
        self.trying: dict[socket.socket, str] = {}
        self.winner: tuple[socket.socket, str] | None = None
        self.failures: list[LoginFailure] = []
        self.began = self.next = time.monotonic()
        self.ends = self.began + timeout
        self.outcome: GreetedConnection | FailureError | None = None

    @property
    def due(self) -> float:
        """When something has to be done that no event announces."""
        return min(self.ends, self.next) if self.waiting and not self.winner else self.ends

    def turn(self) -> None:
        """Do what is due."""
        while self.waiting and not self.winner and not self.outcome and self.next <= time.monotonic():
            self._start_next()
        if self.outcome:
            return
        if not (self.waiting or self.trying or self.winner):
            self._end(FailureError(self._failure()))
        elif time.monotonic() >= self.ends:
            self._end(self._too_late())

    def came(self, sock: object) -> None:
        """Go on with a socket that an event came for."""
        if self.winner and sock is self.winner[0] and not self.outcome:
            self._end(GreetedConnection(*self.winner, time.monotonic() - self.began, self.timeout))
        if not isinstance(sock, socket.socket) or sock not in self.trying:  # it lost a moment ago
            return
        address = self.trying.pop(sock)
        if code := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._close(sock)
            self._failed(address, code)
        else:
            self._drop_losers()
            self.winner = sock, address
            with suppress(OSError):  # it is closed: whoever reads will see
                sock.send(IDENTIFICATION)
            self.selector.modify(sock, selectors.EVENT_READ, self)
        self.turn()

    def drop(self) -> None:
        """Close what is open: nobody waits for it any more."""
        self._drop_losers()
        if self.winner:
            self._close(self.winner[0])

    def _start_next(self) -> None:
        family, where = self.waiting.pop(0)
        self.next = time.monotonic() + ATTEMPT_DELAY
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            self._lack(error, (family, where))
            return
        sock.setblocking(False)  # noqa: FBT003
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _detect_loss(sock)
        try:
            if self.target.bind_address:
                sock.bind((self.target.bind_address, 0))
            code = sock.connect_ex(where)
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code in (0, errno.EISCONN, errno.EINPROGRESS):
            self.trying[sock] = str(where[0])
            self.selector.register(sock, selectors.EVENT_WRITE, self)
            return
        sock.close()
        if code in LOCAL_LIMITS:
            self._lack(OSError(code, os.strerror(code)), (family, where))
        else:
            self._failed(str(where[0]), code)

    def _lack(self, error: OSError, address: SockAddress) -> None:
        """Put off an address that this machine has no means for; the race ends where it has no other."""
        self.waiting.insert(0, address)
        if not self.trying:
            self._end(_local_limit(error))

    def _failed(self, address: str, code: int) -> None:
        self.next = time.monotonic()
        if code in (errno.ECONNREFUSED, errno.ECONNRESET):
            self.failures.append(failures.refused(self.target, address))
        elif code == errno.ETIMEDOUT:
            self.failures.append(failures.filtered(self.target, address, self.timeout))
        else:
            self.failures.append(failures.unroutable(self.target, address, os.strerror(code)))

    def _end(self, outcome: GreetedConnection | FailureError) -> None:
        self.outcome = outcome
        if isinstance(outcome, GreetedConnection):
            self.selector.unregister(outcome.sock)
        else:
            self.drop()

    def _too_late(self) -> FailureError:
        if self.winner:
            address = self.winner[1]
            return FailureError(failures.silent(self.target, address, self.timeout), address=address)
        self.failures += [failures.filtered(self.target, address, self.timeout) for address in self.trying.values()]
        return FailureError(self._failure())

    def _drop_losers(self) -> None:
        for sock in self.trying:
            self._close(sock)
        self.trying.clear()

    def _close(self, sock: socket.socket) -> None:
        self.selector.unregister(sock)
        sock.close()

    def _failure(self) -> LoginFailure:
        """Return the failure of the address that came nearest, with the details of all."""
        order = (LoginCause.REFUSED, LoginCause.FILTERED, LoginCause.UNROUTABLE)
        ranked = sorted(self.failures, key=lambda f: order.index(f.cause))
        if not ranked:
            return failures.filtered(self.target, self.target.host_name, self.timeout)
        return LoginFailure(ranked[0].cause, "; ".join(dict.fromkeys(f.detail for f in ranked)), ranked[0].fix)


def _detect_loss(sock: socket.socket) -> None:
    """Let the kernel report a lost link after about 15 s, as the ssh program does here."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 14_000)):
        if number := getattr(socket, option, None):
            sock.setsockopt(socket.IPPROTO_TCP, number, value)


def lossy(sock: socket.socket) -> bool:
    """Tell whether the network is why a connection is slow: packets had to be sent again. True where it is unknown."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    except (OSError, AttributeError):
        return True
    return int.from_bytes(info[100:104], sys.byteorder) > FEW_RETRANSMISSIONS  # struct tcp_info: tcpi_total_retrans


def _local_limit(error: OSError) -> FailureError:
    return failed(
        LoginCause.TRANSPORT, f"this machine cannot open another connection: {error.strerror}", "ulimit -n 4096"
    )
