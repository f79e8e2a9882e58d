"""The facts that a launch plan is made of."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.mpi_settings import MpiSettingsFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.facts.nics import NicFacts
from ncheck.model.cluster import FactType

PLAN_FACTS: tuple[FactType, ...] = (
    LoginFacts, IdentityFacts, NicFacts, InfinibandFacts, EnvironmentFacts, LoadedNcclFacts, InterpreterFacts, GpuFacts,
    MpiFacts, MpiDaemonFacts, MpiSettingsFacts, LinkFacts, NcclPickFacts, NetPluginFacts,
)  # fmt: skip
