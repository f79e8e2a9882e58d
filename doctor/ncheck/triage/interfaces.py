"""NCCL's own lines of which network it uses: no fault by themselves, and the cause of connections that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ncheck.triage.lines import Line
from ncheck.triage.signature import Grade, Reading
from ncheck.triage.used import Role, Way, used_ways

_CONNECT = frozenset({"connect", "waits", "gone", "system"})


# By the beginning of a name: bridges, one end of a pair, tunnels.
_NAMES = ("docker", "virbr", "br-", "veth", "cni", "flannel", "cali", "tunl", "ip6tnl", "tailscale", "wg", "usb")


_ADDRESSES = ("127.", "::1", "169.254.", "fe80:", "172.17.", "192.168.122.")


_STRANGE = Reading(
    "wrong_nic",
    Grade.LIKELY,
    ("container_isolation", "nic_names_differ"),
    context=True,
    explains=_CONNECT,
    meaning="NCCL took an interface that does not lead to the other nodes",
)


# By such a one two nodes never meet, and each node has it.
_EVERYWHERE = ("127.", "::1", "169.254.", "172.17.0.1", "192.168.122.1")


_NO_WAY = replace(_STRANGE, context=False, explains=frozenset(), passing=True)


def strange_interfaces(lines: Sequence[Line]) -> Iterator[tuple[Reading, tuple[Line, ...]]]:
    """Yield the lines in which NCCL takes first what leads nowhere: a tie of loopback, bridge or link-local address."""
    bad = tuple(line for line in lines if "sing" in line.text and _leads_nowhere(line.text))
    if bad:
        yield _STRANGE, bad
    hosts = {line.host for line in lines if line.host}
    hopeless = tuple(line for line in bad if _first(line.text).address.startswith(_EVERYWHERE))
    if hopeless and len(hosts) > 1:
        yield _NO_WAY, hopeless


_NOTHING = Way(Role.NETWORK, "")


def _first(text: str) -> Way:
    """Return the first socket that a line names."""
    return next((way for way in used_ways([text]) if not way.hca and way.role is not Role.NETWORK), _NOTHING)


def _leads_nowhere(text: str) -> bool:
    """Tell whether the first of the sockets named is such a one; what a veth with a real address is, its node knows."""
    first = _first(text)
    bad_address = first.address.lower().startswith(_ADDRESSES)
    return bad_address or (first.name.startswith(_NAMES) and not first.name.startswith("veth"))
