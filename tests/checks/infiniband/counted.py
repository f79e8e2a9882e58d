"""Nodes whose ports counted errors before and during a run."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.error_counters import Counted, ErrorCountersFacts, LaterErrorCountersFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.nics import Address, Interface, Kind, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent

SECONDS, GB = 64.0, 10**9
PORT = HcaPort("mlx5_0", 1, "Active", "LinkUp", 400, "InfiniBand", netdev="ib0")
ETH0 = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address("10.0.0.1", 24),))


def node(  # noqa: PLR0913, PLR0917  what differs between the tests
    before: Mapping[str, int] | None = None,
    after: Mapping[str, int] | None = None,
    port: HcaPort = PORT,
    name: str = "",
    moved: int = 12 * GB,
    counters: int = 18,
) -> Facts:
    """Return a node with one HCA port. `name` is that of the port or card that counts, by default the port's own."""
    counting = name or port.name
    return {
        InfinibandFacts: InfinibandFacts((port,), "sysfs"),
        LibraryFacts: LibraryFacts("", NO_HCA),
        NicFacts: NicFacts((ETH0, Interface("ib0", 3, Kind.INFINIBAND, up=True, running=True, mtu=2044))),
        ErrorCountersFacts: ErrorCountersFacts(10.0, {counting: Counted(counters, before or {}, 7, 7)}),
        LaterErrorCountersFacts: LaterErrorCountersFacts(
            10.0 + SECONDS, {counting: Counted(counters, after or {}, 7 + moved, 7 + moved)}
        ),
    }


def without_hca(before: Mapping[str, int], after: Mapping[str, int], name: str = "eth0") -> Facts:
    """Return a node with network cards alone."""
    return {**node(before, after, name=name, counters=3), InfinibandFacts: Absent("no InfiniBand or RoCE device")}
