"""NCCL's INFO lines of the network that it uses, of every release from 2.3 to 2.32, as names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum


class Role(str, Enum):
    """What a way is used for."""

    BOOTSTRAP = "bootstrap"  # where the ranks meet
    SOCKET = "socket"  # data over TCP
    RDMA = "rdma"  # data over InfiniBand or RoCE
    HANDSHAKE = "handshake"  # the socket over which two HCAs agree
    NETWORK = "network"  # the name of the network alone: IB, Socket, a plug-in's own


@dataclass(frozen=True)
class Way:
    """One interface ("eth0", its address) or HCA port ("mlx5_0:1", its link: IB or RoCE) that NCCL says it uses."""

    role: Role
    name: str
    address: str = ""
    link: str = ""

    @property
    def hca(self) -> bool:
        """Tell whether it is an HCA's port."""
        return self.role is Role.RDMA


# node01:77:77 [0] NCCL INFO Bootstrap : Using [0]eth0:10.1.0.1<0> [1]eth1:10.2.0.1<0>
# node01:77:77 [0] NCCL INFO Bootstrap: Using eth0:10.1.0.1<0>
_BOOTSTRAP = re.compile(r"Bootstrap ?: Using (.*)")


# node01:77:77 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.1<0>
_SOCKET = re.compile(r"NET/Socket ?: Using (.*)")


# node01:77:77 [0] NCCL INFO NET : Using interface eth0:10.1.0.1<0>
_OLD_SOCKET = re.compile(r"NET ?: Using interface (.*)")


# node01:77:80 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.1<0>
_RDMA = re.compile(r"NET/IB ?: Using (.*)")


# node01:77:80 [0] NCCL INFO Using network Socket
# node01:77:80 [0] NCCL INFO Assigned NET plugin IB to comm
_NETWORK = re.compile(r"Using network (\w[\w /.-]*?)\s*$|Assigned NET plugin (\w[\w /.-]*?) to comm")


# [0]eth0:10.1.0.1<0>, ib0:fe80::1%ib0<0>
_INTERFACE = re.compile(r"(?:\[\d+\])?([^\s:;\[\]]{1,64}):([0-9A-Fa-f.:]{2,64}(?:%[^\s<]{1,64})?)<\d{1,6}>")


# [0]mlx5_0:1/IB, [1]mlx5_1:1/RoCE, [2]{[0]mlx5_2:1/RoCE ...: the port may be missing
_PORT = re.compile(r"\[\d+\]([A-Za-z]\w*(?::\d+)?)/(\w+)")


def used_ways(lines: Iterable[str]) -> tuple[Way, ...]:
    """Return what the lines name, each once, in their order; lines of anything else are passed over."""
    return tuple(dict.fromkeys(way for line in lines for way in _ways(line)))


def _ways(line: str) -> Iterator[Way]:
    if found := _BOOTSTRAP.search(line):
        yield from _interfaces(Role.BOOTSTRAP, found[1])
    elif found := _SOCKET.search(line) or _OLD_SOCKET.search(line):
        yield from _interfaces(Role.SOCKET, found[1])
    elif found := _RDMA.search(line):
        ports, _, handshake = found[1].partition("OOB")
        yield from (Way(Role.RDMA, name, link=link) for name, link in _PORT.findall(ports))
        yield from _interfaces(Role.HANDSHAKE, handshake)
    elif found := _NETWORK.search(line):
        yield Way(Role.NETWORK, found[1] or found[2])


def _interfaces(role: Role, text: str) -> Iterator[Way]:
    return (Way(role, name, address) for name, address in _INTERFACE.findall(text))
