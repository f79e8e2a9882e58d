"""One file of /proc/net/bonding: the bond's own lines, then a block for each slave that opens with its name.

Layout: Linux, drivers/net/bonding/bond_procfs.c.
"""

from __future__ import annotations

from collections.abc import Mapping

from doctor.model.facts import Bond, Slave

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
