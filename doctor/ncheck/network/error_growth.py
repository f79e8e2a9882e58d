"""How much the error counters of ports and network cards grew between the two looks of a run.

What was counted before says nothing: counters of years, of a cable that was exchanged, of a job of last week.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from shlex import quote

from ncheck.facts.error_counters import Counted, ErrorCountersFacts, LaterErrorCountersFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.nics import NicFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Inconclusive, NotApplicable, Problem
from ncheck.model.cluster import Cluster, NodeView
from ncheck.model.fact import Unread
from ncheck.nccl.hca_ports import usable
from ncheck.parity import nodes_by_value
from ncheck.parse.interface_names import Kind
from ncheck.text import moved

# Counters that stop at their largest value: InfiniBand's PortCounters, as in drivers/infiniband/core/sysfs.c of Linux.
_LARGEST = {
    "local_link_integrity_errors": 15, "excessive_buffer_overrun_errors": 15, "link_error_recovery": 255,
    "link_downed": 255, "port_xmit_constraint_errors": 255, "symbol_error": 65535, "port_rcv_errors": 65535,
    "port_xmit_discards": 65535,
}  # fmt: skip
_LARGEST_OF_OTHERS = 2**32 - 1
DAMAGE_NOW = "damaged data in this run"  # what link-errors-grow explains: that a port has counted more than others
_LINES = 32  # ports in the evidence of one finding
# Named beside lost packets: they tell congestion from a cable. EFA sends some packets again all the time.
_CONGESTION = ("rp_cnp_handled", "np_cnp_sent", "retrans_pkts")


@dataclass(frozen=True)
class Growth:
    """What one port or card counted during a run: by how much its counters grew, and the bytes that it carried.

    `stuck` are counters that stand at their largest value: they cannot grow. `rate` of an HCA port is in Gb/s.
    """

    seconds: float
    errors: Mapping[str, int]
    stuck: frozenset[str] = frozenset()
    sent: int = 0
    received: int = 0
    rate: float | None = None


# The counters of a port that grew by more than they may; empty where all is well. Asked only where some grew.
Judged = Callable[[Growth], Mapping[str, int]]


def grown(first: Counted, later: Counted, seconds: float, rate: float | None = None) -> Growth:
    """Compare two looks. A counter that became smaller was set to 0: it grew by at least what it shows."""

    def since(before: int, after: int) -> int:
        return after - before if after >= before else after

    stuck, errors = set[str](), dict[str, int]()
    for name, count in later.errors.items() if any(later.errors.values()) or first.errors != later.errors else ():
        before = first.errors.get(name, 0)
        if before != count:
            errors[name] = since(before, count)
        elif count and count == _LARGEST.get(name, _LARGEST_OF_OTHERS):
            stuck.add(name)
    sent, received = since(first.sent or 0, later.sent or 0), since(first.received or 0, later.received or 0)
    return Growth(max(seconds, 0.0), errors, frozenset(stuck), sent, received, rate)


def problems(
    cluster: Cluster, counters: tuple[str, ...], judged: Judged, fault: str
) -> Iterator[Problem | Inconclusive | NotApplicable]:
    """Yield one problem for all nodes on which the same ports show a fault of these counters."""
    bad: dict[str, dict[str, str]] = {}
    for node in cluster:
        for compared in _compared(node, counters):
            if not isinstance(compared, tuple):
                yield compared
            elif compared[1].errors and (found := judged(compared[1])):
                bad.setdefault(node.name, {})[compared[0]] = _line(compared[1], found)
    for names, nodes in nodes_by_value({node: tuple(lines) for node, lines in bad.items()}).items():
        evidence = [f"{node}: {name}: {line}" for node in nodes for name, line in bad[node].items()]
        alone = f": {bad[nodes[0]][names[0]]}" if len(evidence) == 1 else ""
        yield Problem(
            f"{', '.join(names)} {fault}{alone}", looked_at(names[0]), tuple(evidence[:_LINES]), nodes,
            look=True, summary=f"{names[0]} {fault}",
        )  # fmt: skip


def _compared(node: NodeView, counters: tuple[str, ...]) -> Iterator[tuple[str, Growth] | Inconclusive | NotApplicable]:
    """Yield the growth of each port and card that a job uses, and what could not be compared."""
    first, later = node[ErrorCountersFacts], node[LaterErrorCountersFacts]
    nics = node.maybe(NicFacts)
    used = used_ports(node)
    if not used and isinstance(nics, Unread):
        yield Inconclusive(f"which network cards a job uses could not be read: {nics.reason}", (node.name,))
    if unseen := [name for name in used if ":" in name and name not in first.ports]:
        yield Inconclusive(f"the counters of {unseen[0]} could not be read", (node.name,))
    used = {name: rate for name, rate in used.items() if name in first.ports and first.ports[name].counters}
    if not used:
        yield NotApplicable("no port or network card that a job uses counts errors", (node.name,))
    for name, rate in used.items():
        if name not in later.ports:
            yield Inconclusive(f"{name} was no longer there at the end of the run", (node.name,))
            continue
        if first.ports[name].counters != later.ports[name].counters:
            yield Inconclusive(f"not all counters of {name} could be read twice", (node.name,))
            continue
        growth = grown(first.ports[name], later.ports[name], later.at - first.at, rate)
        if stuck := sorted(growth.stuck.intersection(counters)):
            why = "is at its largest value and cannot grow (sudo perfquery -R sets it to 0)"
            yield NotApplicable(f"{stuck[0]} of {name} {why}", (node.name,))
        yield name, growth


def used_ports(node: NodeView) -> dict[str, float | None]:
    """Return the ports and cards that a job may use, each with its rate in Gb/s: Active HCA ports, of RoCE those that a
    job can use, and their network interfaces; on a node without any, the network cards that have an address, and the
    members of bonds. Where the state of HCAs could not be read, all of their ports may be used.
    """
    adapters, nics = node.maybe(InfinibandFacts), node.maybe(NicFacts)
    if isinstance(adapters, Unread):
        return dict.fromkeys(name for name in node[ErrorCountersFacts].ports if ":" in name)
    libraries = node.maybe(LibraryFacts)
    ports = [
        port for port in (adapters.ports if isinstance(adapters, InfinibandFacts) else ())
        if port.state == "Active" and (port.link_layer != "Ethernet" or usable(port.hca, libraries))
    ]  # fmt: skip
    held = nics.interfaces if isinstance(nics, NicFacts) else ()
    beneath = {port.netdev for port in ports if port.netdev}
    if ports:
        cards = [nic for nic in held if not beneath.isdisjoint((nic.name, nic.master))]
    else:
        cards = [nic for nic in held if nic.usable or (nic.kind is Kind.BOND_SLAVE and nic.running)]
    return {port.name: port.rate for port in ports} | {nic.name: (nic.speed or 0) / 1000 or None for nic in cards}


def _line(growth: Growth, found: Mapping[str, int]) -> str:
    """Return a port's counters in words: "symbol_error +1200 in 64 s (19 per second, 61.2 GB received)"."""
    also = {name: growth.errors[name] for name in _CONGESTION if name in growth.errors and name not in found}
    counts = ", ".join(f"{name} +{count}" for name, count in {**found, **also}.items())
    often = sum(found.values()) / growth.seconds if growth.seconds else 0.0
    per = f"{often:.3g} per second, " if often else ""
    carried = f"{moved(growth.received)} received, {moved(growth.sent)} sent"
    return f"{counts} in {growth.seconds:.0f} s ({per}{carried})"


def looked_at(name: str) -> str:
    """Return the command that prints the counters of a port or card; any user may type it."""
    hca, _, port = name.partition(":")
    if port:
        return f"grep -H . /sys/class/infiniband/{quote(hca)}/ports/{quote(port)}/*counters/*"
    return f"ip -s -s link show dev {quote(name)}"
