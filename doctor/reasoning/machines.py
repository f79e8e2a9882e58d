"""Which of the listed nodes are one machine: it shows its addresses under each of its names, and rightly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from doctor.model.facts import IdentityFacts, NicFacts


def doubles(nodes: Iterable[str], identities: Mapping[str, IdentityFacts]) -> dict[str, str]:
    """Map each node that is a machine which comes before it under another name to that name."""
    first: dict[tuple[str, str], str] = {}
    found: dict[str, str] = {}
    for node in nodes:
        if node in identities and (machine := identities[node].machine):
            known = first.setdefault(machine, node)
            found |= {node: known} if known != node else {}
    return found


def machines(nics: Mapping[str, NicFacts], identities: Mapping[str, IdentityFacts]) -> dict[str, NicFacts]:
    """Keep the first of the nodes that are one machine, and all of which that is not known."""
    again = doubles(nics, identities)
    return {node: held for node, held in nics.items() if node not in again}
