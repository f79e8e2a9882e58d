"""Whether data flows between the nodes of a job, by the counters of interfaces and HCA ports; and what they lose.

A node exchanges data if an interface or port sends and receives 4 MB/s or more: monitoring, logs and logins stay far
below, gradients of small models far above, and what is read off a file server goes one way only. Below 0.5 MB/s a node
stands still. Between the two nothing is concluded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ncheck.parse.interface_names import Kind, kind_by_name
from ncheck.text import moved
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.counters import CountersFacts, NicTraffic, PortTraffic, TcpTraffic
from ncheck.triage.facts.jobs import jobs_of
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.sockets import SocketsFacts

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.job import Job

READS = (ProcessesFacts, CountersFacts, SocketsFacts)

_FLOWS, _STILL = 8e6, 1e6  # bytes in two seconds


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield whether the job's nodes exchange data, and errors that grow."""
    facts = {node: one for node, one in cluster.facts(CountersFacts).items() if node in job.nodes}
    others = [one for one in jobs_of(cluster) if one.key != job.key and set(one.nodes) & set(job.nodes)]
    yield from _flow(job, facts, shared=bool(others))
    sockets = cluster.facts(SocketsFacts)
    again = {node: _resent(one) for node, one in facts.items() if _is_the_jobs(job, node, sockets.get(node))}
    yield from _resending(job, facts, {node: one for node, one in again.items() if one})
    for node, one in facts.items():
        for name, nic in _wires(one).items():
            yield from _nic_errors(node, name, nic)
        for name, port in one.ports.items():
            yield from _port_errors(node, name, port)
    yield from _ports_down(job, facts)


def _wires(facts: CountersFacts) -> dict[str, NicTraffic]:
    """Return the interfaces that may lead to other nodes, of all namespaces."""
    inside = (Kind.LOOPBACK, Kind.CONTAINER_BRIDGE, Kind.VETH)
    found = {name: nic for nics in facts.interfaces.values() for name, nic in nics.items()}
    return {name: nic for name, nic in found.items() if kind_by_name(name) not in inside}


# Whether data flows


def _flow(job: Job, facts: Mapping[str, CountersFacts], *, shared: bool) -> Iterator[Sign]:
    """Yield whether data flows between the nodes. On nodes that another job uses too, it may be the other's."""
    if len(job.nodes) < 2 or set(facts) < set(job.nodes):  # noqa: PLR2004  one node alone exchanges nothing
        return
    both = {node: max(map(min, _amounts(one)), default=0) for node, one in facts.items()}
    either = {node: max(map(max, _amounts(one)), default=0) for node, one in facts.items()}
    still = [node for node, most in either.items() if most < _STILL]
    if shared:
        return
    if all(least >= _FLOWS for least in both.values()):
        text = f"each node sent and received {moved(min(both.values()))} or more in 2 s"
        yield Motion("counters", None, "", moves=True, text=text)
    elif len(still) == len(facts):
        text = f"no interface and no HCA port moved more than {moved(max(either.values()))} in 2 s"
        yield Motion("counters", None, "", moves=False, text=text)
    elif len(still) == 1 and len(facts) > 2 and all(both[node] >= _FLOWS for node in facts if node not in still):  # noqa: PLR2004
        ranks = tuple(one.rank for one in job.on(still[0]) if one.rank is not None)
        yield Clue(
            "counters", "slow_rank_timeout", Grade.POSSIBLE,
            f"{still[0]} moved {moved(either[still[0]])} in 2 s, while all other nodes exchange data", ranks,
            (still[0],), others=("network_stalled", "deadlock"),
        )  # fmt: skip


def _amounts(facts: CountersFacts) -> list[tuple[int, int]]:
    """Return what each interface and port sent and received."""
    ports = [(one.sent or 0, one.received or 0) for one in facts.ports.values()]
    return [*((one.sent, one.received) for one in _wires(facts).values()), *ports]


# What TCP had to send again


_MANY, _SHARE, _SLOW_SHARE = 1000, 0.1, 0.02


def _resent(facts: CountersFacts) -> TcpTraffic | None:
    """Return the namespace that sent most segments again; None if that is not worth mentioning."""
    found = [one for one in facts.tcp.values() if one.resent > 1 and one.resent >= _SLOW_SHARE * one.sent]
    return max(found, key=lambda one: one.resent, default=None)


def _is_the_jobs(job: Job, node: str, sockets: SocketsFacts | None) -> bool:
    """Return whether the job's own connections sent something again, as far as that is known: a login may be slow."""
    if sockets is None:
        return True
    held = (sockets.of(one.pid) for one in job.on(node))
    looks = [(it.first, it.last) for found in held if isinstance(found, tuple) for it in found]
    return any(
        first and last and (last.retransmits > 0 or (last.resent or 0) > (first.resent or 0)) for first, last in looks
    )


def _resending(job: Job, facts: Mapping[str, CountersFacts], again: Mapping[str, TcpTraffic]) -> Iterator[Clue]:
    quiet = [node for node in facts if node not in again]
    only_one = len(quiet) == 1 and len(again) > 1 and len(facts) == len(job.nodes)
    nodes = tuple(quiet) if only_one else tuple(again)
    for node, tcp in again.items():
        text = f"{node} sent {tcp.resent} of {tcp.sent} TCP segments again in 2 s"
        if tcp.resent >= _SHARE * tcp.sent:
            after = f", as do all nodes but {quiet[0]}" if only_one else ""
            yield Clue("counters", "network_stalled", Grade.POSSIBLE, text + after, nodes=nodes, others=("firewall",))
        elif tcp.sent >= _MANY:
            yield Clue(
                "counters", "network_stalled", Grade.POSSIBLE, text, nodes=(node,), still=False, slow=True,
                meaning="packets are lost between the nodes, which slows the job",
            )  # fmt: skip


# Interfaces and ports that lose data


_ERRORS, _DROPS, _DROPPED_SHARE = 10, 1000, 0.01  # packets in two seconds


def _nic_errors(node: str, name: str, nic: NicTraffic) -> Iterator[Clue]:
    lossy = {"errors": nic.errors >= _ERRORS, "drops": nic.drops >= max(_DROPS, _DROPPED_SHARE * nic.packets)}
    for what in (what for what, much in lossy.items() if much):
        count = nic.errors if what == "errors" else nic.drops
        yield Clue(
            "counters", "network_stalled", Grade.POSSIBLE,
            f"{name} of {node} counted {count} {what} in 2 s, of {nic.packets} packets", nodes=(node,), still=False,
            slow=True, meaning="an interface loses packets, which slows the job", looks=(f"ethtool -S {name}",),
        )  # fmt: skip


_LINK = ("link_downed", "link_error_recovery")
_WIRE = (
    "symbol_error", "port_rcv_errors", "port_xmit_discards", "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)  # fmt: skip
_UNANSWERED = ("local_ack_timeout_err", "req_transport_retries_exceeded", "rnr_nak_retry_err", "packet_seq_err")


def _port_errors(node: str, name: str, port: PortTraffic) -> Iterator[Clue]:
    errors = port.errors or {}
    for one in (one for one in _LINK if errors.get(one)):
        text = f"the link of {name} on {node} was lost while it was watched: {one} grew by {errors[one]}"
        yield Clue("counters", "ib_fabric", Grade.CERTAIN, text, nodes=(node,), still=False)
    for one in (one for one in _WIRE if errors.get(one, 0) >= _ERRORS):
        text = f"{one} of {name} on {node} grew by {errors[one]} in 2 s"
        yield Clue("counters", "ib_fabric", Grade.LIKELY, text, nodes=(node,), still=False, slow=True)
    for one in (one for one in _UNANSWERED if errors.get(one)):
        text = f"the other side did not answer {name} on {node}: {one} grew by {errors[one]} in 2 s"
        yield Clue("counters", "ib_fabric", Grade.LIKELY, text, nodes=(node,), others=("network_stalled", "roce_gid"))


def _ports_down(job: Job, facts: Mapping[str, CountersFacts]) -> Iterator[Clue]:
    """Yield the ports that are not active, and are on most other nodes, or that the job is set to use."""
    for node, one in facts.items():
        asked = {rank.variables.get("NCCL_IB_HCA", "") for rank in job.on(node)}
        for name, port in one.ports.items():
            same = [other.ports[name].state for there, other in facts.items() if there != node and name in other.ports]
            common = 2 * same.count("ACTIVE") > len(same) > 0
            if port.state not in ("ACTIVE", "") and (common or any(_names(text, name) for text in asked)):
                where = f"{name} of {node} is {port.state}"
                text = f"{where}; it is ACTIVE on {same.count('ACTIVE')} other nodes" if common else where
                yield Clue("counters", "ib_fabric", Grade.LIKELY, text, nodes=(node,), others=("ib_wrong_hca",))


def _names(text: str, port: str) -> bool:
    """Return whether NCCL_IB_HCA names a port: prefixes as in mlx5, or with = exactly, as in =mlx5_0:1,mlx5_2."""
    if not text or text.startswith("^"):
        return False
    entries = re.split(",", text.lstrip("="))
    if text.startswith("="):
        return any(entry in (port, port.partition(":")[0]) for entry in entries)
    return any(entry and port.startswith(entry) for entry in entries)
