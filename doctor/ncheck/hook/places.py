"""Where the ranks of a job are: its nodes, with the ranks that came, and those that should be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ncheck.facts.ranks import RanksFacts, RankTrouble, absence
from ncheck.hook.meeting.messages import Member
from ncheck.hostlist import is_name
from ncheck.lazy_dataclass import dataclass
from ncheck.model.node import Node
from ncheck.version import __version__


@dataclass(frozen=True)
class Places:
    """The nodes of a job, in the order of their lowest rank. `why`: for the nodes of which no rank came."""

    nodes: tuple[Node, ...]
    ranks: Mapping[str, RanksFacts]
    sockets: Mapping[str, int]
    why: Mapping[str, str]


def place(request: Mapping[str, Any]) -> Places:
    """Return the nodes of a job, from who came, in the order of ranks, and who did not: see ncheck.hook.examiner."""
    machines: dict[str, list[Member]] = {}
    for member in (Member(**fields) for fields in request["members"]):
        machines.setdefault(member.machine, []).append(member)
    names = _names(machines)
    hosts = {int(rank): str(host) for rank, host in request["missing"].items()}
    missing = _missing(hosts, machines, names)
    homeless = tuple(sorted(rank for rank, host in hosts.items() if not host))
    packages = tuple(request["packages"])
    troubles = _troubles(request["problems"], machines)

    def facts(name: str, machine: str, came: Iterable[Member]) -> RanksFacts:
        here = list(came)
        return RanksFacts(
            size=request["size"],
            came=tuple(one.rank for one in here),
            pids=tuple(one.pid for one in here),
            missing=tuple(sorted(missing.get(name, ()))),
            ended={one.rank: one.pid for one in here if one.rank in request["ended"]},
            homeless=homeless,
            could_come=request["could_come"],
            troubles=troubles.get(machine, ()),
            waited=request["waited"],
            packages=packages,
            version=here[0].version if here else "",
            ours=__version__,
        )

    known = {names[machine]: facts(names[machine], machine, came) for machine, came in machines.items()}
    known |= {name: facts(name, "", ()) for name in missing if name not in known}
    sockets = {names[machine]: int(number) for machine, number in request["sockets"].items() if machine in names}
    why = {name: _absent(one) for name, one in known.items() if not one.came}
    places = ("local",) if len(known) == 1 else ()  # a single machine needs no network
    return Places(tuple(Node(name, places=places) for name in known), known, sockets, why)


def _absent(facts: RanksFacts) -> str:
    return absence((), facts.missing, facts.waited)


def _names(machines: Mapping[str, list[Member]]) -> dict[str, str]:
    """Return a name for each machine: the launcher's, else its host name; each once."""
    names: dict[str, str] = {}
    for number, (machine, members) in enumerate(machines.items()):
        words = (word for word in (members[0].node_name, members[0].host_name) if is_name(word))
        name = next(words, f"node{number}")
        while name in names.values():
            name = f"{name}-{number}"
        names[machine] = name
    return names


def _missing(
    hosts: Mapping[int, str], machines: Mapping[str, list[Member]], names: Mapping[str, str]
) -> dict[str, list[int]]:
    """Return the missing ranks by node: one that came with other ranks, by any of its names, or one more node."""
    known: dict[str, str] = {}
    for machine, members in machines.items():
        first = members[0]
        for word in (first.node_name, first.host_name, first.host_name.partition(".")[0], first.address):
            known.setdefault(word, names[machine])
    found: dict[str, list[int]] = {}
    for rank, host in hosts.items():
        if host:
            there = known.get(host) or known.get(host.partition(".")[0])
            found.setdefault(there or (host if is_name(host) else "unknown-host"), []).append(rank)
    return found


def _troubles(
    problems: Iterable[tuple[str, list[int], str]], machines: Mapping[str, list[Member]]
) -> dict[str, tuple[RankTrouble, ...]]:
    """Return the trouble with ranks by machine; that with a rank of no machine, such as rank 9 of 8, by the first."""
    of_rank = {member.rank: machine for machine, members in machines.items() for member in members}
    found: dict[str, tuple[RankTrouble, ...]] = {}
    for kind, ranks, text in problems:
        machine = next((of_rank[rank] for rank in ranks if rank in of_rank), next(iter(machines), ""))
        found[machine] = (*found.get(machine, ()), RankTrouble(kind, tuple(ranks), text))
    return found
