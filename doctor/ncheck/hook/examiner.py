"""The examination of a running job: a child of rank 0, with a connection to the part of ncheck on each node.

It is started while the ranks are awaited. Then a request comes over the socket that is its standard input, and it
writes the verdict; each is one JSON object:

    {"members": [the fields of a Member of ncheck.hook.meeting.attendance],
     "sockets": [machine] (their file descriptors follow),
     "missing": {rank: the host where it should be, or ""}, "ended": [rank], "problems": [[kind, ranks, text]],
     "could_come": bool, "launcher": its name, "size": int, "waited": seconds,
     "packages": [modules that the job uses], "until": by time.monotonic(),
     "select": [...], "ignore": [...], "strict": bool, "apply": bool, "probe": "none"|"quick", "argv": [the job's],
     "variables": [names that rank 0's environment sets], "columns": of its terminal,
     "watch": false, or {"alarms": bool, "stalled": seconds or null, "folder": where it saves, "history": path or ""}:
     then rank 0's standard error follows the sockets}

After the verdict it starts what watches the job, if that is wanted (ncheck.hook.watcher), and ends.

What the pipeline or a plug-in prints goes nowhere.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ncheck.agent.guard import PR_SET_PDEATHSIG, prctl
from ncheck.cli.process import collect_garbage_rarely

if TYPE_CHECKING:
    from ncheck.hook.engine import RanksEngine
    from ncheck.hook.places import Places
    from ncheck.settings import Settings

_KILL = 9
_JUDGING = 0.6  # seconds of the time that are kept for judging and for the verdict's way back
_JUDGING_EACH = 0.005  # the same for each node
LEAST = 0.5  # seconds for the nodes, however late it is


def main(parent: int) -> None:
    """Get ready, wait for the request, examine, write the verdict. Never returns once that is written."""
    prctl(PR_SET_PDEATHSIG, _KILL)
    if os.getppid() != parent:
        return
    collect_garbage_rarely()
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    with socket.socket(fileno=0) as control:
        _get_ready(control)
        request = received(control)
        kept = control.dup() if request and request["watch"] else None
    if request is None:
        return
    verdict, places, engine = examined(request)
    with os.fdopen(out, "wb") as file:
        file.write(json.dumps(verdict, separators=(",", ":")).encode() + b"\n")
    if kept and engine:
        from ncheck.hook.watcher import start_watcher

        start_watcher(parent, request, places, engine, kept)
    os._exit(0)  # at once: the job waits for this process to end


def _get_ready(control: socket.socket) -> None:
    """Import what an examination needs, while the ranks are still awaited. Where none is, the checks are imported while
    the node is at work.
    """
    from ncheck.steps.registry import load_checks

    registry = load_checks()
    registry.facts(registry.listed)
    if not select.select([control], [], [], 0.0)[0]:
        registry.imported(registry.listed)


HEADER = struct.Struct(">Q")  # bytes of the request, before it
MOST_AT_ONCE = 253  # file descriptors in one message


def received(control: socket.socket) -> dict[str, Any] | None:
    """Return the request, with the sockets in it as numbers of this process; None where there is none."""
    header = _exactly(control, HEADER.size)
    if not header:
        return None
    request: dict[str, Any] = json.loads(_exactly(control, *HEADER.unpack(header)))
    numbers: list[int] = []
    while len(numbers) < len(request["sockets"]) + bool(request["watch"]):
        data, some, _, _ = socket.recv_fds(control, 1, MOST_AT_ONCE)
        if not data:
            return None
        numbers += some
    more = {"stderr": numbers.pop()} if request["watch"] else {}
    return request | {"sockets": dict(zip(request["sockets"], numbers, strict=True)), **more}


def _exactly(control: socket.socket, size: int) -> bytes:
    parts = []
    while size and (data := control.recv(min(size, 1 << 20))):
        parts.append(data)
        size -= len(data)
    return b"" if size else b"".join(parts)


def examined(request: Mapping[str, Any]) -> tuple[dict[str, Any], Places, RanksEngine | None]:
    """Return the verdict on the job, and its nodes. Wrong settings of the user: {"refused": why}, and no engine."""
    from ncheck.errors import NcheckError
    from ncheck.hook.engine import RanksEngine
    from ncheck.hook.places import place
    from ncheck.hook.verdict import verdict_of
    from ncheck.observer import Silent
    from ncheck.pipeline import examine
    from ncheck.steps.registry import load_checks

    places = place(request)
    sys.argv = [str(word) for word in request["argv"]]  # the report names the job's command
    try:
        settings = _settings(request, places.ranks, request["until"] - time.monotonic())
        sockets = {name: socket.socket(fileno=number) for name, number in places.sockets.items()}
        engine = RanksEngine(sockets, places.why, kept=bool(request["watch"]))
        report = examine(settings, Silent(), listed=places.nodes, engine_for=lambda _: engine)
    except NcheckError as error:
        return {"refused": str(error)}, places, None
    return verdict_of(report, load_checks().checks, places.ranks, request), places, engine


def _settings(request: Mapping[str, Any], ranks: Mapping[str, Any], seconds: float) -> Settings:
    """Return the settings of a run inside a job. Raises SettingsError for a check that does not exist."""
    from dataclasses import replace
    from pathlib import Path

    from ncheck.settings import make_settings
    from ncheck.steps.registry import load_checks

    quick = request["probe"] == "quick" and seconds > QUICK + LEAST_BEFORE
    deadline = max(LEAST, seconds - _JUDGING - len(ranks) * _JUDGING_EACH - (QUICK if quick else 0.0))
    given = {"config": "none", "select": tuple(request["select"]), "ignore": tuple(request["ignore"])}
    made = make_settings(given, {}, Path("/"))
    registry = load_checks() if made.ignore else None
    for ignore in made.ignore:
        assert registry  # noqa: S101  loaded for this loop
        registry.one(ignore.check)
    return replace(
        made,
        hosts=",".join(ranks),
        launcher=_planned_as(request["launcher"]),
        run=replace(made.run, ranks=ranks),
        fail_on=("error", "unknown") if request["strict"] else ("error",),
        deadline=deadline,
        connect_timeout=deadline,
        probe="auto" if quick else "none",
        probe_time=QUICK if quick else made.probe_time,
    )


def _planned_as(name: str) -> str:
    """Return the launcher of a job as a plan calls it. Bare variables need no ssh and no MPI, as with torchrun."""
    from ncheck.launchers import LAUNCHER_TABLE

    rows = LAUNCHER_TABLE.items()
    return next((planned for planned, row in rows if any(one.name == name for one in row.variables)), "torchrun")


QUICK = 18.0  # seconds at most for a quick bandwidth test; a healthy one takes less than half
LEAST_BEFORE = 6.0  # seconds for all else


if __name__ == "__main__":
    main(int(sys.argv[1]))
