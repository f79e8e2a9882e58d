"""The ports at which ranks meet: which ones, how rank 0 opens them, and how another rank finds the open one."""

from __future__ import annotations

import errno
import hmac
import os
import socket
from typing import TYPE_CHECKING

from ncheck.errors import SettingsError
from ncheck.hook.meeting.attendance import one_machine
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.rank_variables import Rank

CANDIDATES = 16
_FIRST, _LAST = 20000, 29999  # below the ports that Linux gives to clients: 32768 and up
_LAST_PORT = 65535
_BACKLOG = 4096  # the kernel cuts it to net.core.somaxconn
_MOST_ADDRESSES = 8


class PortsTakenError(Exception):
    """Rank 0 could open none of its ports."""


@dataclass(frozen=True)
class Place:
    """Where rank 0 is to be found. `master_port` is the job's own port, the last one tried; None: there is none."""

    hosts: tuple[str, ...]  # names and addresses of its host; () unknown
    ports: tuple[int, ...]
    master_port: int | None
    given: str = ""  # the variable that names the host, "" if it was guessed

    @property
    def jobs_own(self) -> bool:
        """Whether the job itself meets there: where that cannot work, the job cannot either."""
        return self.given in {"MASTER_ADDR", "PADDLE_MASTER"}


def place_of(rank: Rank, token: bytes, rendezvous: str = "") -> Place:
    """Return where the ranks of this job meet. Raises SettingsError if `rendezvous` is not HOST or HOST:PORT."""
    host, port = parse_rendezvous(rendezvous) if rendezvous else ("", None)
    if port is not None:
        return Place((host,), (port,), None, "NCHECK_RENDEZVOUS")
    ports = candidates(token, rank.master_port)
    if host:
        return Place((host,), ports, None, "NCHECK_RENDEZVOUS")
    local = "127.0.0.1" if one_machine(rank) and not rank.addresses else ""
    host = rank.master or rank.host_of(0) or local
    hosts = tuple(dict.fromkeys(name for name in (host, *rank.addresses) if name))
    return Place(hosts, ports, rank.master_port, rank.named.get("master", "").partition("=")[0])


def parse_rendezvous(text: str) -> tuple[str, int | None]:
    """Return host and port of `host`, `host:29400`, `10.0.0.1`, `fd00::1` or `[fd00::1]:29400`."""
    host, port = text.strip(), ""
    if host.startswith("["):
        host, _, port = host[1:].partition("]")
        wrong = port != "" and not port.startswith(":")
        port = port[1:]
    else:
        wrong = False
        if host.count(":") == 1:
            host, _, port = host.partition(":")
            wrong = not port
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= len(str(_LAST_PORT)) else 0
    if wrong or not host or (port and not 0 < number <= _LAST_PORT):
        raise SettingsError(f"NCHECK_RENDEZVOUS={printable(text, 60)} is not HOST or HOST:PORT")
    return host, number or None


def candidates(token: bytes, master_port: int | None) -> tuple[int, ...]:
    """Return the ports that all ranks of a job try, in order. Another job's are others."""
    ports: list[int] = []
    turn = 0
    while len(ports) < CANDIDATES:
        drawn = hmac.digest(token, f"door {turn}".encode(), "sha256")
        port = _FIRST + int.from_bytes(drawn[:4], "big") % (_LAST - _FIRST + 1)
        if port not in ports and port != master_port:
            ports.append(port)
        turn += 1
    return tuple(ports)


def open_first(ports: tuple[int, ...]) -> socket.socket:
    """Listen on the first port that is free. Raises PortsTakenError, with the reasons."""
    reasons: dict[str, int] = {}
    for port in ports:
        try:
            return listen(port)
        except OSError as error:  # noqa: PERF203
            reasons.setdefault(error.strerror or str(error), port)
    why = "; ".join(f"port {port}: {reason}" for reason, port in reasons.items())
    raise PortsTakenError(why)


def listen(port: int) -> socket.socket:
    """Listen on all addresses of this host, IPv6 and IPv4. Raises OSError."""
    try:
        return _listening(socket.AF_INET6, "::", port)
    except OSError as error:
        if error.errno in {errno.EADDRINUSE, errno.EACCES, errno.EMFILE, errno.ENFILE}:
            raise
    return _listening(socket.AF_INET, "0.0.0.0", port)  # noqa: S104  which address the others use is not known here


def is_taken(port: int) -> bool:
    """Tell whether another program of this host has a port."""
    try:
        listen(port).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


def _listening(family: int, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)  # noqa: FBT003
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


@dataclass(frozen=True)
class HubAddress:
    """One address of the host where rank 0 should be."""

    family: int
    numbers: tuple[str | int, ...]  # (address, port, ...) as the socket module wants it; the port is replaced

    @property
    def text(self) -> str:
        return plain(str(self.numbers[0]))

    @property
    def loopback(self) -> bool:
        return self.text.startswith("127.") or self.text == "::1"

    def at(self, port: int) -> tuple[str | int, ...]:
        return (self.numbers[0], port, *self.numbers[2:])


def plain(address: str) -> str:
    """Return an address as people write it: 10.0.0.1 for ::ffff:10.0.0.1."""
    return address.removeprefix("::ffff:") if "." in address else address


def resolve(host: str) -> tuple[HubAddress, ...]:
    """Return the addresses of a name. Raises OSError if it has none."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label of more than 63 characters, an empty label
        raise OSError(errno.EINVAL, "not a host name") from error
    inet = (socket.AF_INET, socket.AF_INET6)
    unique = dict.fromkeys(
        HubAddress(family, (str(numbers[0]), *map(int, numbers[1:])))
        for family, _, _, _, numbers in found
        if family in inet
    )
    return tuple(unique)[:_MOST_ADDRESSES]


def connecting(family: int, address: tuple[str | int, ...]) -> socket.socket:
    """Begin to connect. Raises OSError where that is known to fail at once."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error = sock.connect_ex(address)
    except BaseException:
        sock.close()
        raise
    if error not in {0, errno.EINPROGRESS}:
        sock.close()
        raise OSError(error, os.strerror(error))
    return sock
