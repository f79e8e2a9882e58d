"""One TCP connection to a host name: every address is tried, within one deadline."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ncheck.ssh import failures
from ncheck.ssh.failures import Failure, FailureError, failed
from ncheck.ssh.login import Cause
from ncheck.ssh.target import Target

# Seconds before the next address is tried too; RFC 8305 calls it the connection attempt delay.
ATTEMPT_DELAY = 0.25


FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}


LOCAL_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


SockAddress = tuple[int, tuple[Any, ...]]  # as getaddrinfo gives it: (host, port), or longer for IPv6


Found = tuple[int, int, int, str, tuple[Any, ...]]


def dial(target: Target, timeout: float) -> tuple[socket.socket, str]:
    """Connect; return the socket, not blocking and with TCP_NODELAY, and the address. Raises FailureError."""
    deadline = time.monotonic() + timeout
    addresses = resolve(target, timeout)
    race = _Race(target, addresses, timeout)
    try:
        return race.run(deadline)
    finally:
        race.drop_losers()


def resolve(target: Target, timeout: float) -> list[SockAddress]:
    """Return the addresses, IPv6 and IPv4 in turn. A name server that hangs ends with the timeout."""
    family = FAMILIES.get(target.address_family, socket.AF_UNSPEC)
    found: list[Found]
    try:
        name = _wire_name(target.host_name)
        found = [*socket.getaddrinfo(name, target.port, family, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)]
    except OSError:
        found = _looked_up(target, name, family, timeout)
    except UnicodeError as error:
        raise FailureError(failures.name_unknown(target, f"it is not a host name ({error})")) from None
    return _alternated([(info[0], info[4]) for info in found])


@dataclass
class _Lookup:
    """What a look-up in its own thread returned."""

    found: list[Found] = field(default_factory=list)
    error: Exception | None = None


def _wire_name(name: str) -> bytes:
    """Return a name as DNS has it. Python would load its tables of international names for ASCII names too."""
    return name.encode("ascii") if name.isascii() else name.encode("idna")


def _looked_up(target: Target, name: bytes, family: int, timeout: float) -> list[Found]:
    lookup = _Lookup()

    def ask() -> None:
        try:
            lookup.found = [*socket.getaddrinfo(name, target.port, family, socket.SOCK_STREAM)]
        except (OSError, UnicodeError) as error:
            lookup.error = error

    thread = threading.Thread(target=ask, name=f"resolve {target.host_name}", daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        raise FailureError(failures.name_unknown(target, f"the name server did not answer within {timeout:.0f} s"))
    if lookup.error is not None:
        why = lookup.error.strerror if isinstance(lookup.error, OSError) else str(lookup.error)
        raise FailureError(failures.name_unknown(target, why or str(lookup.error)))
    return lookup.found


def _alternated(addresses: Sequence[SockAddress]) -> list[SockAddress]:
    """Alternate the address families, so that broken IPv6 does not use up all the time."""
    first = [a for a in addresses if a[0] == addresses[0][0]]
    second = [a for a in addresses if a[0] != addresses[0][0]]
    turns: list[SockAddress] = []
    for index in range(max(len(first), len(second))):
        turns += first[index : index + 1] + second[index : index + 1]
    return turns


class _Race:
    """Connections to several addresses, each started a little after the last; the first that is established wins."""

    def __init__(self, target: Target, addresses: Sequence[SockAddress], timeout: float) -> None:
        self.target, self.timeout = target, timeout
        self.waiting = list(addresses)
        self.trying: dict[int, tuple[socket.socket, str]] = {}
        self.poll = select.poll()
        self.failures: list[Failure] = []

    def run(self, deadline: float) -> tuple[socket.socket, str]:
        while self.waiting or self.trying:
            if self.waiting and (won := self._start_next()):
                return won
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            if self.trying and (won := self._wait(min(remaining, ATTEMPT_DELAY) if self.waiting else remaining)):
                return won
        self.failures += [failures.filtered(self.target, address, self.timeout) for _, address in self.trying.values()]
        raise FailureError(self._failure())

    def drop_losers(self) -> None:
        for sock, _ in self.trying.values():
            sock.close()

    def _start_next(self) -> tuple[socket.socket, str] | None:
        family, where = self.waiting.pop(0)
        address = str(where[0])
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise _local_limit(error) from None
        sock.setblocking(False)  # noqa: FBT003
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _detect_loss(sock)
        try:
            if self.target.bind_address:
                sock.bind((self.target.bind_address, 0))
            code = sock.connect_ex(where)
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code in (0, errno.EISCONN):
            return sock, address
        if code == errno.EINPROGRESS:
            self.trying[sock.fileno()] = (sock, address)
            self.poll.register(sock, select.POLLOUT)
        else:
            sock.close()
            self._failed(address, code)
        return None

    def _wait(self, seconds: float) -> tuple[socket.socket, str] | None:
        for descriptor, _ in self.poll.poll(seconds * 1000 + 1):
            sock, address = self.trying.pop(descriptor)
            self.poll.unregister(descriptor)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code == 0:
                return sock, address
            sock.close()
            self._failed(address, code)
        return None

    def _failed(self, address: str, code: int) -> None:
        if code in LOCAL_LIMITS:
            raise _local_limit(OSError(code, os.strerror(code)))
        if code in (errno.ECONNREFUSED, errno.ECONNRESET):
            self.failures.append(failures.refused(self.target, address))
        elif code == errno.ETIMEDOUT:
            self.failures.append(failures.filtered(self.target, address, self.timeout))
        else:
            self.failures.append(failures.unroutable(self.target, address, os.strerror(code)))

    def _failure(self) -> Failure:
        """Return the failure of the address that came nearest, with the details of all."""
        order = (Cause.REFUSED, Cause.FILTERED, Cause.UNROUTABLE)
        ranked = sorted(self.failures, key=lambda f: order.index(f.cause))
        if not ranked:
            return failures.filtered(self.target, self.target.host_name, self.timeout)
        return Failure(ranked[0].cause, "; ".join(dict.fromkeys(f.detail for f in ranked)), ranked[0].fix)


def _detect_loss(sock: socket.socket) -> None:
    """Let the kernel report a lost link after about 15 s, as the ssh program does here."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 14_000)):
        if number := getattr(socket, option, None):
            sock.setsockopt(socket.IPPROTO_TCP, number, value)


def _local_limit(error: OSError) -> FailureError:
    return failed(Cause.TRANSPORT, f"this machine cannot open another connection: {error.strerror}", "ulimit -n 4096")
