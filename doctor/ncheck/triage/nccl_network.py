"""The network that NCCL's INFO lines name, in the wording of every release from 2.3 to 2.32."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass


class Role(str, Enum):
    """What NCCL uses an interface, a port or a network for."""

    BOOTSTRAP = "bootstrap"  # the connections over which the ranks find each other
    SOCKET = "socket"  # data over TCP
    RDMA = "rdma"  # data over InfiniBand or RoCE
    HANDSHAKE = "handshake"  # the socket over which two HCAs exchange their parameters
    NETWORK = "network"  # only the name of the network: IB, Socket, a plug-in's name


@dataclass(frozen=True)
class NetworkUse:
    """One interface ("eth0" and its address) or HCA port ("mlx5_0:1" and its link: IB or RoCE) that NCCL uses."""

    role: Role
    name: str
    address: str = ""
    link: str = ""

    @property
    def hca(self) -> bool:
        """Whether it is the port of an HCA."""
        return self.role is Role.RDMA


# node01:77:77 [0] NCCL INFO Bootstrap : Using [0]eth0:10.1.0.1<0> [1]eth1:10.2.0.1<0>
# node01:77:77 [0] NCCL INFO Bootstrap: Using eth0:10.1.0.1<0>
_BOOTSTRAP = expression(r"Bootstrap ?: Using (.*)")

# node01:77:77 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.1<0>
_SOCKET = expression(r"NET/Socket ?: Using (.*)")

# node01:77:77 [0] NCCL INFO NET : Using interface eth0:10.1.0.1<0>
_OLD_SOCKET = expression(r"NET ?: Using interface (.*)")

# node01:77:80 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.1<0>
_RDMA = expression(r"NET/IB ?: Using (.*)")

# node01:77:80 [0] NCCL INFO Using network Socket
# node01:77:80 [0] NCCL INFO Assigned NET plugin IB to comm
_NETWORK = expression(
    r"Using network (\w(?:[\w /.-]{0,60}[\w/.-])?)\s*$|Assigned NET plugin (\w[\w /.-]{0,60}?) to comm"
)

# [0]eth0:10.1.0.1<0>, ib0:fe80::1%ib0<0>
_INTERFACE = expression(r"(?:\[\d+\])?([^\s:;\[\]]{1,64}):([0-9A-Fa-f.:]{2,64}(?:%[^\s<]{1,64})?)<\d{1,6}>")

# [0]mlx5_0:1/IB, [1]mlx5_1:1/RoCE, [2]{[0]mlx5_2:1/RoCE ...: the port may be missing
_PORT = expression(r"\[\d+\]([A-Za-z]\w*(?::\d+)?)/(\w+)")


def network_uses(lines: Iterable[str]) -> tuple[NetworkUse, ...]:
    """Return what the lines name, each once and in their order; other lines are ignored."""
    return tuple(dict.fromkeys(use for line in lines for use in _uses(line)))


def _uses(line: str) -> Iterator[NetworkUse]:
    if match := _BOOTSTRAP.search(line):
        yield from _interfaces(Role.BOOTSTRAP, match[1])
    elif match := _SOCKET.search(line) or _OLD_SOCKET.search(line):
        yield from _interfaces(Role.SOCKET, match[1])
    elif match := _RDMA.search(line):
        ports, _, handshake = match[1].partition("OOB")
        yield from (NetworkUse(Role.RDMA, name, link=link) for name, link in _PORT.findall(ports))
        yield from _interfaces(Role.HANDSHAKE, handshake)
    elif match := _NETWORK.search(line):
        yield NetworkUse(Role.NETWORK, match[1] or match[2])


def _interfaces(role: Role, text: str) -> Iterator[NetworkUse]:
    return (NetworkUse(role, name, address) for name, address in _INTERFACE.findall(text))
