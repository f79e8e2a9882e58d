"""Which programs that measure are there."""

from __future__ import annotations

from doctor.collect.reader import Reader, no_answer
from doctor.model.evidence import Answer, Evidence
from doctor.model.fact import Read
from doctor.model.facts import Tool, ToolFacts

TOOLS = Answer("tools")
_LONGEST = 4096  # a path


def tools(evidence: Evidence) -> Read[ToolFacts]:
    """Read which are there, and where."""
    reply = evidence.reply(TOOLS)
    if why := no_answer(TOOLS, reply):
        return why
    value = reply.value
    found = value["tools"] if isinstance(value, dict) else None
    if not isinstance(found, dict):
        raise TypeError("no tools in it")
    return ToolFacts({name: _tool(told) for name, told in found.items()})


def _tool(told: object) -> Tool:
    if not isinstance(told, dict):
        raise TypeError("no tool")
    path, mpi = told["path"], told.get("mpi")
    if not isinstance(path, str) or not path.startswith("/") or len(path) > _LONGEST or not path.isprintable():
        raise ValueError("a path that is none")
    return Tool(path, mpi if isinstance(mpi, bool) else None)


READERS = (Reader(ToolFacts, (TOOLS,), tools),)
