"""One pair of HCA ports: ib_write_bw (perftest) or ibv_rc_pingpong (ibverbs-utils), a server here and a client there.

Both need a TCP connection first, on a free port. The head names some: the server takes the first that is free here, and
the client tries one after the other until it reaches the server. Their output is parsed on the head.
"""

import re
import socket
import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.nccl_job import child_environment
from ncheck.agent.answers.tools import path_of
from ncheck.agent.commands import run
from ncheck.agent.traffic import carried, counters
from ncheck.probe.agent.nccl_tests import program_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Sequence

    from ncheck.agent.commands import Environment, Reply
    from ncheck.agent.sources import Arguments, Sources

READS = ("ib_write_bw or ibv_rc_pingpong between pairs of HCA ports, where one of them is on the PATH (the probe)",)
_PAUSE = 0.2  # seconds before a client tries again: its server may not wait for it yet
# Couldn't connect to 10.1.0.7:18515     |     Unable to open file descriptor for socket connection
_REFUSED = re.compile(r"Couldn't connect|Could not connect|[Cc]onnection refused|Couldn't read remote address")
_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,64}$")


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return the result of this node; "output" is that of the program: see step.py."""
    ends = time.monotonic() + min(arguments["timeout"], timeout)
    environment = child_environment(sources.job.environment, arguments.get("variables") or {}, {})
    path = path_of(arguments["tool"], environment)
    if path is None:
        raise MissingError("no {} on the PATH of the job's environment".format(arguments["tool"]))
    argv = [path, *_options(arguments)]
    before, started = counters(), time.monotonic()
    done = (
        _serve(argv, arguments, environment, ends) if arguments["serves"] else _call(argv, arguments, environment, ends)
    )
    return {
        "rows": [], "carried": carried(before, counters(), arguments.get("planned") or ()), "version": "",
        "library": path, "used": [], "log": [], "failure": None, "start": None, "left": [],
        "output": program_output(done, time.monotonic() - started),
    }  # fmt: skip


def _options(arguments: "Arguments") -> "List[str]":
    if not _DEVICE.match(arguments["device"]):
        raise ValueError("a device of that name cannot be")
    options = ["-d", arguments["device"], "-i", str(int(arguments["hca_port"])), "-s", str(int(arguments["bytes"]))]
    options += ["-n", str(int(arguments["iterations"]))]
    if arguments["tool"] == "ib_write_bw":
        options += ["-F", "--report_gbits"]
        return options + (["-x", str(int(arguments["gid"]))] if arguments.get("gid") is not None else [])
    return options + (["-g", str(int(arguments["gid"]))] if arguments.get("gid") is not None else [])


def _serve(argv: "Sequence[str]", arguments: "Arguments", environment: "Environment", ends: float) -> "Reply":
    port = next((port for port in arguments["ports"] if _free(port)), None)
    if port is None:
        return {"status": "failed", "reason": "none of the TCP ports {} is free".format(arguments["ports"])}
    return run([*argv, "-p", str(port)], max(0.1, ends - time.monotonic()), environment)


def _free(port: int) -> bool:
    """Return whether a program could listen there. A connection in TIME_WAIT does not prevent that."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True


def _call(argv: "Sequence[str]", arguments: "Arguments", environment: "Environment", ends: float) -> "Reply":
    """Try one port after the other, again and again, until the server answers or the time is over."""
    ports, tries = arguments["ports"], 0
    while True:
        line = [*argv, "-p", str(ports[tries % len(ports)]), arguments["address"]]
        done = run(line, max(0.1, ends - time.monotonic()), environment)
        tries += 1
        refused = done.get("exit_status") not in (0, None) and _REFUSED.search(done["stdout"] + done["stderr"])
        if not refused or time.monotonic() + _PAUSE >= ends:
            return done
        time.sleep(_PAUSE)
