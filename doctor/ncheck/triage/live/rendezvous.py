"""Whether the ranks of a job look for each other in the same place: their variables, names, ports and interfaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from ncheck.facts.ranks import ranks_text
from ncheck.lazy_dataclass import dataclass
from ncheck.model.job import Job, RankProcess
from ncheck.text import printable
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Sign
from ncheck.triage.connections import (
    ConnectionEnd,
    Connections,
    connections,
    is_loopback,
    is_ras,
    leads_nowhere,
    ports_of_masters,
)
from ncheck.triage.facts.jobs import run_id
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.sockets import Listener, SocketsFacts, master_port

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster

READS = (ProcessesFacts, SocketsFacts)


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what the ranks do not agree on, and what of it leads nowhere."""
    facts = cluster.facts(SocketsFacts)
    seen = connections(job, cluster)
    masters = [one for rank in job.ranks if (one := _master(rank, facts, seen))]
    yield from _variables(job)
    yield from _names(masters)
    yield from _loopback(job, masters)
    yield from _master_port(job, facts, seen, masters)
    yield from _chosen_interfaces(job, facts, seen)
    yield from _run_ids(job)
    yield from _listening(job, seen)


# What the variables say


def _variables(job: Job) -> Iterator[Clue]:
    sizes = [(one, one.size) for one in job.ranks if one.size]
    yield from _odd("world size", "WORLD_SIZE", sizes)
    ports = [(one, port) for one in job.ranks if (port := master_port(one.variables))]
    yield from _odd("port of the rendezvous", "MASTER_PORT", ports)
    numbers = Counter(one.rank for one in job.ranks if one.rank is not None)
    for number in (number for number, times in numbers.items() if times > 1):
        twice = [one for one in job.ranks if one.rank == number]
        if len({(one.node, one.process.parent) for one in twice}) > 1 and len({one.process.argv for one in twice}) == 1:
            where = " and ".join(f"pid {one.pid} on {one.node}" for one in twice[:4])
            yield _misconfig(f"{len(twice)} processes are rank {number}: {where}", (number,), twice)


def _odd(what: str, variable: str, values: Sequence[tuple[RankProcess, int]]) -> Iterator[Clue]:
    """Yield the ranks whose value is not that of the others; without a majority, not that of rank 0."""
    counts = Counter(value for _, value in values)
    if len(counts) < 2:  # noqa: PLR2004
        return
    (common, times), *_ = counts.most_common()
    first = next((value for one, value in values if one.rank == 0), None)
    if 2 * times <= len(values):
        if first is None:
            shown = ", ".join(f"{variable}={value}" for value in sorted(map(str, counts)))
            yield Clue(
                "sockets", "rendezvous_misconfig", Grade.LIKELY, f"the ranks do not agree on the {what}: {shown}"
            )
            return
        common = first
    for value in (value for value in counts if value != common):
        these = [one for one, held in values if held == value]
        ranks = tuple(one.rank for one in these if one.rank is not None)
        text = f"{ranks_text(ranks) if ranks else these[0].shown} {'has' if len(these) == 1 else 'have'}"
        yield _misconfig(f"{text} {variable}={value}, the others {variable}={common}", ranks, these)


def _misconfig(text: str, ranks: Sequence[int], who: Sequence[RankProcess]) -> Clue:
    nodes = tuple(dict.fromkeys(one.node for one in who))
    return Clue("sockets", "rendezvous_misconfig", Grade.CERTAIN, text, tuple(ranks), nodes)


def _run_ids(job: Job) -> Iterator[Clue]:
    """Yield the nodes whose torchrun waits for others under another id than most."""
    ids = {node: one for node, above in job.launchers.items() if (one := run_id(above))}
    (common, times), *others = Counter(ids.values()).most_common() or [("", 0)]
    if others:
        odd = tuple(node for node, one in ids.items() if one != common) if 2 * times > len(ids) else ()
        shown = ", ".join(f"--rdzv-id={printable(one, 200)} on {node}" for node, one in ids.items())
        yield Clue(
            "sockets", "rendezvous_misconfig", Grade.CERTAIN, f"torchrun was started with different ids: {shown}",
            nodes=odd or tuple(ids), meaning="torchrun of these nodes waits for a run of another id than the others",
        )  # fmt: skip


# Where MASTER_ADDR leads


@dataclass(frozen=True)
class _Master:
    """Where one rank looks for rank 0. `nodes` have an address that the name resolves to; `strangers` are other ones.

    `error`: the name does not resolve. `looped`: it resolves to a loopback address.
    """

    rank: RankProcess
    name: str
    nodes: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    error: str = ""
    looped: str = ""


def _master(rank: RankProcess, facts: Mapping[str, SocketsFacts], seen: Connections) -> _Master | None:
    """Return where a rank looks for rank 0; None if it does not say it, or has names of its own, as in a container."""
    name, known = rank.variables.get("MASTER_ADDR", "").strip(), facts.get(rank.node)
    if not name or known is None:
        return None
    found = known.names.get(name)
    if rank.process.namespace != known.own or found is None:
        return None
    if found.late or not found.addresses:
        return _Master(rank, name, error="the resolver did not answer in time" if found.late else found.error)
    looped = next((ip for ip in found.addresses if is_loopback(ip)), "")
    homes = [seen.homes_of(ip, rank.node) for ip in found.addresses]
    nodes = dict.fromkeys(home.node for one in homes for home in one)
    strangers = [ip for ip, one in zip(found.addresses, homes, strict=True) if not one and not is_loopback(ip)]
    return _Master(rank, name, (rank.node,) if looped else tuple(nodes), tuple(strangers), looped=looped)


def _names(masters: Sequence[_Master]) -> Iterator[Clue]:
    for one in masters:
        if one.error:
            text = f"MASTER_ADDR={printable(one.name, 80)} of {one.rank.shown} does not resolve: {printable(one.error)}"
            yield Clue("sockets", "dns_failure", Grade.LIKELY, text, _numbers(one.rank), (one.rank.node,))


def _numbers(one: RankProcess) -> tuple[int, ...]:
    return () if one.rank is None else (one.rank,)


def _loopback(job: Job, masters: Sequence[_Master]) -> Iterator[Clue]:
    """Yield the ranks that look for rank 0 on their own node, where it is not."""
    first = job.numbered(0)
    for one in masters:
        if one.looped and first and first.node != one.rank.node:
            text = (
                f"MASTER_ADDR={printable(one.name, 80)} resolves to {one.looped} on {one.rank.node}: {one.rank.shown}"
                f" looks for rank 0 on its own node, and it runs on {first.node}"
            )
            cause = "rendezvous_misconfig" if _is_loopback_name(one.name) else "hostname_loopback"
            yield Clue("sockets", cause, Grade.CERTAIN, text, _numbers(one.rank), (one.rank.node,))


def _is_loopback_name(name: str) -> bool:
    """Return whether a name means every node itself, so that no resolver is at fault."""
    return name.startswith(("localhost", "ip6-localhost", "127.")) or name == "::1"


def _master_port(
    job: Job, facts: Mapping[str, SocketsFacts], seen: Connections, masters: Sequence[_Master]
) -> Iterator[Clue]:
    """Yield what is wrong at the address and port of the rendezvous, where no rank is connected to it."""
    first, ports = job.numbered(0), ports_of_masters(job)
    if first is None or len(ports) != 1 or not seen.complete:
        return
    (port,) = ports
    met = {port} & {number for end in seen.ends for number in (end.socket.local_port, end.socket.remote_port)
                    if end.socket.stayed("ESTABLISHED")}  # fmt: skip
    between = any(end.party.rank and (peer := seen.peer(end)) and peer.party.rank for end in seen.ends)
    elsewhere = [one for one in masters if not one.looped and not one.error and first.node not in one.nodes]
    alike = len(elsewhere) == len(masters)
    for one in elsewhere if not (met or between) else ():
        where = f"of {', '.join(one.nodes)}" if one.nodes else "an address that no node of the job has"
        text = (
            f"{one.rank.shown} looks for rank 0 at MASTER_ADDR={printable(one.name, 80)}, {where}; rank 0 runs on"
            f" {first.node}"
        )
        ranks, nodes = ((), ()) if alike else (_numbers(one.rank), (one.rank.node,))
        yield Clue("sockets", "rendezvous_misconfig", Grade.CERTAIN, text, ranks, nodes)
    there = facts.get(first.node)
    if there is None or elsewhere or (between and not _strangers(job, first.node, there, port)):
        return
    listeners = [it for place in there.places.values() for it in place.listeners if it.port == port]
    strangers = _strangers(job, first.node, there, port)
    several = len(job.nodes) > 1
    if listeners and len(strangers) == len(listeners):
        yield Clue(
            "sockets", "port_in_use", Grade.LIKELY,
            f"{printable(strangers[0].by)} listens on port {port} of {first.node}, where rank 0 should", (0,),
            (first.node,), others=("rendezvous_misconfig",),
        )  # fmt: skip
    elif not listeners and not met and masters and len(job.ranks) > 1:
        yield Clue(
            "sockets", "slow_rank_timeout", Grade.LIKELY,
            f"no process listens on port {port} of {first.node}, where {first.shown} should", (0,), (first.node,),
            others=("rendezvous_misconfig", "deadlock", "storage_hang"),
            meaning="rank 0 has not opened the rendezvous: it is late, stuck, or uses another port",
        )  # fmt: skip
    elif listeners and several and all(is_loopback(it.ip) for it in listeners):
        yield Clue(
            "sockets", "hostname_loopback", Grade.CERTAIN,
            f"{first.shown} listens on {listeners[0].ip}:{port} only, which no other node can reach", (0,),
            (first.node,),
        )  # fmt: skip


def _strangers(job: Job, node: str, facts: SocketsFacts, port: int) -> list[Listener]:
    """Return who listens on the port of the rendezvous and is neither a rank nor above one."""
    above = {one.pid for one in job.launchers.get(node, ())}
    found = (it for place in facts.places.values() for it in place.listeners if it.port == port)
    return [it for it in found if not it.asked and it.pid not in above and not (it.pid and job.find(node, it.pid))]


# Interfaces


_A_STEP = 4096  # bytes that two ranks have exchanged: more than who they are
_BY_NAME = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include")


def _chosen_interfaces(job: Job, facts: Mapping[str, SocketsFacts], seen: Connections) -> Iterator[Clue]:
    """Yield the variables that name no interface of a rank's node, or only ones that lead to no other node.

    Of a rank that has exchanged data with one of another node this is a note: it found its way.
    """
    ports, met = ports_of_masters(job), set()
    for end in seen.ends:
        peer, last = seen.peer(end), end.socket.last
        store = not ports.isdisjoint((end.socket.local_port, end.socket.remote_port))
        other = peer is not None and peer.party.rank is not None and peer.party.node != end.party.node
        if other and last and not store and (last.acknowledged or 0) + (last.received or 0) >= _A_STEP:
            met.add((end.party.node, end.party.pid))
    found: dict[tuple[str, str, str, str], list[RankProcess]] = {}
    for one in job.ranks:
        known = facts.get(one.node)
        place = known.places.get(one.process.namespace) if known else None
        for variable in _BY_NAME if place else ():
            assert place  # noqa: S101
            value = one.variables.get(variable, "").strip()
            chosen = _selected(variable, value, place.interfaces, place.addresses)
            if value and not chosen:
                found.setdefault((variable, value, one.node, ""), []).append(one)
            elif value and len(job.nodes) > 1 and all(leads_nowhere("0.0.0.0", name) for name in chosen):  # noqa: S104
                found.setdefault((variable, value, one.node, ", ".join(chosen)), []).append(one)
    for (variable, value, node, names), ranks in found.items():
        numbers = tuple(one.rank for one in ranks if one.rank is not None)
        who = ranks_text(numbers) if numbers else ranks[0].shown
        setting = f"{variable}={printable(value, 80)} of {who}"
        if names:
            text = f"{setting} selects {names} on {node}, which leads to no other node"
            done = all((one.node, one.pid) in met for one in ranks)
            yield Clue("sockets", "wrong_nic", Grade.ECHO if done else Grade.LIKELY, text, numbers, (node,))
        else:
            text = f"{setting} names no interface of {node}"
            yield Clue("sockets", "no_interface", Grade.LIKELY, text, numbers, (node,), looks=("ip -br address",))


def _selected(variable: str, value: str, names: Sequence[str], addresses: Mapping[str, str]) -> tuple[str, ...]:
    """Return the interfaces that a variable selects: NCCL takes prefixes, ^ and =, Open MPI also subnets."""
    if variable.startswith("NCCL"):
        negated, exact = value.startswith("^"), "=" in value[:2]
        entries = [entry.partition(":")[0] for entry in value.lstrip("^=").split(",") if entry]
        fits = [name for name in names if any(name == it if exact else name.startswith(it) for it in entries)]
        return tuple(name for name in names if name not in fits and name != "lo") if negated else tuple(fits)
    entries = [entry.strip() for entry in value.split(",") if entry.strip()]
    if variable.startswith("GLOO"):
        return tuple(name for name in entries if name in names) if set(entries) <= set(names) else ()
    subnets = [entry for entry in entries if "/" in entry]
    within = (name for ip, name in addresses.items() if any(_in(ip, subnet) for subnet in subnets))
    return tuple(dict.fromkeys([*(name for name in entries if name in names), *within]))


def _in(ip: str, subnet: str) -> bool:
    try:
        return ip_address(ip) in ip_network(subnet, strict=False)
    except ValueError:
        return False


def _listening(job: Job, seen: Connections) -> Iterator[Clue]:
    """Yield the ranks that others can reach at no address: they listen on loopback or docker0 alone, and are alone."""
    if len(job.nodes) < 2:  # noqa: PLR2004
        return
    ports = ports_of_masters(job)
    reached = {end.party for end in seen.ends if (peer := seen.peer(end)) and peer.party.node != end.party.node}
    for party in (one for one in seen.parties if one.rank and one not in reached):
        own = [one for one in seen.listening if one.party == party and one.socket.pid == party.pid]
        ends = [one for one in own if one.socket.local_port not in ports and not is_ras(one)]
        if not ends or not all(leads_nowhere(one.socket.local, _interface(one)) for one in ends):
            continue
        ip, interface = ends[0].socket.local, _interface(ends[0])
        text = f"{party.shown} listens on {ip} ({interface or 'unknown interface'}) only, which no other node can reach"
        if not is_loopback(ip):
            yield Clue("sockets", "wrong_nic", Grade.LIKELY, text, party.ranks, (party.node,))
        else:
            grade = Grade.POSSIBLE if ip in _EVERYWHERE else Grade.LIKELY  # 127.0.1.1 is a hostname's, of Debian
            yield Clue("sockets", "hostname_loopback", grade, text, party.ranks, (party.node,), others=("wrong_nic",))


_EVERYWHERE = ("127.0.0.1", "::1")


def _interface(end: ConnectionEnd) -> str:
    return "lo" if is_loopback(end.socket.local) else end.interface
