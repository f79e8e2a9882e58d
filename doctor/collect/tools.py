"""Which programs that measure are there."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.collect.reader import Reader, no_answer
from doctor.collect.shapes import mapping, words
from doctor.model.evidence import Answer, Evidence, JsonValue
from doctor.model.fact import Read
from doctor.model.facts import Tool, ToolFacts

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


READERS = (Reader(ToolFacts, (TOOLS,), tools),)
