"""Evidence to facts: one parser a module, each a pure function of what the node answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ncheck.facts.arrivals import ArrivalFacts
from ncheck.facts.bonds import BondFacts
from ncheck.facts.clock import ClockFacts
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.firewall import FirewallFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.kernel_log import KernelLogFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.links import LinkFacts, ListenFacts
from ncheck.facts.login import IdentityFacts, ListingFacts, LoginFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.names import HostNameFacts, NameFacts
from ncheck.facts.nccl import LoadedNcclFacts, NcclCopiesFacts
from ncheck.facts.nccl_pick import NcclPickFacts, PlannedPickFacts
from ncheck.facts.net_settings import NetSettingsFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.pcie import PcieFacts
from ncheck.facts.probe import MeetingFacts, ProbeFacts
from ncheck.facts.routes import RouteFacts
from ncheck.facts.run import UnreadFacts
from ncheck.facts.ssh_peers import PeerSshFacts
from ncheck.facts.tools import ToolFacts
from ncheck.model.fact import Unread
from ncheck.parse.topology_matrix import TopologyFacts

if TYPE_CHECKING:
    from ncheck.facts.reader import Reader
    from ncheck.model.cluster import FactType
    from ncheck.model.evidence import Evidence, Source


# The module here whose READERS make each fact. Those that nobody asks for are not imported.
HOMES: Mapping[FactType, str] = {
    ListingFacts: "login",
    LoginFacts: "login",
    IdentityFacts: "login",
    ClockFacts: "clock",
    PeerSshFacts: "ssh_peers",
    ListenFacts: "links",
    LinkFacts: "links",
    InterpreterFacts: "interpreter",
    LoadedNcclFacts: "nccl",
    NcclCopiesFacts: "nccl",
    NcclPickFacts: "nccl_pick",
    PlannedPickFacts: "nccl_pick",
    ProbeFacts: "probe_replies",
    MeetingFacts: "probe_replies",
    MpiFacts: "mpi",
    MpiDaemonFacts: "mpi_daemon",
    HorovodFacts: "horovod",
    EnvironmentFacts: "environment",
    LimitsFacts: "limits",
    NicFacts: "nics",
    NetSettingsFacts: "net_settings",
    BondFacts: "bonds",
    HostNameFacts: "names",
    NameFacts: "names",
    FirewallFacts: "firewall",
    ArrivalFacts: "arrivals",
    RouteFacts: "routes",
    ToolFacts: "tools",
    InfinibandFacts: "infiniband",
    GpuFacts: "gpus",
    TopologyFacts: "topology",
    PcieFacts: "pcie",
    KernelLogFacts: "kernel_log",
}


def reader_of(fact: FactType) -> Reader[object]:
    """Return the reader that makes a fact of HOMES."""
    return _readers(HOMES[fact])[fact]


@cache
def _readers(module: str) -> dict[FactType, Reader[object]]:
    return {reader.fact: reader for reader in import_module(f"ncheck.facts.{module}").READERS}


def sources_for(facts: Iterable[FactType]) -> tuple[Source, ...]:
    """Return what must be read for these facts, each source once; the facts of the run itself need nothing."""
    asked = (source for fact in facts if fact in HOMES for source in reader_of(fact).sources)
    return tuple({source.key: source for source in asked}.values())


def facts_of(evidence: Evidence, wanted: Iterable[FactType]) -> dict[FactType, object]:
    """Parse the wanted facts of one node. Each is a fact, Unread or Absent; nothing is raised for a bad node."""
    facts = {fact: _fact(evidence, fact) for fact in wanted if fact in HOMES}
    return {**facts, UnreadFacts: _owed(evidence, facts)}


def joined(known: Mapping[FactType, object], more: Mapping[FactType, object]) -> dict[FactType, object]:
    """Return a node's facts with those of a later part of its evidence; what is owed adds up."""
    owed, owed_more = known.get(UnreadFacts), more.get(UnreadFacts)
    if isinstance(owed, UnreadFacts):
        still = owed_more.unread if isinstance(owed_more, UnreadFacts) else {}
        return {**known, **more, **_in_turns(known, more), UnreadFacts: UnreadFacts({**owed.unread, **still})}
    return {**known, **more, **_in_turns(known, more)}


def _in_turns(known: Mapping[FactType, object], more: Mapping[FactType, object]) -> dict[FactType, object]:
    """Return what comes in several parts, with all parts that came so far."""
    earlier, later = known.get(ProbeFacts), more.get(ProbeFacts)
    if isinstance(earlier, ProbeFacts) and isinstance(later, ProbeFacts):
        return {ProbeFacts: later.after(earlier)}
    return {}


def _owed(evidence: Evidence, facts: dict[FactType, object]) -> UnreadFacts | Unread:
    """Return what a reached node owes; of a node that was not reached nothing can be said.

    What never came because the connection ended is not owed one by one: the cause is a finding of its own.
    """
    if why := _unusable(evidence):
        return Unread(why)
    unread = {fact: value for fact, value in facts.items() if isinstance(value, Unread) and not value.needs_root}
    return UnreadFacts({fact.__name__: value for fact, value in unread.items() if _came(evidence, fact)})


def _came(evidence: Evidence, fact: FactType) -> bool:
    if evidence.login.cause is None:
        return True
    return all(source.key in evidence.replies for source in reader_of(fact).sources)


def _fact(evidence: Evidence, fact: FactType) -> object:
    reader = reader_of(fact)
    if reader.sources and (why := _unusable(evidence)):
        return Unread(why)
    try:
        return reader.parse(evidence)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        return Unread(f"could not be parsed: {type(error).__name__}: {error}")


def _unusable(evidence: Evidence) -> str:
    """Say why nothing at all can have been read there; what was answered before a cut is still read."""
    login = evidence.login
    if not login.reached:
        return f"not reached ({login.cause.value if login.cause else 'no cause known'})"
    return f"{login.cause.value}: {login.detail}" if login.cause and not evidence.replies else ""
