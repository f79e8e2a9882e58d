"""Whose clock is off, told by the nodes' clocks together and the head's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck.facts.clock import ClockFacts
from ncheck.hostlist import fold
from ncheck.model.check import Problem
from ncheck.model.cluster import Cluster

SECOND = 1.0


MINUTE = 60.0  # munge and Kerberos refuse at 300 s, TLS at once


def off_by(cluster: Cluster, more_than: float, up_to: float, what: str) -> Iterator[Problem]:
    """Yield one problem that names the nodes whose clock is off by so many seconds; `what` ends its message."""
    clocks = skews(cluster.facts(ClockFacts))
    off = {node: skew for node, skew in clocks.items() if more_than < abs(skew) <= up_to}
    if off:
        yield Problem(
            message=f"the clock of {fold(off)} {what}",
            fix="sudo timedatectl set-ntp true",
            evidence=tuple(f"{node}: {told(skew)}" for node, skew in off.items()),
            nodes=tuple(off),
        )


def skews(clocks: Mapping[str, ClockFacts]) -> dict[str, float]:
    """Map each node to the seconds that its clock is surely ahead (below 0: behind), 0.0 within what was measurable.

    The right time is the middle one of all clocks, the head's among them, so that one odd clock is named and no other;
    a single node is compared with the head.
    """
    offsets = [clock.offset for clock in clocks.values()]
    ordered = sorted((0.0, *offsets))
    right = ordered[(len(ordered) - 1) // 2] if len(offsets) > 1 else 0.0
    return {node: _surely(clock.offset - right, clock.uncertainty) for node, clock in clocks.items()}


def _surely(ahead: float, uncertainty: float) -> float:
    sure = max(0.0, abs(ahead) - uncertainty)
    return sure if ahead > 0 else -sure


def told(skew: float) -> str:
    """Write a skew for people: "3600.0 s ahead"."""
    return f"{abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}"
