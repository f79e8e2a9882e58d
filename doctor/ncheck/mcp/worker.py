"""One call of a tool, in a process of its own: it ends when its standard input does, and so does all that it began.

So a call that nobody waits for any more, because it was cancelled or because the server is gone, leaves no agent on a
node.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import BinaryIO

from ncheck.cli.process import collect_garbage_rarely
from ncheck.errors import NcheckError
from ncheck.mcp.tools import Given, answer_to

GRACE = 10.0  # seconds to end the sessions with the nodes


def request(given: Given, tool: str, arguments: dict[str, object], argv: list[str]) -> bytes:
    """Return what a worker reads."""
    return pickle.dumps((given, tool, arguments, argv))


def main() -> None:
    """Answer the call that standard input has, on standard output."""
    collect_garbage_rarely()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    calls, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)  # no print of a library is taken for the answer
    given, tool, arguments, sys.argv = pickle.load(calls)  # noqa: S301  of the process that started this one
    threading.Thread(target=_end_with, args=(calls,), daemon=True).start()
    try:
        answer = answer_to(given, tool, arguments)
        result = {"text": answer.text, "structured": answer.structured}
    except NcheckError as error:
        result = {"error": str(error)}
    except KeyboardInterrupt:
        os._exit(130)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # once it has the answer, nobody waits for this process
    with suppress(OSError), open(answers, "w", encoding="ascii") as stream:  # noqa: PTH123  a descriptor
        json.dump(result, stream)
    sys.stderr.flush()
    os._exit(0)  # the thread waits in a read


def _end_with(calls: BinaryIO) -> None:
    """Interrupt this process when nobody waits for its answer any more."""
    os.read(calls.fileno(), 1)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)
    os._exit(130)
