"""Network interfaces that NCCL chose: names that differ, and those over which no other node is reached."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.triage.across_lines.addresses import LINK_LOCAL, LOCAL, LOOPBACK
from ncheck.triage.certainty import Grade
from ncheck.triage.lines import LogLine
from ncheck.triage.nccl_network import NetworkUse, Role, network_uses
from ncheck.triage.signature import Detected, Detector, LineClue

# Prefixes of bridges, tunnels and USB network adapters. A veth may be all that a container has, and lead out of it.
_VIRTUAL = ("docker", "virbr", "br-", "cni", "flannel", "cali", "tunl", "ip6tnl", "tailscale", "wg", "usb")

# Bridges of Docker and libvirt: with the same address on every node. br-9f2c41d07ab3 is a network of Docker's.
_BRIDGES_OWN = frozenset({"172.17.0.1", "192.168.122.1"})
_BRIDGE = expression(r"(?:docker|virbr)\d|br-[0-9a-f]{12}$")

# What may stand in a command: the kernel allows more in the name of an interface.
_PLAIN_NAME = expression(r"[A-Za-z0-9_.-]{1,15}")
_EXPLAINED = frozenset({"connect", "waits", "gone", "system", "stall"})

_WRONG_INTERFACE = LineClue(
    "wrong_nic",
    Grade.LIKELY,
    ("container_isolation", "nic_names_differ"),
    context=True,
    explains=_EXPLAINED,
    lasting=True,
)

_MOST_INTERFACES = 3


@dataclass(frozen=True)
class _Chosen:
    """What NCCL of one node uses for its data over TCP: each interface with the line that names it."""

    uses: tuple[tuple[NetworkUse, LogLine], ...]

    @property
    def has_good(self) -> bool:
        return any(not _is_local(use) for use, _ in self.uses)

    @property
    def nowhere(self) -> list[tuple[int, NetworkUse, LogLine]]:
        """The interfaces beyond the first that lead nowhere: each with its number."""
        return [(number, use, line) for number, (use, line) in enumerate(self.uses) if number and _leads_nowhere(use)]


def interfaces_that_lead_nowhere(lines: Sequence[LogLine]) -> Detected:
    """Yield the lines in which NCCL uses, first or also, an interface over which no other node is reached.

    A first choice that is loopback, a bridge or link-local is no fault by itself, unless several nodes do so with an
    address that only the node itself can reach. TCP carries data over every interface of the list: beside one that
    leads to the other nodes, one that does not is a fault, unless the job makes steps. With InfiniBand or RoCE only the
    first is used, to meet.
    """
    chosen = [(line, _first_socket(line.text)) for line in lines if "sing" in line.text]
    local = [(line, use) for line, use in chosen if use and _is_local(use)]
    by_host = _data_over_tcp(lines)
    uses = [use for line in lines if "sing" in line.text for use in network_uses([line.text])]
    fix = _only(use.name for use in uses if use.address and not _is_local(use))
    if local:
        meaning = f"NCCL chose {_named(use for _, use in local)}, which no other node can reach"
        clue = replace(_WRONG_INTERFACE, meaning=meaning, fix=fix)
        yield clue, tuple(line for line, _ in local)
        clue = replace(clue, context=False, explains=frozenset())
        for link_local in (True, False) if _hosts(lines) > 1 else ():
            dead = tuple(line for line, use in local if _leads_nowhere(use) and _is_link_local(use) is link_local)
            if dead:  # NCCL can start over link-local addresses that happen to be of one link
                yield replace(clue, passing=link_local), dead
    also = [(number, use, line) for one in by_host.values() if one.has_good for number, use, line in one.nowhere]
    if also:
        found = _named(use for _, use, _ in also)
        meaning = f"NCCL also sends data over {found}, which no other node can reach"
        clue = replace(_WRONG_INTERFACE, meaning=meaning, fix=fix)
        shown = tuple({line.order: line for _, _, line in also}.values())
        yield clue, shown
        carried = _channels_over({number for number, _, _ in also}, lines)
        grade = Grade.LIKELY if carried and _hosts(lines) > 1 else Grade.POSSIBLE
        if carried or not on_one_node(lines):
            yield replace(clue, context=False, explains=frozenset(), grade=grade), (*shown[:3], *carried)


def _data_over_tcp(lines: Sequence[LogLine]) -> dict[str, _Chosen]:
    """Return by host what carries NCCL's data over TCP; hosts that use InfiniBand or a plug-in are left out."""
    uses: dict[str, dict[NetworkUse, LogLine]] = {}
    others: set[str] = set()
    for line in lines:
        if "sing" not in line.text and "ssigned" not in line.text:
            continue
        for use in network_uses([line.text]):
            if use.role is Role.SOCKET:
                uses.setdefault(line.host, {}).setdefault(use, line)
            elif use.hca or (use.role is Role.NETWORK and use.name != "Socket"):
                others.add(line.host)
    return {host: _Chosen(tuple(found.items())) for host, found in uses.items() if host not in others}


# node01:77:80 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/1
_OVER = expression(r" via NET/Socket/(\d{1,3})\b")


def _channels_over(numbers: Container[int], lines: Sequence[LogLine]) -> tuple[LogLine, ...]:
    """Return the first line that shows that a channel was made over one of these interfaces."""
    for line in lines:
        if (match := _OVER.search(line.text)) and int(match[1]) in numbers:
            return (line,)
    return ()


# node01:77:80 [0] NCCL INFO comm 0x55d0 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0
_ONE_NODE = expression(r" nNodes 1\b")


def on_one_node(lines: Sequence[LogLine]) -> bool:
    """Return whether the job runs on one node, as NCCL says or as the channels do that it made: it needs no network."""
    if _hosts(lines) > 1:
        return False
    local = any(" via P2P/" in line.text for line in lines) and not any(" via NET/" in line.text for line in lines)
    return local or any(_ONE_NODE.search(line.text) for line in lines)


def _hosts(lines: Iterable[LogLine]) -> int:
    return len({line.host for line in lines if line.host})


def _named(uses: Iterable[NetworkUse]) -> str:
    """Return the interfaces and their addresses: "veth3f9a1c2 (fe80::1) and 2 more"."""
    by_name = {use.name: f"{use.name} ({use.address.partition('%')[0]})" for use in uses}
    shown = list(by_name.values())
    more = f" and {len(shown) - _MOST_INTERFACES} more" if len(shown) > _MOST_INTERFACES else ""
    return ", ".join(shown[:_MOST_INTERFACES]) + more


def _only(names: Iterable[str]) -> str:
    """Return the command that makes NCCL use these interfaces alone, by whatever launcher; "" for none."""
    plain = [name for name in dict.fromkeys(names) if _PLAIN_NAME.fullmatch(name)]
    return f"echo NCCL_SOCKET_IFNAME=={','.join(plain)} >> ~/.nccl.conf" if plain else ""


def _first_socket(text: str) -> NetworkUse | None:
    return next((use for use in network_uses([text]) if not use.hca and use.role is not Role.NETWORK), None)


def _is_local(use: NetworkUse) -> bool:
    return use.name.startswith(_VIRTUAL) or use.address.lower().startswith(LOCAL)


def _is_link_local(use: NetworkUse) -> bool:
    return use.address.lower().startswith(LINK_LOCAL)


def _leads_nowhere(use: NetworkUse) -> bool:
    """Return whether an interface leads to no other node, whatever its name: one that is virtual may be routed."""
    own = use.address.startswith(LOOPBACK) or use.address in _BRIDGES_OWN
    return own or _is_link_local(use) or bool(_BRIDGE.match(use.name))


# node02:77:77 [0] NCCL WARN Bootstrap : no socket interface found
_NO_INTERFACE = expression(r"no socket interface found|NET/Socket ?: no interface found")


def names_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield that NCCL finds the interface on some nodes and not on others: one name does not fit all of them."""
    lacking = {line.host: line for line in lines if line.host and _NO_INTERFACE.search(line.text)}
    found = {line.host: line for line in lines if line.host and "sing" in line.text and _first_socket(line.text)}
    others = [line for host, line in found.items() if host not in lacking]
    if lacking and others:
        clue = LineClue("nic_names_differ", Grade.CERTAIN, ("no_interface",), explains=frozenset({"interface"}))
        yield clue, (next(iter(lacking.values())), others[0])


_ADDRESS = expression(r"(\d{1,3}\.\d{1,3})\.\d{1,3}\.\d{1,3}$")

_OTHER_NAMES = LineClue(
    "nic_names_differ",
    Grade.LIKELY,
    ("wrong_nic", "routing"),
    context=True,
    explains=frozenset({"connect", "waits", "gone", "system"}),
    meaning="the nodes use interfaces of different names and networks",
)


def interfaces_differ(lines: Sequence[LogLine]) -> Detected:
    """Yield a line for each interface that NCCL chose first, if names and networks differ between the nodes.

    That is no fault by itself. Different names in one network are none at all.
    """
    by_host: dict[str, tuple[NetworkUse, LogLine]] = {}
    for line in lines:
        if line.host and "sing" in line.text and (use := _first_socket(line.text)) and not _is_local(use):
            by_host.setdefault(line.host, (use, line))
    networks = {match[1] for use, _ in by_host.values() if (match := _ADDRESS.match(use.address))}
    by_name = {use.name: line for use, line in reversed(by_host.values())}
    if len(by_name) > 1 and len(networks) > 1:
        yield _OTHER_NAMES, tuple(by_name.values())


DETECTORS: tuple[Detector, ...] = (interfaces_that_lead_nowhere, names_differ, interfaces_differ)
WORDS = (
    "bootstrap", "net/socket", "net : using", "net/ib", "using network", "socket interface found", " nnodes ",
    "plugin",
)  # fmt: skip
