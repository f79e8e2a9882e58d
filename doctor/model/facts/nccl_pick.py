"""Which interface NCCL itself picks: what ncclGetUniqueId answered on the node, in a child of the job's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NcclPickFacts:
    """The address that NCCL chose in the job's environment, conf files and all; "" with `error` where it refused to.

    `version` is that of the library that was asked. `rendezvous` is NCCL_COMM_ID where that is set: NCCL then echoes
    it, and tells nothing of its choice.
    """

    address: str
    version: str = ""
    error: str = ""
    rendezvous: str = ""


@dataclass(frozen=True)
class PlannedPickFacts:
    """The same under the plan's variables, which were these."""

    pick: NcclPickFacts
    variables: Mapping[str, str] = field(default_factory=dict)
