"""The ports that a job needs on its first node: taken by somebody else there, or kept from the others on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ncheck.facts.links import LinkCause, LinkFacts, ListenFacts, PortState
from ncheck.facts.login import LoginFacts
from ncheck.hostlist import fold
from ncheck.model.check import Inconclusive, Problem
from ncheck.model.cluster import Cluster, NodeView
from ncheck.network.link_matrix import Known, Tried, shown, subnets_of
from ncheck.network.link_problems import there

# python3 (pid 4711) of ada
_PID = re.compile(r"\(pid (\d+)\)", re.ASCII)


def taken(node: NodeView, *, assumed: bool) -> Iterator[Problem]:
    """Yield the ports that the job cannot have on this node: those that somebody named, or a launcher's default."""
    for state in node[ListenFacts].needed:
        if not state.free and state.assumed == assumed:
            who = state.taken_by or "a program that this user may not see"
            why = f"cannot be opened: {state.error}" if state.error else f"is taken by {who}"
            whose = ", where a launcher meets unless it is told another," if assumed else ""
            yield Problem(f"port {state.port}{whose} {why}", _freed(node, state, elsewhere=assumed))


def _freed(node: NodeView, state: PortState, *, elsewhere: bool) -> str:
    """Return the line that shows who has the port; or, where nobody asked for this one, takes the next."""
    if elsewhere or state.error:
        other = state.port + 1 if 1024 <= state.port < 65535 else 29500  # noqa: PLR2004  what a user may open
        return f"ncheck plan nodes.txt --master-port {other}"
    login = node.maybe(LoginFacts)
    logins = {node.name: login} if isinstance(login, LoginFacts) else {}
    if found := _PID.search(state.taken_by):
        return there(node.name, logins, "ps", "-o", "user,lstart,args", "-p", found[1])
    return there(node.name, logins, "sudo", "ss", "-tnap", f"sport = :{state.port}")


@dataclass
class _Blocked:
    """One port of one node that others cannot reach in one subnet, where they reach that node otherwise."""

    tried: list[Tried] = field(default_factory=list)
    open_elsewhere: bool = True


def unreachable(cluster: Cluster, *, surely: bool) -> Iterator[Problem | Inconclusive]:
    """Yield the ports of the job that other nodes cannot reach.

    `surely`: somebody named the port, and some node has no subnet in which it is reached; else what is left.
    """
    known = cluster.facts(LinkFacts)
    assumed = {(node.name, state.port) for node in cluster for state in node[ListenFacts].needed if state.assumed}
    for (target, port, subnet), found in _blocked(known).items():
        if surely == (not found.open_elsewhere and (target, port) not in assumed):
            yield _problem(cluster, found, f"port {port} of {target} cannot be reached", subnet)
    if untried := [tried for tried in _port_links(known) if tried.link.cause is LinkCause.UNTRIED]:
        ports = ", ".join(sorted({f"{tried.link.port} of {tried.link.target}" for tried in untried}))
        yield Inconclusive(
            f"there was no time to try port {ports}", tuple(dict.fromkeys(tried.node for tried in untried))
        )


def _port_links(known: Known) -> Iterator[Tried]:
    for node, facts in known.items():
        yield from (Tried(node, link) for link in facts.broken if link.port and link.target in known)


def _blocked(known: Known) -> dict[tuple[str, int, str], _Blocked]:
    found: dict[tuple[str, int, str], _Blocked] = {}
    for tried in _port_links(known):
        node, link = tried.node, tried.link
        if link.cause is not LinkCause.UNTRIED and link.subnet not in _broken(known, node, link.target, 0):
            one = found.setdefault((link.target, link.port, link.subnet), _Blocked())
            one.tried.append(tried)
            one.open_elsewhere &= bool(_open(known, node, link.target, link.port))
    return found


def _open(known: Known, node: str, target: str, port: int) -> frozenset[str]:
    """Return the subnets in which a node reaches another by the mesh and at this port."""
    both = subnets_of(known[node]) & subnets_of(known[target])
    return both - _broken(known, node, target, 0) - _broken(known, node, target, port)


def _broken(known: Known, node: str, target: str, port: int) -> frozenset[str]:
    return frozenset(link.subnet for link in known[node].broken if (link.target, link.port) == (target, port))


def _problem(cluster: Cluster, found: _Blocked, what: str, subnet: str) -> Problem:
    first = found.tried[0]
    nodes = tuple(dict.fromkeys(tried.node for tried in found.tried))
    where = f" on {subnet}" if subnet else ""
    meaning = "in another subnet it can" if found.open_elsewhere else "the ranks would wait for each other there"
    return Problem(
        message=f"{what}{where} from {fold(nodes)}, and other ports there can: {meaning}",
        fix=there(first.link.target, cluster.facts(LoginFacts), "sudo", "nft", "list", "ruleset"),
        evidence=shown(found.tried),
        nodes=nodes,
    )
