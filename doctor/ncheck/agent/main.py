"""The agent on a node: its streams are standard input and output."""

import os

from ncheck.agent.guard import guarded
from ncheck.agent.loop import serve
from ncheck.agent.sources import Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


def main(seconds: float, shared_by: "Optional[str]" = None) -> None:
    """Serve the head until it is done or gone, `seconds` at most; end everything that was started. Never returns.

    `shared_by`: standard input is one stream for many agents (broadcast.py), of the run with this marker.
    """
    guarded(lambda: _serve(shared_by), seconds)


def _serve(shared_by: "Optional[str]") -> None:
    if shared_by:
        from ncheck.agent.broadcast import Broadcast, forget_step

        forget_step(os.environ)
        sources, streams = Sources(), Broadcast(shared_by)
        serve(streams.read_exactly, streams.write_all, sources.respond, sources.start)
    else:
        sources = Sources()
        serve(read_exactly, write_all, sources.respond, sources.start)
    sources.end()


def read_exactly(wanted: int) -> bytes:
    """Return that many bytes of standard input, fewer at its end."""
    parts = []
    while wanted:
        data = os.read(0, min(wanted, 1048576))
        if not data:
            break
        parts.append(data)
        wanted -= len(data)
    return b"".join(parts)


def write_all(data: bytes) -> None:
    """Write all of it to standard output."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
