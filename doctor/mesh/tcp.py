"""Node to node over TCP: which address is tried from which, in what order, and on which ports the job will meet.

Every address of a node that a job may use is tried from every such address of every other node in the same subnet.
Each node is given its links in an order of its own, beginning with the node after itself: so in each step every node
is dialled by one other, and the time grows with the nodes and not with their pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from doctor.collect.links import CONNECT, LISTEN
from doctor.model.act import NotAsked, Questions
from doctor.model.evidence import Answer, JsonValue
from doctor.model.facts import IdentityFacts, InterpreterFacts, ListenFacts, NicFacts
from doctor.model.plan import MEETING_PORTS
from doctor.reasoning.machines import doubles, machines
from doctor.reasoning.subnets import Seat, clashing, seats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from doctor.company import Company
    from doctor.settings import Settings

MOST = 4096  # links of one node; beyond, each address is tried from one address of each other node, not from all
TORCH_PORT = 29500  # MASTER_PORT of torch, DeepSpeed and Accelerate where nobody names another
_MEET_BY_TORCH = ("torch", "deepspeed", "accelerate")
MOST_SEATS = 64  # addresses of one node: who shows more would have all others dial them
_LISTENING = 5.0  # seconds for a node to bind its sockets, and to look for who has taken a port
_KEPT = 0.1  # of the run's deadline, for what comes after the mesh
_SHARED = 5  # values of a row that names no source
_LEAST = 1.0  # seconds: where there are no more, every link is said to be untried

# One address to dial, as the agent takes it: node, address, port, subnet, whether the port is the job's. A sixth is the
# one source to dial it from; without it, it is dialled from every address of the node's own in that subnet.
Row = list[JsonValue]


def spared_listening(company: Company) -> dict[str, str]:
    """Return the nodes that need not listen; one node alone may still need a port for the job."""
    unwanted = company.settings.mesh == "none" and _deaf(company) and not named_ports(company.settings)
    return company.spared() if unwanted else {}


def _deaf(company: Company) -> bool:
    """Tell whether nobody is to connect to the nodes' own addresses: neither the mesh nor, by TCP alone, the probe."""
    return bool(company.alone) and (company.settings.probe != "tcp" or len(company.nodes) == 1)


def ask_listen(company: Company, left: float) -> Questions:  # noqa: ARG001  binding takes no time
    """Ask each node to listen on its own addresses, and the first one on the job's ports."""
    found, doubles = usable_seats(company), _doubles(company)
    ports: dict[str, list[JsonValue]] = {company.reached[0].name: _needed(company)} if company.reached else {}
    return {
        name: (_listening(company, name, () if _deaf(company) else held, ports.get(name, []), doubles.get(name, "")),)
        for name, held in found.items()
    }


def ask_connect(company: Company, left: float) -> Questions:
    """Ask each node to connect to all others that listen."""
    if company.alone:  # what listens does so for the probe alone
        return {}
    seconds = max(_LEAST, left - _KEPT * company.settings.deadline - 1.0)
    questions: Questions = {}
    found = usable_seats(company)
    for name, rows in dialled(company, found).items():
        sources: JsonValue = {subnet: list(ips) for subnet, ips in _by_subnet(found[name]).items()}
        asked: JsonValue = {"token": company.token, "timeout": seconds, "sources": sources, "targets": list(rows)}
        connect = Answer(CONNECT.name, seconds + 1.0, asked)
        questions[name] = (connect if rows else NotAsked(CONNECT, _why_none(company, name)),)
    return questions


def dialled(company: Company, found: Mapping[str, Sequence[Seat]]) -> dict[str, list[Row]]:
    """Return what each node is to dial, in its order. Nodes share the rows: a thousand of them have a million pairs."""
    doubles, listening = _doubles(company), company.each(ListenFacts)
    names = [name for name in found if name not in doubles]
    first, asked_for = (company.reached[0].name, _needed_ports(company)) if company.reached else ("", ())
    own = {name: _by_subnet(found[name]) for name in names}
    ends = {name: _ends(name, found[name], listening[name]) for name in names if name in listening}
    made: dict[str, list[Row]] = {name: [] for name in found}
    for number, name in enumerate(names):
        others = [other for other in (*names[number + 1 :], *names[:number]) if other in ends]
        few = sum(len(held) ** 2 for held in own[name].values()) * len(others) <= MOST
        for other in others:
            common = [subnet for subnet in own[name] if subnet in own[other]]
            for subnet in common:
                rows = ends[other].get(subnet, [])
                made[name] += rows if few else _aligned(rows, own[name][subnet])
            if not common:
                made[name] += _routed(other, found[name], found[other], listening[other])
            if other == first:
                free = [state.port for state in listening[other].needed if state.free and state.port in asked_for]
                made[name] += _for_the_job(made[name], other, own[name], free)
    return made


def usable_seats(company: Company) -> dict[str, tuple[Seat, ...]]:
    """Return each node's addresses that can be told from others': not those that another machine shows as well."""
    nics = company.each(NicFacts)
    clashes = clashing(machines(nics, company.each(IdentityFacts)))
    free = {name: (seat for seat in seats(held) if seat.ip not in clashes) for name, held in nics.items()}
    return {name: tuple(islice(held, MOST_SEATS)) for name, held in free.items()}


def _doubles(company: Company) -> dict[str, str]:
    """Map each node that is a machine which was listed before under another name to that name."""
    return doubles(company.each(NicFacts), company.each(IdentityFacts))


def _listening(
    company: Company, name: str, held: Sequence[Seat], ports: list[JsonValue], double: str
) -> Answer | NotAsked:
    if double and not ports:
        return NotAsked(LISTEN, f"it is the same machine as {double}")
    if not held and not ports:
        return NotAsked(LISTEN, company.alone or "it has no address of its own that a job could use")
    addresses: list[JsonValue] = [*dict.fromkeys(seat.ip for seat in held)]
    asked: JsonValue = {"node": name, "token": company.token, "addresses": addresses, "ports": ports}
    return Answer(LISTEN.name, _LISTENING, asked)


def _why_none(company: Company, name: str) -> str:
    if double := _doubles(company).get(name):
        return f"it is the same machine as {double}"
    others = [node.name for node in company.reached if node.name != name]
    return "no other node listens for it" if others else "none of the others was reached"


# Which way


def _by_subnet(held: Sequence[Seat]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for seat in held:
        found.setdefault(seat.subnet, {})[seat.ip] = None
    return {subnet: tuple(ips) for subnet, ips in found.items()}


def _ends(name: str, held: Sequence[Seat], listening: ListenFacts) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for seat in held:
        if seat.ip in listening.ports:
            found.setdefault(seat.subnet, []).append([name, seat.ip, listening.ports[seat.ip], seat.subnet, False])
    return found


def _routed(other: str, mine: Sequence[Seat], theirs: Sequence[Seat], listening: ListenFacts) -> Iterator[Row]:
    """Yield the way between the routers of two nodes that share no subnet, in a family that both have."""
    for v6 in (False, True):
        one, end = (_default([seat for seat in held if (":" in seat.ip) == v6]) for held in (mine, theirs))
        if one and end:
            if end.ip in listening.ports:
                yield [other, end.ip, listening.ports[end.ip], "", False, one.ip]
            return


def _default(held: Sequence[Seat]) -> Seat | None:
    return next((seat for seat in held if seat.interface.default_route), held[0] if held else None)


def _aligned(rows: Sequence[Row], sources: Sequence[str]) -> list[Row]:
    """Dial the first address of one node from the first of the other, the second from the second ..."""
    steps = range(max(len(rows), len(sources)) if rows else 0)
    return [[*rows[step % len(rows)], sources[step % len(sources)]] for step in steps]


def _for_the_job(rows: Sequence[Row], other: str, own: Mapping[str, Sequence[str]], free: Sequence[int]) -> list[Row]:
    """Return the job's ports on a node, once for each subnet in which it is dialled anyway."""
    ends = {str(row[3]): row for row in reversed(rows) if row[0] == other}
    return [
        [other, row[1], port, subnet, True, row[5] if len(row) > _SHARED else own[subnet][0]]
        for subnet, row in reversed(ends.items())
        for port in free
    ]


# The ports of the job


def named_ports(settings: Settings) -> tuple[int, ...]:
    """Return the ports that somebody named for the job."""
    return tuple(dict.fromkeys((*([settings.master_port] if settings.master_port else []), *settings.need_ports)))


def _needed(company: Company) -> list[JsonValue]:
    """Ask for the ports that the job needs on its first node; `assumed`: nobody named it, nor its launcher."""
    named = named_ports(company.settings)
    guessed = company.settings.launcher not in MEETING_PORTS
    return [{"port": port, "assumed": guessed and port not in named} for port in _needed_ports(company)]


def _needed_ports(company: Company) -> tuple[int, ...]:
    named = named_ports(company.settings)
    meeting = None if company.settings.master_port else _meeting_port(company)
    return tuple(dict.fromkeys((*named, *([meeting] if meeting else []))))


def _meeting_port(company: Company) -> int | None:
    launcher = company.settings.launcher
    if launcher and launcher in MEETING_PORTS:
        return MEETING_PORTS[launcher]
    first = company.each(InterpreterFacts).get(company.reached[0].name)
    return TORCH_PORT if first and any(name in first.frameworks for name in _MEET_BY_TORCH) else None
