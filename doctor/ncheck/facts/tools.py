"""Programs that measure bandwidth, as found on the PATH of the job's environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ncheck.decode import Maybe, Path
from ncheck.facts.definition import Fact, exempt_unprobed
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Tool:
    """One program. `mpi`: whether it was built with MPI; None if that cannot be seen (a wrapper script)."""

    path: Path
    mpi: Maybe[bool] = None


@dataclass(frozen=True)
class ToolFacts:
    """By name, those that exist of ib_write_bw, ibv_rc_pingpong, all_reduce_perf and all_reduce_perf_mpi, and beside
    these the other programs of nccl-tests.
    """

    tools: Mapping[str, Tool]


TOOLS = Answer("tools", shape=ToolFacts)


def tools_of(cluster: Cluster, node: str) -> dict[str, Tool]:
    """Return a node's programs by name; empty if the node could not be asked."""
    facts = cluster.connected_facts(ToolFacts).get(node)
    return dict(facts.tools) if facts else {}


def ask_tools(cluster: Cluster, _settings: Settings, _left: float) -> Questions:
    """Ask every node that may be measured."""
    return dict.fromkeys(cluster.names, (TOOLS,))


FACTS = (Fact(ToolFacts, (TOOLS,), questions=ask_tools, exempt=exempt_unprobed),)
