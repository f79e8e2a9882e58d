"""Which node is at fault where a launcher's ssh fails, and whether the planned launch uses that connection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from ncheck.expression import expression
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts, SshFromHereFacts, launch_origin
from ncheck.hostlist import fold
from ncheck.launchers import LAUNCHER_TABLE
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import HERE, Inconclusive, Problem
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Cause
from ncheck.network.ssh_edges import star, tree

# No node is at fault: a busy server, or too little time.
UNTESTED = frozenset({Cause.OVERLOADED, Cause.DEADLINE})

# What is the target's doing even if only one node tried it: it was re-imaged; it runs no command.
_OF_THE_TARGET = frozenset({Cause.HOST_KEY_CHANGED, Cause.NO_SHELL})

# What the ssh program of a machine refuses or lacks itself, where another client could log in.
_OF_THE_CLIENT = frozenset({
    Cause.TRANSPORT, Cause.AUTH_REFUSED, Cause.TOO_MANY_KEYS, Cause.PERSON_WANTED, Cause.HOST_KEY_UNKNOWN,
    Cause.HOST_KEY_CHANGED, Cause.HOST_KEY_REVOKED,
})  # fmt: skip

MOST_SHOWN = 8

Edge = tuple[str, PeerSsh]


@dataclass(frozen=True)
class SshFault:
    """Connections that fail for one cause. `nodes` are at fault: the targets if `at_target`, else those that run ssh.

    `used`: the planned launch uses one of the connections.
    """

    cause: Cause
    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]
    at_target: bool
    used: bool


def uses_ssh(cluster: Cluster) -> bool:
    """Whether the planned launcher logs in to nodes; before there is a plan, mpirun is assumed."""
    launcher = next((job.launcher for job in cluster.facts(JobFacts).values()), None)
    return launcher is None or (launcher in LAUNCHER_TABLE and LAUNCHER_TABLE[launcher].uses_ssh)


def used_edges(cluster: Cluster) -> frozenset[tuple[str, str]]:
    """Return the logins from node to node that the planned launch uses.

    Those from the machine on which its line is typed are not among them if ncheck runs there: see SshFromHereFacts.
    """
    if not uses_ssh(cluster):
        return frozenset()
    origin, names = launch_origin(cluster), cluster.names
    typed_here = bool(cluster.facts(SshFromHereFacts))
    shape = tree if all(job.tree for job in cluster.facts(JobFacts).values()) else star
    pairs = shape(len(names), origin)
    return frozenset((names[source], names[to]) for source, to in pairs if not (typed_here and source == origin))


def ssh_faults(cluster: Cluster) -> list[SshFault]:
    """Return what fails between nodes. A node at which every login ends, or from which none works, is at fault."""
    used, tried = used_edges(cluster), _Tried(cluster)
    edges: dict[tuple[Cause, bool, str], list[Edge]] = defaultdict(list)
    for node, peer in tried.edges:
        if peer.cause:
            at_target = not tried.source_fails(node) and tried.target_fails(peer.target, peer.cause)
            edges[peer.cause, at_target, peer.target if at_target else node].append((node, peer))
    faults: dict[tuple[Cause, bool, bool], list[str]] = defaultdict(list)
    for (cause, at_target, blamed), own in edges.items():
        faults[cause, at_target, any((node, peer.target) in used for node, peer in own)].append(blamed)
    return [
        SshFault(
            cause,
            tuple(nodes),
            tuple(edge for node in nodes for edge in edges[cause, at_target, node]),
            at_target,
            of_use,
        )
        for (cause, at_target, of_use), nodes in faults.items()
    ]


class _Tried:
    """What was tried between nodes, from both sides."""

    def __init__(self, cluster: Cluster) -> None:
        tried = cluster.facts(PeerSshFacts).items()
        self.edges = [(node, peer) for node, facts in tried for peer in facts.peers if peer.cause not in UNTESTED]
        self.by_source: dict[str, list[Cause | None]] = defaultdict(list)
        self.by_target: dict[str, dict[str, Cause | None]] = defaultdict(dict)
        for node, peer in self.edges:
            self.by_source[node].append(peer.cause)
            self.by_target[peer.target][node] = peer.cause

    def source_fails(self, node: str) -> bool:
        """Whether no login from this node works, all for one cause."""
        causes = self.by_source[node]
        return len(causes) > 1 and None not in causes and len(set(causes)) == 1

    def target_fails(self, node: str, cause: Cause) -> bool:
        """Whether all logins to this node fail for this cause, but for those from nodes from which none works."""
        causes = [found for source, found in self.by_target[node].items() if not self.source_fails(source)]
        return set(causes) == {cause} and (len(causes) > 1 or cause in _OF_THE_TARGET)


def problem(fault: SshFault) -> Problem:
    """Return what to say of a fault. What mends it is typed where ssh was run."""
    sources, peers = fold(node for node, _ in fault.edges), list(dict.fromkeys(peer for _, peer in fault.edges))
    targets = fold(peer.target for peer in peers)
    message = f"ssh from {sources} to {targets} fails: {_why(peers[0])}"
    if fault.at_target and fault.cause is Cause.HOST_KEY_CHANGED:
        known = f"the host key of {targets} is not the one in known_hosts of {sources}"
        message = f"{known}: it was re-imaged, or another machine has its name"
    shown = tuple(f"{node} to {peer.target}: {peer.detail}" for node, peer in fault.edges[:MOST_SHOWN])
    more = (f"and {len(fault.edges) - MOST_SHOWN} more",) if len(fault.edges) > MOST_SHOWN else ()
    fixes = dict.fromkeys(_mending(peer) for peer in peers[:MOST_SHOWN])
    look = "" in fixes
    return Problem(
        message=message,
        fix=_looking(peers[0]) if look else "; ".join(fixes),
        evidence=shown + more,
        nodes=fault.nodes,
        where=sources if fault.at_target else "",
        look=look,
    )


def _why(peer: PeerSsh) -> str:
    """Return the cause. What the ssh program itself refuses has many, which only its own words tell apart."""
    return peer.detail if peer.cause is Cause.TRANSPORT or not peer.cause else peer.cause.value


def _options(peer: PeerSsh) -> str:
    return f"-p {peer.port} {quote(peer.target)}" if peer.port else quote(peer.target)


def _mending(peer: PeerSsh) -> str:
    """Return the command that lets this node log in to the peer, "" if there is none that always does."""
    if peer.cause is Cause.HOST_KEY_UNKNOWN:
        return f"ssh-keyscan {_options(peer)} >> ~/.ssh/known_hosts"
    if peer.cause is Cause.AUTH_REFUSED:
        return f"ssh-copy-id {_options(peer)}"
    return mending_client(peer.detail)


def _looking(peer: PeerSsh) -> str:
    if peer.cause is Cause.NAME_UNKNOWN:
        return f"getent hosts {quote(peer.target)}"
    if peer.cause is Cause.HOST_KEY_CHANGED:  # to compare comes before the old key is removed
        known_as = f"[{peer.target}]:{peer.port}" if peer.port not in (None, 22) else peer.target
        return f"ssh-keygen -l -F {quote(known_as)}; ssh-keyscan {_options(peer)} | ssh-keygen -lf -"
    return f"ssh -v -o BatchMode=yes {_options(peer)} true"


# Permissions 0644 for '/root/.ssh/id_ed25519' are too open.
_OPEN_KEY = expression(r"Permissions 0\d+ for '([ -~]+)' are too open")

# Bad owner or permissions on /root/.ssh/config
_OPEN_FILE = expression(r"Bad owner or permissions on (/[!-~]+)")


def mending_client(detail: str) -> str:
    """Return the command for what the ssh program itself refuses, "" if there is none."""
    if found := _OPEN_KEY.search(detail):
        return f"chmod 600 {quote(found[1])}"
    if found := _OPEN_FILE.search(detail):
        return f"chmod go-w {quote(found[1])}"
    return ""


def from_here(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    """Yield why the ssh program of this machine cannot log in to nodes that ncheck could log in to."""
    failed: dict[Cause, list[Edge]] = defaultdict(list)
    for node, facts in cluster.facts(SshFromHereFacts).items():
        if facts.tried and facts.tried.cause:
            failed[facts.tried.cause].append((node, facts.tried))
    for cause, edges in failed.items():
        nodes = tuple(node for node, _ in edges)
        tried = [*dict.fromkeys(peer for _, peer in edges)]
        if cause not in _OF_THE_CLIENT:
            why = f"ssh from this machine to {fold(peer.target for peer in tried)} could not be tested ({cause.value})"
            yield Inconclusive(why, nodes)
            continue
        mend = mending_client(tried[0].detail)
        yield Problem(
            f"the ssh program of this machine cannot log in to {fold(nodes)}, although ncheck could: {_why(tried[0])}",
            mend or f"ssh -v -o BatchMode=yes {_options(tried[0])} true",
            tuple(f"ssh to {peer.target}: {peer.detail}" for peer in tried),
            nodes=nodes,
            where=HERE,
            look=not mend,
        )
