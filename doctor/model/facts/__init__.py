"""The facts that checks may declare, by topic. A fact holds what is so; it never says whether that is good."""

from __future__ import annotations

from doctor.model.facts.access import ClockFacts, IdentityFacts, ListingFacts, LoginFacts, PeerSsh, PeerSshFacts
from doctor.model.facts.arrivals import Arrival, ArrivalFacts
from doctor.model.facts.bonds import Bond, BondFacts, Slave
from doctor.model.facts.daemon import EarlyReturn, MpiDaemonFacts, MpiProgram
from doctor.model.facts.firewall import Chain, FirewallFacts, Match, Rule
from doctor.model.facts.gpu import Gpu, GpuFacts, KernelLogFacts, TopologyFacts, XidEvent
from doctor.model.facts.links import Link, LinkCause, LinkFacts, ListenFacts, PortState, Reach
from doctor.model.facts.names import HostNameFacts, NameFacts, Resolved
from doctor.model.facts.nccl_pick import NcclPickFacts, PlannedPickFacts
from doctor.model.facts.net_settings import Conntrack, InterfaceSettings, NetSettingsFacts
from doctor.model.facts.network import Address, Gid, HcaPort, InfinibandFacts, Interface, Kind, NicFacts
from doctor.model.facts.pcie import PcieFacts, PcieLink, Processor
from doctor.model.facts.probe import Carried, Failure, Means, MeetingFacts, ProbeFacts, Row, Skipped, Stage, Step, Turn
from doctor.model.facts.routes import RouteFacts
from doctor.model.facts.run import BrokenPlugIn, Crash, CrashFacts, JobFacts, PlugInFacts, UnreadFacts
from doctor.model.facts.software import (
    EnvironmentFacts,
    HorovodFacts,
    InterpreterFacts,
    LimitsFacts,
    LoadedNcclFacts,
    MpiFacts,
    NcclCopiesFacts,
    NcclCopy,
    SharedMemory,
)
from doctor.model.facts.tools import Tool, ToolFacts

__all__ = [
    "Address",
    "Arrival",
    "ArrivalFacts",
    "Bond",
    "BondFacts",
    "BrokenPlugIn",
    "Carried",
    "Chain",
    "ClockFacts",
    "Conntrack",
    "Crash",
    "CrashFacts",
    "EarlyReturn",
    "EnvironmentFacts",
    "Failure",
    "FirewallFacts",
    "Gid",
    "Gpu",
    "GpuFacts",
    "HcaPort",
    "HorovodFacts",
    "HostNameFacts",
    "IdentityFacts",
    "InfinibandFacts",
    "Interface",
    "InterfaceSettings",
    "InterpreterFacts",
    "JobFacts",
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
    "Match",
    "Means",
    "MeetingFacts",
    "MpiDaemonFacts",
    "MpiFacts",
    "MpiProgram",
    "NameFacts",
    "NcclCopiesFacts",
    "NcclCopy",
    "NcclPickFacts",
    "NetSettingsFacts",
    "NicFacts",
    "PcieFacts",
    "PcieLink",
    "PeerSsh",
    "PeerSshFacts",
    "PlannedPickFacts",
    "PlugInFacts",
    "PortState",
    "ProbeFacts",
    "Processor",
    "Reach",
    "Resolved",
    "RouteFacts",
    "Row",
    "Rule",
    "SharedMemory",
    "Skipped",
    "Slave",
    "Stage",
    "Step",
    "Tool",
    "ToolFacts",
    "TopologyFacts",
    "Turn",
    "UnreadFacts",
    "XidEvent",
]
