"""How a lab is wired: the head's side of the network, and which interfaces a host is given, in the kernel's order."""

from __future__ import annotations

from . import namespaces
from .node import Node

# A tap has the speed that it is told, and carries while somebody holds it open: a process that ends with the head.
HOLD = """
import fcntl, os, signal, struct
tap = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH", b"wire0", 0x0002 | 0x1000))  # TUNSETIFF: a tap, bare frames
if os.fork():
    os._exit(0)
os.setsid()
for stream in (0, 1, 2):
    os.close(stream)
signal.pause()
"""


class Wiring:
    """One network: eth0 on every host, 10.77.0.0/24."""

    _wire = "link add wire0 type veth peer name wire1\nlink set wire1 up\n"
    _more = ""

    def head(self, pid: int) -> None:
        """Lay the head's side."""
        ip(
            pid,
            f"link set lo up\n{self._wire}link set wire0 up\nlink add link wire0 name eth0 type macvlan mode bridge\n"
            f"address add 10.77.0.254/24 dev eth0\nlink set eth0 up\n{self._more}",
        )

    def nics(self, number: int) -> tuple[str, ...]:  # noqa: ARG002  others ask which node it is
        """Return what the interfaces that lead out of this node are called."""
        return ("eth0",)

    def unplug(self, node: Node) -> str:  # noqa: ARG002  others ask which node it is
        """Return what ip is told on the head before a node that was ended is made anew."""
        return ""

    def links(self, node: Node) -> str:
        """Return what ip makes on the head for a node. The kernel numbers a node's interfaces in this order."""
        # The same hardware address for ever: a node that was remade is found by those who knew it.
        return f"link add link wire0 name eth0 address {node.mac} netns {node.pid} type macvlan mode bridge\n"

    def addresses(self, node: Node) -> str:  # noqa: ARG002  others ask who it is
        """Return what ip is told on the node itself beside eth0, which node.sh sees to."""
        return ""


class SeveralNics(Wiring):
    """Two networks and what virtual machinery leaves on hosts.

    - eth0, 10.77.0.0/24, 1 Gb/s, the default route: who logs in comes by it, and the hosts' names mean it;
    - a fast one, 10.78.0.0/24, 10 Gb/s, MTU 9000, called fast0 on odd hosts and enp3s0 on even ones, not on the head;
    - first in the kernel's order a veth pair with 192.168.49.1, and docker0 with 172.17.0.1, on every host the same.
    """

    _wire = "tuntap add dev wire0 mode tap\n"
    _more = "link add switch type bridge\nlink set switch mtu 9000 up\n"

    def head(self, pid: int) -> None:
        """Lay the head's side."""
        super().head(pid)
        namespaces.run(["nsenter", "-t", str(pid), "-n", "ethtool", "-s", "wire0", "speed", "1000", "duplex", "full"])
        namespaces.run(namespaces.enter(pid, ["/usr/bin/python3", "-Ic", HOLD]))

    def nics(self, number: int) -> tuple[str, ...]:
        return ("fast0" if number % 2 else "enp3s0", "eth0")

    def links(self, node: Node) -> str:
        virtual = "".join(
            f"link add {one} netns {node.pid} type veth peer name {other} netns {node.pid}\n"
            for one, other in (("veth1a2b", "veth3c4d"), ("veth5e6f", "veth7a8b"))
        )
        bridge = f"link add docker0 netns {node.pid} type bridge\n"
        port, cable = port_of(node), cable_of(node)
        fast = (
            f"link add {port} mtu 9000 type veth peer name {cable} mtu 9000\n"
            f"link set {port} master switch up\nlink set {cable} up\n"
            f"link add link {cable} name {node.nics[0]} netns {node.pid} mtu 9000 type macvlan mode bridge\n"
        )
        return virtual + bridge + fast + super().links(node)

    def unplug(self, node: Node) -> str:
        return f"link delete {port_of(node)}\n"

    def addresses(self, node: Node) -> str:
        fast = node.nics[0]
        up = "".join(
            f"link set {name} up\n" for name in ("veth1a2b", "veth3c4d", "veth5e6f", "veth7a8b", "docker0", fast)
        )
        return (
            "link set veth5e6f master docker0\naddress add 192.168.49.1/24 dev veth1a2b\n"
            f"address add 172.17.0.1/16 dev docker0\naddress add {fast_address(node)}/24 dev {fast}\n{up}"
        )


class TwoBridges(Wiring):
    """One network of two switches, left and right, with a cable between them; the head and half of the nodes are left.

    `half`: so many nodes are on the left one.
    """

    trunk = ("trunk0", "trunk1")  # both ends of the cable, on the head

    def __init__(self, half: int) -> None:
        self.half = half

    def head(self, pid: int) -> None:
        """Lay the head's side."""
        one, other = self.trunk
        ip(
            pid,
            f"link set lo up\nlink add left type bridge\nlink add right type bridge\nlink set left up\n"
            f"link set right up\nlink add {one} type veth peer name {other}\nlink set {one} master left up\n"
            f"link set {other} master right up\nlink add eth0 type veth peer name port0\n"
            "link set port0 master left up\naddress add 10.77.0.254/24 dev eth0\nlink set eth0 up\n",
        )

    def links(self, node: Node) -> str:
        side = "left" if node.number <= self.half else "right"
        return (
            f"link add {port_of(node)} type veth peer name eth0 address {node.mac} netns {node.pid}\n"
            f"link set {port_of(node)} master {side} up\n"
        )


ONE_NIC, SEVERAL_NICS = Wiring(), SeveralNics()


def fast_address(node: Node) -> str:
    return f"10.78.0.{node.number}"


def port_of(node: Node) -> str:
    """Return the switch's port that the node's fast interface is plugged into, by its name on the head."""
    return f"port{node.number}"


def cable_of(node: Node) -> str:
    """Return the other end of that port, which the fast interface sits on."""
    return f"cable{node.number}"


def ip(pid: int, batch: str) -> None:
    """Run a batch of lines in the network of a process."""
    namespaces.run(["nsenter", "-t", str(pid), "-n", "ip", "-batch", "-"], stdin=batch)
