"""Programs that measure, as the job's environment has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ncheck.facts.definition import Fact, exempt_unprobed, no_answer
from ncheck.facts.shapes import mapping, words
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Read
from ncheck.model.phase import Questions
from ncheck.settings import Settings


@dataclass(frozen=True)
class Tool:
    """One program. `mpi` tells whether it was built with MPI; None: that cannot be seen (a wrapper)."""

    path: str
    mpi: bool | None = None


@dataclass(frozen=True)
class ToolFacts:
    """What is there of all_reduce_perf, all_reduce_perf_mpi, ib_write_bw and ibv_rc_pingpong, by name."""

    tools: Mapping[str, Tool]


TOOLS = Answer("tools")


_LONGEST = 4096  # a path


def tools(evidence: Evidence) -> Read[ToolFacts]:
    """Read which are there, and where."""
    reply = evidence.reply(TOOLS)
    if why := no_answer(TOOLS, reply):
        return why
    found = mapping(mapping(reply.value)["tools"])
    return ToolFacts({name: _tool(mapping(told)) for name, told in found.items()})


def _tool(told: Mapping[str, JsonValue]) -> Tool:
    path, mpi = words(told["path"]), told.get("mpi")
    if not path.startswith("/") or len(path) > _LONGEST or not path.isprintable():
        raise ValueError("a path that is none")
    return Tool(path, mpi if isinstance(mpi, bool) else None)


def ask_tools(cluster: Cluster, _settings: Settings, _left: float) -> Questions:
    """Ask every node that may be measured."""
    return dict.fromkeys(cluster.names, (TOOLS,))


FACTS = (Fact(ToolFacts, (TOOLS,), tools, questions=ask_tools, exempt=exempt_unprobed),)
