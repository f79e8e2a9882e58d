"""Bonds: several cards that work as one, by the bonding driver's own account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ncheck.facts.definition import Fact, no_answer
from ncheck.facts.nics import INTERFACES
from ncheck.model.evidence import Evidence, Tree
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class Slave:
    """One card of a bond. `speed` is in Mb/s, None where the driver does not say; `aggregator` is of 802.3ad alone."""

    name: str
    up: bool
    speed: int | None = None
    aggregator: int | None = None


@dataclass(frozen=True)
class Bond:
    """One bond. `active` is the slave that carries all of an active-backup bond, and `aggregator` the group of slaves
    that carries all of an 802.3ad bond; None in other modes, or where there is none.
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
    """Read every bond; a node that has none is Absent."""
    for source in (BONDING, INTERFACES):
        if why := no_answer(source, evidence.reply(source)):
            return why
    tree = evidence.reply(BONDING).value
    if not isinstance(tree, Mapping):
        raise TypeError("the bonding driver's files are no tree")
    names = _names(evidence)
    for name in names:
        if not isinstance(tree.get(PLACE + name), str):
            return Unread(f"{PLACE}{name} cannot be read, and {name} is a bond")
    return BondFacts(tuple(bond_in(name, str(tree[PLACE + name])) for name in names)) if names else Absent("no bond")


def _names(evidence: Evidence) -> list[str]:
    value = cast("Mapping[str, list[Mapping[str, object]]]", evidence.reply(INTERFACES).value)
    return [str(link["name"]) for link in value["interfaces"] if link.get("bond")]


FACTS = (Fact(BondFacts, (BONDING, INTERFACES), bonds),)


_LINE_OF_A_SLAVE = "Slave Interface: "  # Slave Interface: eno1


def bond_in(name: str, text: str) -> Bond:
    """Read a bond. Raises ValueError for what is no such file."""
    head, *blocks = text.split(_LINE_OF_A_SLAVE)
    own = _pairs(head)
    if "Bonding Mode" not in own or "MII Status" not in own:
        raise ValueError(f"{name}: that is no account of a bond")
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
    said = _pairs(rest)
    return Slave(name.strip(), said.get("MII Status") == "up", _speed(said), _number(said.get("Aggregator ID")))


def _pairs(text: str) -> Mapping[str, str]:
    """Read "Speed: 25000 Mbps"; where a key comes again (details of 802.3ad partners), the first one counts."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            pairs.setdefault(key.strip(), value.strip())
    return pairs


def _speed(said: Mapping[str, str]) -> int | None:
    word = said.get("Speed", "").removesuffix("Mbps").strip()  # Speed: 25000 Mbps | Speed: Unknown
    return int(word) if word.isdigit() else None


def _number(word: str | None) -> int | None:
    return int(word) if word and word.isdigit() else None


def _name(word: str | None) -> str | None:
    """Return the active slave's name: the line says "None" where there is none, and modes without one have no line."""
    return None if word in (None, "None") else word
