"""Children that are kept until the agent ends: what they open stays open for later questions."""

import json
import os
import queue
import signal
import subprocess
import threading
import time

from doctor.agent import commands
from doctor.agent.answers import MissingError

_OURS = "ncheck:"
_LONGEST = 4 * 1024 * 1024  # bytes of a line


def first_word(sources, argv, environment, ends):
    """Start a child, keep it, and return what it tells as JSON in its first line of ours.

    Its input stays open as long as the agent lives. MissingError with its own last words where it tells nothing.
    """
    process = subprocess.Popen(
        argv, env=environment, cwd="/", start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    sources.kept.setdefault("children", []).append(process)
    heard = queue.Queue()
    threading.Thread(target=_listen, args=(process.stdout, heard), daemon=True).start()
    try:
        said, words = heard.get(timeout=max(0.1, ends - time.monotonic()))
    except queue.Empty:
        said, words = "", "it did not answer in its time"
    if said:
        return json.loads(said[len(_OURS) :])
    _end(process)
    raise MissingError(words)


def _end(process):
    """End it and what it started; its output is left to the thread that reads it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass


def _listen(stream, heard):
    """Hear the child to its end, so that it is never held up; its first line of ours, or the end, is told."""
    last = "it ended without an answer"
    for data in iter(lambda: stream.readline(_LONGEST), b""):
        line = commands.decoded(data).strip()
        if line.startswith(_OURS):
            heard.put((line, ""))
        last = line or last
    heard.put(("", last))
