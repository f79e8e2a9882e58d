"""One pair of HCA ports: ib_write_bw (perftest) or ibv_rc_pingpong (ibverbs-utils), a server here and a client there.

Both need a TCP connection first, on a free port. The head names some: the server takes the first that is free here, and
the client tries one after the other until it reaches the server. Their output is parsed on the head.
"""

import re
import socket
import threading
import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.nccl_job import child_environment
from ncheck.agent.answers.tools import LATENCY, path_of
from ncheck.agent.commands import run
from ncheck.agent.traffic import carried, counters
from ncheck.probe.agent.nccl_tests import program_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Tuple

    from ncheck.agent.commands import Environment, Reply
    from ncheck.agent.sources import Arguments, Sources

READS = (
    "ib_write_bw or ibv_rc_pingpong between pairs of HCA ports, where one of them is on the PATH (the probe)",
    "with --nic-test ib_write_bw and ib_write_lat from each HCA port to itself, from a GPU's memory where they can",
)
_PAUSE = 0.2  # seconds before a client tries again: its server may not wait for it yet
# Couldn't connect to 10.1.0.7:18515     |     Unable to open file descriptor for socket connection
_REFUSED = re.compile(r"Couldn't connect|Could not connect|[Cc]onnection refused|Couldn't read remote address")
_PCI = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
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
    used = []  # type: List[str]
    if arguments["serves"] is None:
        done, used = _alone(argv, arguments, environment, ends)
    elif arguments["serves"]:
        done = _serve(argv, arguments, environment, ends)
    else:
        done = _call(argv, arguments, environment, ends)
    return {
        "rows": [], "carried": carried(before, counters(), arguments.get("planned") or ()), "version": "",
        "library": path, "used": used, "log": [], "failure": None, "start": None, "left": [],
        "output": program_output(done, time.monotonic() - started),
    }  # fmt: skip


def _options(arguments: "Arguments") -> "List[str]":
    if not _DEVICE.match(arguments["device"]):
        raise ValueError("a device of that name cannot be")
    options = ["-d", arguments["device"], "-i", str(int(arguments["hca_port"])), "-s", str(int(arguments["bytes"]))]
    options += ["-n", str(int(arguments["iterations"]))]
    if arguments["tool"] in ("ib_write_bw", LATENCY):
        options += ["-F"] + (["--report_gbits"] if arguments["tool"] == "ib_write_bw" else [])
        return options + (["-x", str(int(arguments["gid"]))] if arguments.get("gid") is not None else [])
    return options + (["-g", str(int(arguments["gid"]))] if arguments.get("gid") is not None else [])


_LATENCIES = 1000  # messages of two bytes


def _alone(
    argv: "Sequence[str]", arguments: "Arguments", environment: "Environment", ends: float
) -> "Tuple[Reply, List[str]]":
    """Write from a port to itself, from the memory of a GPU if the program can, and measure the latency.

    Return what the client of both printed, and whose memory it was, where not the host's.
    """
    gpu, used = _gpu_options(argv[0], arguments.get("gpu"), environment), []  # type: List[str], List[str]
    half = (ends + time.monotonic()) / 2  # the rest is for the host's memory
    done = _both([*argv, *gpu], arguments, environment, half if gpu else ends)
    if gpu and done.get("exit_status") == 0:
        used = ["GPU {}".format(arguments["gpu"]["index"])]
    elif gpu:
        done = _both(argv, arguments, environment, ends)
    path = path_of(LATENCY, environment)
    if path and done.get("exit_status") == 0:
        line = [path, *_options(dict(arguments, bytes=2, iterations=_LATENCIES, tool=LATENCY))]
        latency = _both(line, arguments, environment, ends)
        if latency.get("exit_status") == 0:
            done["stdout"] += "\n" + latency["stdout"]
    return done, used


def _gpu_options(path: str, gpu: "Optional[Dict[str, Any]]", environment: "Environment") -> "List[str]":
    """Return the option for the memory of this GPU; none where the program was built without it."""
    if not gpu:
        return []
    known = run([path, "--help"], 5.0, environment)
    text = known.get("stdout", "") + known.get("stderr", "")
    if "--use_cuda_bus_id" in text and _PCI.match(gpu["pci"]):
        return ["--use_cuda_bus_id=" + gpu["pci"]]
    return ["--use_cuda={}".format(int(gpu["index"]))] if "--use_cuda=" in text else []


def _both(argv: "Sequence[str]", arguments: "Arguments", environment: "Environment", ends: float) -> "Reply":
    """Run a server and its client here; return what the client printed."""
    server = threading.Thread(target=_serve, args=(argv, arguments, environment, ends), daemon=True)
    server.start()
    done = _call(argv, dict(arguments, address="127.0.0.1"), environment, ends)
    server.join(max(0.0, ends - time.monotonic()))
    return done


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
