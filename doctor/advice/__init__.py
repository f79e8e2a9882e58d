"""Facts to a launch plan: what the job should be told, and what it gets right by itself."""

from __future__ import annotations

from doctor.model.check import FactType
from doctor.model.facts import (
    EnvironmentFacts,
    GpuFacts,
    IdentityFacts,
    InfinibandFacts,
    InterpreterFacts,
    LinkFacts,
    LoadedNcclFacts,
    LoginFacts,
    MpiDaemonFacts,
    MpiFacts,
    NcclPickFacts,
    NicFacts,
)

# What a plan is made of. The makers in this folder are dear, and imported when a plan is wanted.
PLAN_FACTS: tuple[FactType, ...] = (
    LoginFacts, IdentityFacts, NicFacts, InfinibandFacts, EnvironmentFacts, LoadedNcclFacts, InterpreterFacts, GpuFacts,
    MpiFacts, MpiDaemonFacts, LinkFacts, NcclPickFacts,
)  # fmt: skip
