"""NCCL's own lines of which network it uses: no fault by themselves, and the cause of connections that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from doctor.triage.lines import Line
from doctor.triage.signature import Grade, Reading
from doctor.triage.used import Way, used_ways

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


def strange_interfaces(lines: Sequence[Line]) -> Iterator[tuple[Reading, tuple[Line, ...]]]:
    """Yield the lines in which NCCL takes first what leads nowhere: a tie of loopback, bridge or link-local address."""
    bad = tuple(line for line in lines if "sing" in line.text and _leads_nowhere(line.text))
    if bad:
        yield _STRANGE, bad


def _leads_nowhere(text: str) -> bool:
    """Tell whether the first of the sockets named is such a one; what a veth with a real address is, its node knows."""
    first: Way | None = next((way for way in used_ways([text]) if not way.hca), None)
    if first is None:
        return False
    bad_address = first.address.lower().startswith(_ADDRESSES)
    return bad_address or (first.name.startswith(_NAMES) and not first.name.startswith("veth"))
