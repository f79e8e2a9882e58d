"""This node's rank of an all-reduce by torch.distributed over gloo, on CPUs, and the store where such ranks meet.

gloo waits beyond its own time-out where another rank has died: whoever is late is ended, with all that it started.
"""

import json
import time
from importlib.util import find_spec

from doctor.agent.answers import MissingError
from doctor.agent.commands import run
from doctor.agent.counters import READS as COUNTERS
from doctor.agent.counters import carried, counters
from doctor.agent.keeping import first_word

_PROGRAM = "doctor.agent.gloo_rank"
_TO_END = 1.0  # seconds that a rank has less than this node: it should say itself that its time is over
_LAST = 20  # lines of a failure
_WIDEST = 400  # characters of one

READS = ("torch.distributed with gloo, by the job's python3, run with -B -c (--probe gloo)", *COUNTERS)


def meeting(sources, arguments, timeout):
    """Open a store at arguments["address"] for all turns to come: {"address", "port", "version", "path"}."""
    address = arguments["address"]
    argv = _argv(sources, {"store": address})
    said = first_word(sources, argv, _environment(sources, arguments), time.monotonic() + timeout)
    return {"address": address, "port": said["port"], "version": said["version"], "path": said["path"]}


def answer(sources, arguments, timeout):
    """Return the turn: see answers/__init__.py."""
    began, before = time.monotonic(), counters()
    limit = min(arguments["timeout"], timeout)
    reply = run(_argv(sources, _asked(arguments, limit)), limit, _environment(sources, arguments), tail=True)
    said = _said(reply)
    first = _first(said, "first")
    return {
        "rows": [one["row"] for one in said if "row" in one],
        "carried": carried(before, counters(), arguments["planned"]),
        "version": _first(said, "version") or "", "library": _first(said, "path") or "", "used": [],
        "log": [one["note"] for one in said if "note" in one] + _last_lines(reply, said),
        "failure": _failure(reply, said, arguments["first"], limit),
        "start": round(first - began, 4) if first else None, "left": [],
    }  # fmt: skip


def _argv(sources, asked):
    if not sources.job.path:
        raise MissingError("no python3 on the PATH")
    return [sources.job.path, "-B", "-c", find_spec(_PROGRAM).loader.get_source(_PROGRAM), json.dumps(asked)]


def _asked(arguments, limit):
    seconds = max(0.5, limit - _TO_END)
    return {
        "meeting": arguments["meeting"], "sizes": arguments["sizes"], "rank": arguments["first"],
        "turn": "{} {}".format(arguments["round"], " ".join(arguments["group"])), "world": sum(arguments["ranks"]),
        "seconds": min(arguments["seconds"], seconds), "timeout": seconds,
    }  # fmt: skip


def _environment(sources, arguments):
    """Return the job's environment with the plan's variables over it; None takes one away."""
    variables = arguments.get("variables") or {}
    held = {name: value for name, value in sources.job.environment.items() if name not in variables}
    return dict(held, **{name: value for name, value in variables.items() if value is not None})


def _said(reply):
    lines = reply.get("stdout", "").splitlines()
    return [json.loads(line[len("ncheck:") :]) for line in lines if line.startswith("ncheck:{") and line.endswith("}")]


def _first(said, name):
    return next((one[name] for one in said if name in one), None)


def _failure(reply, said, rank, limit):
    """Return where the rank stood and in whose words it failed; None where it measured what there was time for."""
    if any("row" in one for one in said) and any("done" in one for one in said):
        return None
    steps = [one["step"] for one in said if "step" in one]
    step, status = steps[-1] if steps else "starting python3", reply.get("exit_status")
    told, late = _first(said, "failure") or _first(said, "note"), reply["status"] == "timeout"
    if told is None and late:
        told = "it did not end within {:.0f} s, and was ended".format(limit)
    if told is None:
        lines = reply.get("stderr", "").strip().splitlines()
        told = lines[-1] if lines else reply.get("reason") or "it ended with exit status {}".format(status)
    return {"step": step, "words": told[:_WIDEST], "rank": rank, "code": status, "late": late}


def _last_lines(reply, said):
    """Return the last lines of one that failed, as it printed them."""
    if any("done" in one for one in said):
        return []
    lines = [line[:_WIDEST] for line in reply.get("stderr", "").splitlines() if line.strip()]
    return lines[-_LAST:]
