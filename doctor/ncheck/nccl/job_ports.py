"""The ports that a job needs on its first node, or on every node: taken by another program, or blocked for others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from ncheck.expression import expression
from ncheck.facts.links import LinkCause, LinkFacts, ListenFacts, PortState
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import HERE, PLAN, Fix, Inconclusive, Problem
from ncheck.model.cluster import Cluster, NodeView
from ncheck.nccl.link_problems import on
from ncheck.network.link_matrix import Known, Tried, shown, subnets_of

# python3 (pid 4711) of ada
_PID = expression(r"\(pid (\d+)\)", re.ASCII)


def taken(node: NodeView, *, assumed: bool) -> Iterator[Problem]:
    """Yield the ports that the job cannot open on this node: requested ones, or a launcher's default (`assumed`)."""
    for state in node[ListenFacts].needed:
        if not state.free and state.assumed == assumed:
            owner = state.taken_by or "a program that this user may not see"
            why = f"cannot be opened: {state.error}" if state.error else f"is taken by {owner}"
            port = f"port {state.port} (a launcher's default)" if assumed else f"port {state.port}"
            fix = _fix(node.name, state, elsewhere=assumed)
            yield Problem(f"{port} {why}", fix.line, where=fix.where, look=fix.look)


def _fix(node: str, state: PortState, *, elsewhere: bool) -> Fix:
    """Return the command that shows the port's owner or, if nobody requested this port, plans with the next one."""
    if elsewhere or state.error:
        other = state.port + 1 if 1024 <= state.port < 65535 else 29500  # noqa: PLR2004  what a user may open
        return Fix(f"{PLAN} --master-port {other}", HERE, look=True)
    if found := _PID.search(state.taken_by):
        return on(node, "ps", "-o", "user,lstart,args", "-p", found[1])
    return on(node, "sudo", "ss", "-tnap", f"sport = :{state.port}")


@dataclass
class _Blocked:
    """A port of a node that others cannot reach in a subnet, although they reach the node itself there."""

    tried: list[Tried] = field(default_factory=list)
    open_elsewhere: bool = True


def unreachable(cluster: Cluster, *, surely: bool) -> Iterator[Problem | Inconclusive]:
    """Yield the ports of the job that other nodes cannot reach.

    `surely`: only requested ports that some node cannot reach in any subnet; otherwise all others.
    """
    known = cluster.facts(LinkFacts)
    assumed = {(node.name, state.port) for node in cluster for state in node[ListenFacts].needed if state.assumed}
    for (target, port, subnet), found in _blocked(known).items():
        if surely == (not found.open_elsewhere and (target, port) not in assumed):
            yield _problem(found, f"port {port} of {target} cannot be reached", subnet)
    if untried := [tried for tried in _port_links(known) if tried.link.cause is LinkCause.UNTRIED]:
        ports = ", ".join(sorted({f"{tried.link.port} of {tried.link.target}" for tried in untried}))
        yield Inconclusive(
            f"not enough time to test port {ports}", tuple(dict.fromkeys(tried.node for tried in untried))
        )
    else:
        yield from _untold(cluster, known)


def _untold(cluster: Cluster, known: Known) -> Iterator[Inconclusive]:
    """Yield the nodes that say nothing of a node with a port of the job: such a port is told only where it fails."""
    for target in cluster:
        ports = ", ".join(str(state.port) for state in target[ListenFacts].needed if state.free)
        if not ports or target.name not in known:
            continue
        subnets = subnets_of(known[target.name])
        others = (
            (node, facts)
            for node, facts in known.items()
            if node != target.name and _was_to_try(facts, target.name, subnets & subnets_of(facts))
        )
        if idle := tuple(node for node, facts in others if target.name not in facts.tried_to):
            yield Inconclusive(f"{fold(idle)} tested no port of {target.name}, which the job needs: {ports}", idle)


def _was_to_try(facts: LinkFacts, target: str, subnets: frozenset[str]) -> bool:
    """Tell whether a node was to try another one, with which it shares these subnets."""
    sampled = {sample.subnet: sample.nodes for sample in facts.samples}
    return not sampled or any(target in nodes for nodes in sampled.values()) or bool(subnets - sampled.keys())


def _port_links(known: Known) -> Iterator[Tried]:
    for node, facts in known.items():
        yield from (Tried(node, link) for link in facts.broken if link.port and link.target in known)


def _blocked(known: Known) -> dict[tuple[str, int, str], _Blocked]:
    found: dict[tuple[str, int, str], _Blocked] = {}
    for tried in _port_links(known):
        node, link = tried.node, tried.link
        if link.cause is not LinkCause.UNTRIED and link.subnet not in _broken(known, node, link.target, 0):
            blocked = found.setdefault((link.target, link.port, link.subnet), _Blocked())
            blocked.tried.append(tried)
            blocked.open_elsewhere &= bool(_open(known, node, link.target, link.port))
    return found


def _open(known: Known, node: str, target: str, port: int) -> frozenset[str]:
    """Return the subnets in which a node reaches another one at all and at this port."""
    both = subnets_of(known[node]) & subnets_of(known[target])
    return both - _broken(known, node, target, 0) - _broken(known, node, target, port)


def _broken(known: Known, node: str, target: str, port: int) -> frozenset[str]:
    return frozenset(link.subnet for link in known[node].broken if (link.target, link.port) == (target, port))


def _problem(found: _Blocked, what: str, subnet: str) -> Problem:
    first = found.tried[0]
    nodes = tuple(dict.fromkeys(tried.node for tried in found.tried))
    where = f" on {subnet}" if subnet else ""
    effect = "it can be reached in another subnet" if found.open_elsewhere else "the ranks would wait for each other"
    return Problem(
        message=f"{what}{where} from {fold(nodes)}, although other ports of that node can: {effect}",
        fix="sudo nft list ruleset",
        evidence=shown(found.tried),
        nodes=nodes,
        where=first.link.target,
        look=True,
    )
