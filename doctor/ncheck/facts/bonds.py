"""Bonds: several interfaces that work as one, as the bonding driver reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from ncheck.decode import Flag
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import Fact, no_answer
from ncheck.facts.nics import INTERFACES
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence, Tree
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class Slave:
    """An interface of a bond. `speed`: Mb/s, None if the driver does not report it; `aggregator`: with 802.3ad only."""

    name: str
    up: bool
    speed: int | None = None
    aggregator: int | None = None


@dataclass(frozen=True)
class Bond:
    """A bond. `active`: the slave that carries the data of an active-backup bond. `aggregator`: the group of slaves
    that carries the data of an 802.3ad bond. Both are None in other modes, or if there is none.
    """

    name: str
    mode: str  # "IEEE 802.3ad Dynamic link aggregation", "fault-tolerance (active-backup)"
    up: bool
    slaves: tuple[Slave, ...]
    active: str | None = None
    aggregator: int | None = None


@dataclass(frozen=True)
class BondFacts:
    """Every bond of the node's network namespace."""

    bonds: tuple[Bond, ...]


PLACE = "/proc/net/bonding/"
BONDING = Tree((PLACE + "*",))


def bonds(evidence: Evidence) -> Read[BondFacts]:
    """Read every bond; a node without one is Absent."""
    for source in (BONDING, _BONDED):
        if why := no_answer(source, evidence.reply(source)):
            return why
    tree = cast("Mapping[str, object]", evidence.reply(BONDING).value)
    names = _names(evidence)
    for name in names:
        if not isinstance(tree.get(PLACE + name), str):
            return Unread(f"{PLACE}{name} cannot be read, although {name} is a bond")
    return BondFacts(tuple(bond_in(name, str(tree[PLACE + name])) for name in names)) if names else Absent("no bond")


def _names(evidence: Evidence) -> list[str]:
    answer: _Interfaces = answer_of(_BONDED, evidence)
    return [link.name for link in answer.interfaces if link.bond]


@dataclass(frozen=True)
class _Interface:
    name: str
    bond: Flag = False


@dataclass(frozen=True)
class _Interfaces:
    interfaces: tuple[_Interface, ...]


_BONDED = replace(INTERFACES, shape=_Interfaces)

FACTS = (Fact(BondFacts, (BONDING, _BONDED), bonds),)
_LINE_OF_A_SLAVE = "Slave Interface: "  # Slave Interface: eno1


def bond_in(name: str, text: str) -> Bond:
    """Read a bond's file. Raises ValueError for other text."""
    head, *blocks = text.split(_LINE_OF_A_SLAVE)
    own = _pairs(head)
    if "Bonding Mode" not in own or "MII Status" not in own:
        raise ValueError(f"{name}: not a file of the bonding driver")
    return Bond(
        name=name,
        mode=own["Bonding Mode"],
        up=own["MII Status"] == "up",
        slaves=tuple(_slave(block) for block in blocks),
        active=_name(own.get("Currently Active Slave")),
        aggregator=_number(own.get("Aggregator ID")),
    )


def _slave(block: str) -> Slave:
    name, _, rest = block.partition("\n")
    pairs = _pairs(rest)
    return Slave(name.strip(), pairs.get("MII Status") == "up", _speed(pairs), _number(pairs.get("Aggregator ID")))


def _pairs(text: str) -> Mapping[str, str]:
    """Read "Speed: 25000 Mbps"; of a repeated key (details of 802.3ad partners), the first one counts."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            pairs.setdefault(key.strip(), value.strip())
    return pairs


def _speed(pairs: Mapping[str, str]) -> int | None:
    word = pairs.get("Speed", "").removesuffix("Mbps").strip()  # Speed: 25000 Mbps | Speed: Unknown
    return int(word) if word.isdigit() else None


def _number(word: str | None) -> int | None:
    return int(word) if word and word.isdigit() else None


def _name(word: str | None) -> str | None:
    """Return the active slave's name: the line says "None" if there is none, and other modes have no such line."""
    return None if word in (None, "None") else word
