"""What the TCP connections of a job say: who waits for an answer, what is lost on the way, and who does not read.

Both ends of a connection are looked at. Data that is not acknowledged while the other side's buffer is empty was lost
on the way. If that buffer is full, the process there does not read, and the network is in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING

from ncheck.facts.ranks import ranks_text
from ncheck.text import size
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.connections import (
    ConnectionEnd,
    Connections,
    Party,
    connections,
    is_loopback,
    is_ras,
    leads_nowhere,
    ports_of_masters,
)  # fmt: skip
from ncheck.triage.facts.sockets import SocketsFacts

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.job import Job

READS = (SocketsFacts,)


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what is wrong with the connections, and which ranks sent or received data."""
    seen = connections(job, cluster)
    waiting = _waiting(seen)
    yield from _unanswered(job, seen, waiting)
    yield from _silent_sshd(job, cluster, seen)
    lost = tuple(end for end in seen.ends if _is_lost(seen, end))
    yield from _lost(job, seen, lost)
    yield from _not_read(seen, alone=not waiting and not lost)
    yield from _broken_off(job, seen)
    if not waiting:
        yield from _unconnected(seen)
    yield from _motions(job, seen, waiting)


# Connections that do not come about


def _waiting(seen: Connections) -> tuple[ConnectionEnd, ...]:
    """Return one end for each process and address that it waited for at both looks, be it with another socket."""
    first = {_target(end) for end in seen.ends if end.socket.first and end.socket.first.state == "SYN-SENT"}
    last = {_target(end): end for end in seen.ends if end.socket.last and end.socket.last.state == "SYN-SENT"}
    return tuple(end for target, end in last.items() if target in first)


def _target(end: ConnectionEnd) -> tuple[str, int, str, int]:
    return end.party.node, end.party.pid, end.socket.remote, end.socket.remote_port


def _unanswered(job: Job, seen: Connections, waiting: Sequence[ConnectionEnd]) -> Iterator[Clue]:
    blocked: list[tuple[ConnectionEnd, str]] = []
    for end in waiting:
        homes = seen.homes_of(end.socket.remote, end.party.node)
        nodes = tuple(dict.fromkeys(home.node for home in homes))
        text = f"{end.party.shown} waits for an answer to its connection to {end.remote}"
        if leads_nowhere(end.socket.local, end.interface):
            yield Clue(
                "sockets", "wrong_nic", Grade.LIKELY, f"{text}; it leaves by {end.interface or end.socket.local}",
                end.party.ranks, (end.party.node,), others=("firewall", "routing"),
            )  # fmt: skip
        elif homes and all(leads_nowhere(end.socket.remote, home.interface) for home in homes):
            names = ", ".join(dict.fromkeys(home.interface or "an interface" for home in homes))
            where = f"an address of {names} on {' and '.join(nodes[:4])}, which other nodes cannot reach"
            ranks = tuple(one for node in nodes for one in _listening_at(seen, node, end.socket.remote))
            yield Clue("sockets", "wrong_nic", Grade.CERTAIN, f"{text}, {where}", ranks, nodes)
        elif late := _that_accepts_nothing(seen, end, nodes):
            yield Clue(
                "sockets", "slow_rank_timeout", Grade.LIKELY,
                f"{text}: {late.shown} listens there and accepts no connection", late.ranks, nodes,
                others=("deadlock", "rank_stopped"),
                meaning="a rank accepts no connections: it is stopped, busy or stuck",
            )  # fmt: skip
        elif homes:
            blocked.append((end, text))
        else:
            yield _nobodys(job, end, text, seen)
    yield from _blocked(seen, blocked)


def _listening_at(seen: Connections, node: str, ip: str) -> Iterator[int]:
    found = (one.party.number for one in seen.listening if one.party.node == node and one.socket.local == ip)
    return (number for number in dict.fromkeys(found) if number is not None)


def _that_accepts_nothing(seen: Connections, end: ConnectionEnd, nodes: Sequence[str]) -> Party | None:
    """Return who listens at the other end, if connections wait there at both looks: a full queue takes no more."""
    found = (seen.listener(node, end.socket.remote, end.socket.remote_port) for node in nodes)
    for one in (one for one in found if one):
        first, last = one.socket.first, one.socket.last
        if first and last and last.unread >= first.unread > 0:
            return one.party
    return None


def _nobodys(job: Job, end: ConnectionEnd, text: str, seen: Connections) -> Clue:
    """Return the clue of a connection to an address that no node of the job has."""
    nobody = f"{text}, which no node of the job has"
    if end.socket.remote_port in ports_of_masters(job):
        grade = Grade.CERTAIN if seen.complete else Grade.POSSIBLE
        alike = len({one.variables.get("MASTER_ADDR") for one in job.ranks}) == 1
        who = () if alike else end.party.ranks
        return Clue(
            "sockets", "rendezvous_misconfig", grade, nobody, who, () if alike else (end.party.node,),
            others=("firewall",), meaning="the rendezvous address belongs to no node of the job",
        )  # fmt: skip
    if end.party.rank and ip_address(end.socket.remote).is_private and seen.complete:
        return Clue(
            "sockets", "gloo_bad_address", Grade.LIKELY, nobody, nodes=(end.party.node,),
            others=("wrong_nic", "firewall", "rendezvous_misconfig"),
            meaning="a rank connects to an address that no node of the job has",
        )  # fmt: skip
    return Clue(
        "sockets",
        "firewall",
        Grade.POSSIBLE,
        nobody,
        end.party.ranks,
        (end.party.node,),
        others=("routing", "wrong_nic"),
    )


def _blocked(seen: Connections, blocked: Sequence[tuple[ConnectionEnd, str]]) -> Iterator[Clue]:
    """Yield what blocks connections between nodes, and which nodes all of them have in common."""
    pairs = {
        (end.party.node, home.node) for end, _ in blocked for home in seen.homes_of(end.socket.remote, end.party.node)
    }
    nodes = _in_common(pairs)
    for end, text in blocked:
        answer = seen.other(end)
        if answer and answer.state == "SYN-RECEIVED":
            text += ", which received it: its answers are lost on the way back"  # noqa: PLW2901
        yield Clue("sockets", "firewall", Grade.CERTAIN, text, nodes=nodes, others=("routing", "network_stalled"))


def _pairs(seen: Connections, ends: Iterable[ConnectionEnd]) -> set[tuple[str, str]]:
    """Return the nodes that these connections are between."""
    here = [(end.party.node, end.socket.remote) for end in ends]
    return {(node, home.node) for node, ip in here for home in seen.homes_of(ip, node)}


def _in_common(pairs: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the only node that all pairs have in common; else all nodes, those that do not answer first."""
    common = set.intersection(*map(set, pairs)) if len(pairs) > 1 else set()
    if len(common) == 1:
        return tuple(common)
    return tuple(dict.fromkeys([*(there for _, there in sorted(pairs)), *(here for here, _ in sorted(pairs))]))


def _silent_sshd(job: Job, cluster: Cluster, seen: Connections) -> Iterator[Clue]:
    """Yield the nodes whose sshd took a launcher's connection and never said a word."""
    for end in seen.ends:
        one = end.socket
        helper = next((it for it in job.launchers.get(end.party.node, ()) if it.pid == one.pid), None)
        silent = one.stayed("ESTABLISHED") and one.last and one.last.received == 0
        if helper is None or helper.name != "ssh" or not silent:
            continue
        homes = tuple(home.node for home in seen.homes_of(one.remote, end.party.node))
        named = tuple(name for name in cluster.names if any(name in word.split("@") for word in helper.argv))
        yield Clue(
            "sockets", "ssh_auth", Grade.CERTAIN,
            f"ssh (pid {one.pid} on {end.party.node}), started by {end.party.shown}, is connected to {end.remote}, and"
            " the server has not sent a single byte",
            nodes=named or homes, meaning="sshd of a node accepts connections and does not answer",
            fix="sudo systemctl restart ssh",
        )  # fmt: skip


# Data that does not arrive, and data that nobody reads


_UNACKNOWLEDGED = ("ESTABLISHED", "CLOSE-WAIT", "FIN-WAIT-1", "LAST-ACK", "CLOSING")
_PROBES = 4  # the timer of a connection whose receiver has no room
_SURE = 2  # times that the same data was sent, each after twice the time


def _lost(job: Job, seen: Connections, stuck: Sequence[ConnectionEnd]) -> Iterator[Clue]:
    """Yield the connections between nodes whose data is lost on the way."""
    nodes = _in_common(_pairs(seen, stuck))
    for end in stuck:
        last = end.socket.last
        assert last  # noqa: S101  it is stuck
        peer = seen.peer(end)
        again = f", sent {last.retransmits} times again" if last.retransmits else ""
        to = f"{peer.party.shown} at {end.remote}" if peer else end.remote
        text = f"{end.party.shown} sent {size(last.sent)} to {to}, which was not acknowledged for 2 s{again}"
        if not seen.homes_of(end.socket.remote, end.party.node):
            yield Clue(
                "sockets", "network_stalled", Grade.POSSIBLE, text, nodes=(end.party.node,), others=("firewall",)
            )
        elif seen.gone(end):
            yield _half_open(job, f"{text}; no process there has the other end", Grade.LIKELY)
        else:
            grade = Grade.CERTAIN if peer and last.retransmits >= _SURE else Grade.LIKELY
            yield Clue(
                "sockets", "network_stalled", grade, text + _direction(seen, end, peer), nodes=nodes,
                others=("firewall", "routing", "mtu_mismatch"),
            )  # fmt: skip


def _is_lost(seen: Connections, end: ConnectionEnd) -> bool:
    one, last = end.socket, end.socket.last
    if not (one.stuck and last and last.state in _UNACKNOWLEDGED) or last.timer == _PROBES or is_loopback(one.remote):
        return False
    if any(home.node == end.party.node for home in seen.homes.get(one.remote, ())):
        return False  # it does not leave the node
    peer = seen.peer(end)
    if peer and _unread(peer):
        return False
    return last.retransmits > 0 or (one.first is not None and (last.resent or 0) > (one.first.resent or 0))


def _direction(seen: Connections, end: ConnectionEnd, peer: ConnectionEnd | None) -> str:
    if peer is None or not (peer.socket.last and end.socket.last):
        return ""
    if _is_lost(seen, peer):
        return "; data is lost in both directions"
    received, acknowledged = peer.socket.last.received, end.socket.last.acknowledged
    here, there = end.party.node, peer.party.node
    if received is None or acknowledged is None:
        return ""
    if received > acknowledged + 1:  # the SYN counts as one
        return f"; it arrived, and the acknowledgements are lost on the way from {there} to {here}"
    return f"; it is lost on the way from {here} to {there}"


def _unread(end: ConnectionEnd) -> int:
    """Return how many bytes a process has left unread for both looks. The end of a connection counts as one."""
    return end.socket.unread if end.socket.unread > 1 else 0


def _not_read(seen: Connections, *, alone: bool) -> Iterator[Clue]:
    """Yield the processes that do not read what others have sent them.

    One that waits for another may leave data unread, too: of several, the one that most others wait for is meant, and
    none if connections fail (not `alone`). Without the kernel's counts, two looks at a busy buffer may see the same.
    """
    unread: dict[Party, list[tuple[ConnectionEnd, ConnectionEnd]]] = {}
    for end in seen.ends:
        peer = seen.peer(end)
        if peer and peer.party != end.party and _unread(end) and end.party.rank and peer.party.rank:
            unread.setdefault(end.party, []).append((end, peer))
    most = max((len(_senders(found)) for found in unread.values()), default=0)
    meant = [party for party, found in unread.items() if len(_senders(found)) == most]
    for party, found in unread.items():
        senders = _senders(found)
        total = sum(_unread(end) for end, _ in found)
        full = " and cannot send more" if any(peer.socket.stuck for _, peer in found) else ""
        text = f"{party.shown} has left {size(total)} unread for 2 s, which {_named(senders)} sent{full}"
        if not alone or len(meant) > 1 or party not in meant:
            yield Clue("sockets", "slow_rank_timeout", Grade.ECHO, text)
            continue
        sure = len(unread) == 1 and all(end.socket.moved is not None for end, _ in found)
        yield Clue(
            "sockets", "slow_rank_timeout", Grade.LIKELY if sure else Grade.POSSIBLE, text, party.ranks, (party.node,),
            others=("deadlock", "rank_stopped", "data_loader", "checkpoint_write", "collective_mismatch"),
            meaning="a rank does not read what the others have sent it: it is stopped, busy or stuck",
            looks=("py-spy dump --pid PID",),
        )  # fmt: skip


def _senders(found: Iterable[tuple[ConnectionEnd, ConnectionEnd]]) -> tuple[Party, ...]:
    return tuple(dict.fromkeys(peer.party for _, peer in found))


def _named(parties: Sequence[Party]) -> str:
    numbers = [one.number for one in parties if one.number is not None]
    return ranks_text(numbers) if len(numbers) == len(parties) else f"{len(parties)} other processes"


# Connections whose other end has gone


def _broken_off(job: Job, seen: Connections) -> Iterator[Clue]:
    """Yield the connections that the other side has closed, or whose other end is nowhere."""
    ports = {(one.party.node, one.socket.local_port) for one in seen.listening}
    for end in seen.ends:
        one = end.socket
        if not end.party.rank or is_loopback(one.remote) or not seen.homes_of(one.remote, end.party.node) or one.stuck:
            continue
        if one.stayed("CLOSE-WAIT") and seen.peer(end) is None and seen.other(end) is None:
            text = f"{end.party.shown} has a connection that {end.remote} closed, and has not noticed it"
            yield _half_open(job, text, Grade.POSSIBLE)
        elif one.stayed("ESTABLISHED") and (end.party.node, one.local_port) in ports and seen.gone(end):
            text = f"{end.party.shown} is connected to {end.remote}, and no process there has the other end"
            yield _half_open(job, text, Grade.POSSIBLE)


def _half_open(job: Job, text: str, grade: Grade) -> Clue:
    """Return the clue of a connection to a process that is gone; if a rank is missing, it was that one's."""
    if job.missing:
        return Clue(
            "sockets", "rank_crashed", Grade.LIKELY, f"{text}; {ranks_text(job.missing)} not found", job.missing[:8],
            others=("rank_missing", "firewall"),
        )  # fmt: skip
    return Clue("sockets", "rank_crashed", grade, text, others=("firewall", "network_stalled"))


def _unconnected(seen: Connections) -> Iterator[Clue]:
    """Yield the ranks without a connection to the job, where most others have some."""
    ranks = [one for one in seen.parties if one.rank]
    connected = {end.party for end in seen.ends if end.socket.stayed("ESTABLISHED") and _within(seen, end)}
    without = [one for one in ranks if one not in connected]
    if not seen.complete or not without or 2 * len(without) > len(ranks) or len(ranks) - len(without) < 2:  # noqa: PLR2004
        return
    for one in without:
        text = (
            f"{one.shown} has no connection to any other process of the job; {len(ranks) - len(without)} other ranks do"
        )
        yield Clue(
            "sockets", "slow_rank_timeout", Grade.POSSIBLE, text, one.ranks, (one.node,),
            others=("rendezvous_misconfig", "deadlock", "storage_hang"),
            meaning="a rank has not joined the others: it is late, stuck, or looks for them elsewhere",
        )  # fmt: skip


def _within(seen: Connections, end: ConnectionEnd) -> bool:
    peer = seen.peer(end)
    return peer is not None and peer.party != end.party


# Whether data flows

_LEAST = 4096  # bytes: less is a keepalive, more is data
_LEAST_OUTSIDE = 1 << 16  # from a server: more than figures and signs of life
_LEAST_WITH_RAS = 1 << 20  # where NCCL's RAS runs, whose ranks talk to each other when somebody asks, as triage does


def _motions(job: Job, seen: Connections, waiting: Sequence[ConnectionEnd]) -> Iterator[Motion]:
    """Yield whether each rank exchanged data with other ranks. What the store says to its clients is no data."""
    ports = ports_of_masters(job)
    ras = any(map(is_ras, seen.listening))
    least = _LEAST_WITH_RAS if ras else _LEAST
    moved: dict[Party, list[int]] = {}
    for end in seen.ends:
        peer = seen.peer(end)
        store = {end.socket.local_port, end.socket.remote_port} & ports
        amount = end.socket.moved
        if end.party.rank and peer and peer.party.rank and peer.party != end.party and not store and amount is not None:
            moved.setdefault(end.party, []).append(amount)
    stuck = {end.party for end in waiting if end.party.rank}
    yield from _outside(seen, ports)
    for party in (one for one in seen.parties if one.rank):
        amounts = moved.get(party, [])
        total = sum(amounts)
        if max(amounts, default=0) >= least:
            text = f"{party.shown} exchanged {size(total)} with other ranks in 2 s"
            yield Motion("sockets", party.number, party.node, moves=True, text=text, pid=party.pid)
        elif party in stuck:
            text = f"{party.shown} waits for a connection"
            yield Motion("sockets", party.number, party.node, moves=False, text=text, pid=party.pid)
        elif amounts and not total:
            text = f"{party.shown} exchanged nothing with other ranks by TCP in 2 s"
            yield Motion("sockets", party.number, party.node, moves=False, text=text, pid=party.pid)


def _outside(seen: Connections, ports: frozenset[int]) -> Iterator[Motion]:
    """Yield the ranks that exchange data with a server that is none of the job's, or a program beneath them does."""
    for end in seen.ends:
        amount, one = end.socket.moved or 0, end.socket
        store = {one.local_port, one.remote_port} & ports
        if end.party.rank and amount >= _LEAST_OUTSIDE and not store and not seen.peer(end):
            text = f"{end.party.shown}, or a program beneath it, exchanged {size(amount)} with {end.remote} in 2 s"
            yield Motion(
                "sockets", end.party.number, end.party.node, moves=True, text=text, pid=end.party.pid, aside=True
            )
