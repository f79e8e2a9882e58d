"""Which packets of other nodes each node is asked about: where its reverse path filter is strict, and has a choice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from doctor.collect.arrivals import ARRIVALS
from doctor.model.act import NotAsked, Questions
from doctor.model.evidence import JsonValue
from doctor.model.facts import NetSettingsFacts, NicFacts
from doctor.reasoning.subnets import Seat, seats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from doctor.company import Company

STRICT = 1  # net.ipv4.conf.*.rp_filter: 0 off, 1 strict, 2 loose
_WHY_NOT = "no packet of another node can come in by a wrong interface: one interface, or no strict rp_filter"


def ask_arrivals(company: Company, left: float) -> Questions:
    """Ask each node whose interfaces and settings are known; of the others nothing will be known."""
    held = {name: [seat for seat in seats(nics) if ":" not in seat.ip] for name, nics in company.each(NicFacts).items()}
    questions: Questions = {}
    for name, settings in company.each(NetSettingsFacts).items():
        if name in held:
            packets: list[JsonValue] = list(_packets(name, held, settings))
            asked = replace(ARRIVALS, arguments={"arrivals": packets}, timeout=max(1.0, min(10.0, left - 1.0)))
            questions[name] = (asked if packets else NotAsked(ARRIVALS, _WHY_NOT),)
    return questions


def _packets(name: str, held: Mapping[str, list[Seat]], settings: NetSettingsFacts) -> Iterator[JsonValue]:
    own = held[name]
    if len({seat.interface.name for seat in own}) < 2:  # noqa: PLR2004  by one interface all goes out that came in
        return
    for seat in own:
        if settings.effective(seat.interface.name).rp_filter == STRICT:
            for source in _senders(name, seat, held):
                yield {"interface": seat.interface.name, "address": seat.ip, "source": source}


def _senders(name: str, seat: Seat, held: Mapping[str, list[Seat]]) -> Iterator[str]:
    """Yield an address for each subnet that others send from to this one: its own or, where no subnet is common to the
    two nodes, that of the other's interface of the same name (each a rail, which routers join).
    """
    seen: set[str] = set()
    mine = {one.subnet for one in held[name]}
    for other, theirs in held.items():
        apart = not mine & {one.subnet for one in theirs}
        for one in theirs if other != name else ():
            sends = one.subnet == seat.subnet or (apart and one.interface.name == seat.interface.name)
            if sends and one.subnet not in seen and one.ip != seat.ip:
                seen.add(one.subnet)
                yield one.ip
