"""Bonds, from /proc/net/bonding. Interfaces tell which bonds there are, so that one without its file is missed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from doctor.collect.nics import INTERFACES
from doctor.collect.reader import Reader, no_answer
from doctor.model.evidence import Evidence, Tree
from doctor.model.fact import Absent, Read, Unread
from doctor.model.facts import BondFacts
from doctor.parse.bonding import bond_in

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


READERS = (Reader(BondFacts, (BONDING, INTERFACES), bonds),)
