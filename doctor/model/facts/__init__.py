"""The facts that checks may declare, by topic. A fact holds what is so; it never says whether that is good."""

from __future__ import annotations

from doctor.model.facts.access import ClockFacts, IdentityFacts, ListingFacts, LoginFacts, PeerSsh, PeerSshFacts
from doctor.model.facts.gpu import Gpu, GpuFacts, KernelLogFacts, TopologyFacts, XidEvent
from doctor.model.facts.links import Link, LinkCause, LinkFacts, ListenFacts, PortState, Reach
from doctor.model.facts.nccl_pick import NcclPickFacts, PlannedPickFacts
from doctor.model.facts.network import Address, HcaPort, InfinibandFacts, Interface, Kind, NicFacts
from doctor.model.facts.run import BrokenPlugIn, Crash, CrashFacts, PlugInFacts, UnreadFacts
from doctor.model.facts.software import (
    EnvironmentFacts,
    HorovodFacts,
    InterpreterFacts,
    LimitsFacts,
    LoadedNcclFacts,
    MpiFacts,
    NcclCopiesFacts,
    NcclCopy,
)

__all__ = [
    "Address",
    "BrokenPlugIn",
    "ClockFacts",
    "Crash",
    "CrashFacts",
    "EnvironmentFacts",
    "Gpu",
    "GpuFacts",
    "HcaPort",
    "HorovodFacts",
    "IdentityFacts",
    "InfinibandFacts",
    "Interface",
    "InterpreterFacts",
    "KernelLogFacts",
    "Kind",
    "LimitsFacts",
    "Link",
    "LinkCause",
    "LinkFacts",
    "ListenFacts",
    "ListingFacts",
    "LoadedNcclFacts",
    "LoginFacts",
    "MpiFacts",
    "NcclCopiesFacts",
    "NcclCopy",
    "NcclPickFacts",
    "NicFacts",
    "PeerSsh",
    "PeerSshFacts",
    "PlannedPickFacts",
    "PlugInFacts",
    "PortState",
    "Reach",
    "TopologyFacts",
    "UnreadFacts",
    "XidEvent",
]
