"""Which interface NCCL itself picks: what ncclGetUniqueId answered on the node, in a child of the job's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NcclPickFacts:
    """The address that NCCL chose in the job's environment, conf files and all; "" with `error` where it refused to.

    `version` is that of the library that was asked. `rendezvous` is NCCL_COMM_ID where that is set: NCCL then echoes
    it, and tells nothing of its choice. `scope` is the interface's index where the address is link-local, 0 elsewhere.
    """

    address: str
    version: str = ""
    error: str = ""
    rendezvous: str = ""
    scope: int = 0


@dataclass(frozen=True)
class PlannedPickFacts:
    """The same under the plan's variables, which were these; `interfaces` are those that the plan means by them."""

    pick: NcclPickFacts
    variables: Mapping[str, str] = field(default_factory=dict)
    interfaces: tuple[str, ...] = ()
