"""The name of a node does not lead to that node from every node

## What it finds
Names of listed nodes, looked up on the other nodes as a launcher would look them up. A name is reported if it resolves
to an address that its node does not have, alone or before the right one, if it resolves to different addresses on
different nodes, or if only some nodes can resolve it. With up to 16 nodes, every node looks up every name. With more
nodes, all look up the first node's name, and the other names are looked up along Open MPI's launch tree.

A name that no node resolves is not reported: it may exist only in the ssh configuration or behind a jump host. If a
launcher needs it, node-to-node-ssh-fails reports the failure. Nodes that are listed by address need no name.

## Why it matters
Launchers pass names to the nodes, and the nodes look them up: MASTER_ADDR, the host file, horovodrun's -H. A stale
line in one /etc/hosts sends that node's ranks to the wrong machine, and all other ranks wait for them. Programs try the
addresses of a name in their order: a dead one before the right one costs each connection its timeout. Behind address
translation, a name may correctly resolve to an address that the node itself does not show.

## What to type
`getent ahosts NAME` on each node shows what programs get; `getent hosts NAME` shows what the hosts file or DNS returns.
On most machines /etc/hosts has priority.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check, fold, nodes_by_value, split
from ncheck.facts.names import NameFacts, Resolved
from ncheck.facts.nics import Kind, NicFacts


@cluster_check("NC361", Severity.WARNING, NameFacts, also=(NicFacts,))
def names_resolve_differently(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    own = {name: _own_addresses(nics) for name, nics in cluster.facts(NicFacts).items()}
    lookups = cluster.facts(NameFacts)
    kinds = tuple({id(facts): facts for facts in lookups.values()}.values())  # nodes that say the same share one
    by_name: dict[str, list[Resolved]] = {}
    for facts in kinds:
        for name, answer in facts.names.items():
            by_name.setdefault(name, []).append(answer)
    unresolved: dict[str, tuple[tuple[str, ...], str]] = {}  # name -> the nodes that cannot resolve it, first error
    for name, resolved in by_name.items():
        if _agreed(resolved, own.get(name, frozenset())):
            continue
        answers = {node: facts.names[name] for node, facts in lookups.items() if name in facts.names}
        found = {node: frozenset(answer.addresses) for node, answer in answers.items() if answer.addresses}
        if all(map(_is_loopback, found.get(name, ()))):  # host-name-is-loopback reports a node's own name
            found.pop(name, None)
        failed = tuple(node for node, answer in answers.items() if answer.error)
        if found and failed:
            unresolved[name] = (failed, answers[failed[0]].error)
        yield from _wrong_addresses(name, found, own.get(name, frozenset()))
        yield from _wrong_first(name, {node: _answering(answers[node]) for node in found}, own.get(name, frozenset()))
    for (nodes, error), names in nodes_by_value(unresolved).items():
        message = f"{fold(names)} {'does' if len(names) == 1 else 'do'} not resolve: {error}"
        yield Problem(message, _fix(names[0]), nodes=nodes, look=True)
    late_kinds = {id(facts) for facts in kinds if any(name.late for name in facts.names.values())}
    if late := tuple(node for node, facts in lookups.items() if id(facts) in late_kinds):
        yield Inconclusive("the lookup of other nodes' names did not finish in time", nodes=late)


def _agreed(answers: Sequence[Resolved], own: frozenset[str]) -> bool:
    """Return whether all nodes got the same addresses, of which none is another node's."""
    first = answers[0]
    alike = all(answer.addresses == first.addresses and not answer.error for answer in answers)
    return alike and bool(first.addresses) and (not own or own.issuperset(first.addresses))


def _wrong_addresses(name: str, found: Mapping[str, frozenset[str]], own: frozenset[str]) -> Iterator[Problem]:
    """Yield addresses that are not the node's, and lookups that have no common address."""
    foreign = {node: _joined(ips) for node, ips in found.items() if own and not ips & own}
    for addresses, nodes in nodes_by_value(foreign).items():
        yield Problem(f"{name} resolves to {addresses}, which is not its address", _fix(name), nodes=nodes, look=True)
    right = {node: ips for node, ips in found.items() if node not in foreign}
    parted = split({node: _joined(ips) for node, ips in right.items()})
    if parted and not frozenset.intersection(*right.values()):
        message = f"{name} resolves to different addresses: {parted.summary()}"
        yield Problem(message, _fix(name), nodes=parted.odd, look=True)


def _wrong_first(name: str, found: Mapping[str, tuple[str, ...]], own: frozenset[str]) -> Iterator[Problem]:
    """Yield addresses that are not the node's and that are tried before its own of the same family."""
    first: dict[str, str] = {}
    for node, ips in found.items():
        right = next((ip for ip in ips if ip in own), "")
        before = [ip for ip in ips[: ips.index(right)] if (":" in ip) == (":" in right)] if right else []
        if before and not (node == name and _is_loopback(before[0])):
            first[node] = before[0]
    for ip, nodes in nodes_by_value(first).items():
        message = f"{name} resolves first to {ip}, which is not its address, and only then to its own"
        yield Problem(message, _fix(name), nodes=nodes, look=True)


def _answering(answer: Resolved) -> tuple[str, ...]:
    """Return the addresses but those that do not answer: name-leads-nowhere reports these."""
    silent = {one.ip for one in answer.silent}
    return tuple(ip for ip in answer.addresses if ip not in silent)


def _own_addresses(nics: NicFacts) -> frozenset[str]:
    """Return the addresses by which others can reach this node."""
    interfaces = (nic for nic in nics.interfaces if nic.kind is not Kind.CONTAINER_BRIDGE)
    return frozenset(address.ip for nic in interfaces for address in nic.addresses if address.scope == "global")


def _joined(ips: frozenset[str]) -> str:
    return " and ".join(sorted(ips))


def _is_loopback(ip: str) -> bool:
    return ip.startswith("127.") or ip == "::1"


def _fix(name: str) -> str:
    return f"getent ahosts {quote(name)}"
