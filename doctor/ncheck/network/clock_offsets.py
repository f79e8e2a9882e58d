"""The clocks of the nodes, compared with each other and with the local host's clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck.facts.clock import ClockFacts
from ncheck.hostlist import fold
from ncheck.model.check import Problem
from ncheck.model.cluster import Cluster

SECOND = 1.0
MINUTE = 60.0  # munge and Kerberos refuse at 300 s, TLS at any difference


def off_by(cluster: Cluster, more_than: float, up_to: float, what: str) -> Iterator[Problem]:
    """Yield one problem that names the nodes whose clock is off by that many seconds; `what` ends its message."""
    clocks = skews(cluster.facts(ClockFacts))
    off = {node: skew for node, skew in clocks.items() if more_than < abs(skew) <= up_to}
    if off:
        yield Problem(
            message=f"the clock of {fold(off)} {what}",
            fix="sudo timedatectl set-ntp true",
            evidence=tuple(f"{node}: {skew_text(skew)}" for node, skew in off.items()),
            nodes=tuple(off),
            summary=f"the clock {what}",
        )


def skews(clocks: Mapping[str, ClockFacts]) -> dict[str, float]:
    """Map each node to the seconds that its clock is at least ahead (negative: behind), 0.0 within the uncertainty.

    The reference is the median of all clocks including the local host's, so that a single wrong clock is the only one
    named. A single node is compared with the local host.
    """
    offsets = [clock.offset for clock in clocks.values()]
    ordered = sorted((0.0, *offsets))
    reference = ordered[(len(ordered) - 1) // 2] if len(offsets) > 1 else 0.0
    return {node: _beyond(clock.offset - reference, clock.uncertainty) for node, clock in clocks.items()}


def _beyond(ahead: float, uncertainty: float) -> float:
    sure = max(0.0, abs(ahead) - uncertainty)
    return sure if ahead > 0 else -sure


def skew_text(skew: float) -> str:
    """Format a skew: "3600.0 s ahead"."""
    return f"{abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}"
