"""Node to node over TCP: which address is tried from which, in what order, and on which ports the job will meet.

Every address of a node that a job may use is tried from every such address of every other node in the same subnet.
Each node is given its links in an order of its own, beginning with the node after itself: so in each step every node
is dialled by one other, and the time grows with the nodes and not with their pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from doctor.gather import NotAsked, Questions
from doctor.model.evidence import Answer, JsonValue
from doctor.model.facts import IdentityFacts, InterpreterFacts, ListenFacts, NicFacts
from doctor.model.plan import MEETING_PORTS
from doctor.subnets import Seat, clashing, machines, seats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doctor.company import Company
    from doctor.settings import Settings

LISTEN, CONNECT = Answer("listen"), Answer("connect")
MOST = 4096  # links of one node; beyond, each address is tried from one address of each other node, not from all
TORCH_PORT = 29500  # MASTER_PORT of torch, DeepSpeed and Accelerate where nobody names another
_MEET_BY_TORCH = ("torch", "deepspeed", "accelerate")
_LISTENING = 5.0  # seconds for a node to bind its sockets, and to look for who has taken a port
_KEPT = 0.1  # of the run's deadline, for what comes after the mesh
_LEAST = 1.0  # seconds: where there are no more, every link is said to be untried

Row = list[JsonValue]  # a link as the agent takes it: node, source, address, port, subnet, job
Way = tuple[str, str, str]  # source, address, subnet


def spared_tcp(company: Company) -> dict[str, str]:
    """Return the nodes that have no other to try, and why that is so."""
    return {node.name: company.alone for node in company.nodes} if company.alone else {}


def spared_listening(company: Company) -> dict[str, str]:
    """Return the nodes that need not listen; one node alone may still need a port for the job."""
    return spared_tcp(company) if company.settings.mesh == "none" and not named_ports(company.settings) else {}


def ask_listen(company: Company, left: float) -> Questions:  # noqa: ARG001  binding takes no time
    """Ask each node to listen on its own addresses, and the first one on the job's ports."""
    found, doubles = usable_seats(company), _doubles(company)
    ports: dict[str, list[JsonValue]] = {company.reached[0].name: _needed(company)} if company.reached else {}
    return {
        name: (_listening(company, name, () if company.alone else held, ports.get(name, []), doubles.get(name, "")),)
        for name, held in found.items()
    }


def ask_connect(company: Company, left: float) -> Questions:
    """Ask each node to connect to all others that listen."""
    seconds = max(_LEAST, left - _KEPT * company.settings.deadline - 1.0)
    questions: Questions = {}
    for name, rows in links(company).items():
        asked: JsonValue = {"token": company.token, "timeout": seconds, "targets": list(rows)}
        connect = Answer(CONNECT.name, seconds + 1.0, asked)
        questions[name] = (connect if rows else NotAsked(CONNECT, _why_none(company, name)),)
    return questions


def links(company: Company) -> dict[str, tuple[Row, ...]]:
    """Return what each node is to try, in its order."""
    found, doubles = usable_seats(company), _doubles(company)
    names = [name for name in found if name not in doubles]
    listening = company.each(ListenFacts)
    made: dict[str, tuple[Row, ...]] = dict.fromkeys(found, ())
    for number, name in enumerate(names):
        others = [other for other in (*names[number + 1 :], *names[:number]) if other in listening]
        ways = {other: tuple(_ways(found[name], found[other])) for other in others}
        few = sum(map(len, ways.values())) <= MOST
        made[name] = tuple(
            row
            for other, all_ways in ways.items()
            for row in _rows(other, all_ways if few else _aligned(all_ways), listening[other])
        )
    return made


def usable_seats(company: Company) -> dict[str, tuple[Seat, ...]]:
    """Return each node's addresses that can be told from others': not those that another machine shows as well."""
    nics = company.each(NicFacts)
    single = machines({name: (held, company.known[name].get(IdentityFacts)) for name, held in nics.items()})
    clashes = clashing(single)
    return {name: tuple(seat for seat in seats(held) if seat.ip not in clashes) for name, held in nics.items()}


def _doubles(company: Company) -> dict[str, str]:
    """Map each node that is a machine which was listed before under another name to that name."""
    first: dict[tuple[str, str], str] = {}
    found: dict[str, str] = {}
    for name, identity in company.each(IdentityFacts).items():
        known = first.setdefault((identity.boot_id, identity.network_namespace), name)
        if known != name and name in company.each(NicFacts):
            found[name] = known
    return found


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


def _ways(mine: Sequence[Seat], theirs: Sequence[Seat]) -> Iterator[Way]:
    """Yield the ways from one node to another: within each subnet that both have, or else between their routers."""
    within = [(one.ip, other.ip, one.subnet) for one in mine for other in theirs if one.subnet == other.subnet]
    yield from within or _routed(mine, theirs)


def _routed(mine: Sequence[Seat], theirs: Sequence[Seat]) -> Iterator[Way]:
    for v6 in (False, True):
        ends = [_default([seat for seat in held if (":" in seat.ip) == v6]) for held in (mine, theirs)]
        if ends[0] and ends[1]:
            yield (ends[0].ip, ends[1].ip, "")
            return


def _default(held: Sequence[Seat]) -> Seat | None:
    return next((seat for seat in held if seat.interface.default_route), held[0] if held else None)


def _aligned(ways: Sequence[Way]) -> list[Way]:
    """Keep the first address of one node with the first of the other in each subnet, the second with the second ..."""
    sources: dict[str, list[str]] = {}
    ends: dict[str, list[str]] = {}
    for source, address, subnet in ways:
        sources[subnet] = list(dict.fromkeys([*sources.get(subnet, []), source]))
        ends[subnet] = list(dict.fromkeys([*ends.get(subnet, []), address]))
    return [
        (sources[subnet][step % len(sources[subnet])], ends[subnet][step % len(ends[subnet])], subnet)
        for subnet in sources
        for step in range(max(len(sources[subnet]), len(ends[subnet])))
    ]


def _rows(other: str, ways: Sequence[Way], listening: ListenFacts) -> Iterator[Row]:
    """Yield the links to one node: to its own listener by every way, to each of the job's ports once a subnet."""
    for source, address, subnet in ways:
        if address in listening.ports:
            yield [other, source, address, listening.ports[address], subnet, False]
    for source, address, subnet in {way[2]: way for way in reversed(ways)}.values():
        for state in listening.needed:
            if state.free:
                yield [other, source, address, state.port, subnet, True]


# The ports of the job


def named_ports(settings: Settings) -> tuple[int, ...]:
    """Return the ports that somebody named for the job."""
    return tuple(dict.fromkeys((*([settings.master_port] if settings.master_port else []), *settings.need_ports)))


def _needed(company: Company) -> list[JsonValue]:
    """Return the ports that the job needs on its first node; `assumed`: nobody named it, its launcher takes it."""
    named = named_ports(company.settings)
    meeting = None if company.settings.master_port else _meeting_port(company)
    asked: list[JsonValue] = [{"port": port, "assumed": False} for port in named]
    return [*asked, {"port": meeting, "assumed": True}] if meeting and meeting not in named else asked


def _meeting_port(company: Company) -> int | None:
    launcher = company.settings.launcher
    if launcher and launcher in MEETING_PORTS:
        return MEETING_PORTS[launcher]
    first = company.each(InterpreterFacts).get(company.reached[0].name)
    return TORCH_PORT if first and any(name in first.frameworks for name in _MEET_BY_TORCH) else None
