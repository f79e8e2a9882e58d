"""Programs that measure bandwidth, as found on the PATH of the job's environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from ncheck.facts.definition import Fact, exempt_unprobed, no_answer
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read
from ncheck.model.phase import Questions
from ncheck.settings import Settings

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions


@dataclass(frozen=True)
class Tool:
    """One program. `mpi`: whether it was built with MPI; None if that cannot be seen (a wrapper script)."""

    path: str
    mpi: bool | None = None


@dataclass(frozen=True)
class ToolFacts:
    """By name, those of all_reduce_perf, all_reduce_perf_mpi, ib_write_bw and ibv_rc_pingpong that exist."""

    tools: Mapping[str, Tool]


class ToolAnswer(TypedDict):
    """One program."""

    path: str
    mpi: bool | None


class ToolsAnswer(TypedDict):
    """Programs by name."""

    tools: dict[str, ToolAnswer]


TOOLS = Answer("tools", shape=ToolsAnswer)


_LONGEST = 4096  # a path


def tools_of(cluster: Cluster, node: str) -> dict[str, Tool]:
    """Return a node's programs by name; empty if the node could not be asked."""
    facts = cluster.connected_facts(ToolFacts).get(node)
    return dict(facts.tools) if facts else {}


def tools(evidence: Evidence) -> Read[ToolFacts]:
    """Read which programs exist, and where."""
    reply = evidence.reply(TOOLS)
    if why := no_answer(TOOLS, reply):
        return why
    found = cast("ToolsAnswer", reply.value)["tools"]
    return ToolFacts({name: _tool(value) for name, value in found.items()})


def _tool(value: ToolAnswer) -> Tool:
    path = value["path"]
    if not path.startswith("/") or len(path) > _LONGEST or not path.isprintable():
        raise ValueError("a path that is none")
    return Tool(path, value.get("mpi"))


def ask_tools(cluster: Cluster, _settings: Settings, _left: float) -> Questions:
    """Ask every node that may be measured."""
    return dict.fromkeys(cluster.names, (TOOLS,))


FACTS = (Fact(ToolFacts, (TOOLS,), tools, questions=ask_tools, exempt=exempt_unprobed),)
