"""Where the ranks of later steps find each other, kept open until the agent ends.

For NCCL a child of the job's interpreter, under the plan's variables, calls ncclGetUniqueId: each identifier comes with
a root that listens in that child, and is good for one communicator.
"""

import sys
import time
from importlib import import_module

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.nccl_job import WHY, child_environment, job_nccl
from ncheck.agent.long_lived_child import LongLivedChild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence

    from ncheck.agent.sources import Arguments, Sources

# Means to the module of doctor/ncheck/probe/agent/ whose `meeting` opens it; NCCL's own is below.
OPENED_BY = {"gloo": "gloo"}

AT_MOST = 4096  # identifiers of one question: each is a thread and a socket

READS = (
    "ncclGetUniqueId, called by the job's python3, run with -B -S -c: its roots listen until the run ends (the probe)",
)

# No log of NCCL's own goes anywhere, and no rendezvous of another job's is taken.
_QUIET = {"NCCL_DEBUG": "VERSION", "NCCL_DEBUG_FILE": ""}

# Old interpreters can run it, too. It ends with its input: when the agent does.
_ROOTS = (
    r"""
import binascii, ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
ids = []
for number in range(int(sys.argv[2])):
    name = ctypes.create_string_buffer(128)
    code = library.ncclGetUniqueId(name)
    if code: break
    ids.append(binascii.hexlify(name.raw).decode())
"""
    + WHY
    + r"""sys.stdout.write("\nncheck:" + json.dumps({"ids": ids, "code": code, "words": error or ""}) + "\n")
sys.stdout.flush()
sys.stdin.read()
"""
)


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return what the steps need to meet there.

    Asked as {"method": "nccl"|"gloo", "count": int (ids wanted), "variables": {NAME: value|null}}; it says for NCCL
    {"ids": [256 hex digits], "version", "path"} (each good for one step). For gloo it is asked "address", an own ip,
    too, and says {"address", "port", "version", "path"}: a store that is good for all steps; or {"importing": seconds}.
    """
    if arguments["method"] in OPENED_BY:
        module = import_module("ncheck.probe.agent." + OPENED_BY[arguments["method"]])
        opened: "Dict[str, Any]" = module.meeting(sources, arguments, timeout)
        return opened
    return _roots(sources, arguments, time.monotonic() + timeout)


def _roots(sources: "Sources", arguments: "Arguments", ends: float) -> "Dict[str, Any]":
    path, version = job_nccl(sources, ends)
    count = max(1, min(AT_MOST, int(arguments.get("count") or 1)))
    message = _first_message(
        sources, [sources.job.path or sys.executable, "-B", "-S", "-c", _ROOTS, path, str(count)], arguments, ends
    )
    if message["code"]:
        raise MissingError("ncclGetUniqueId: {} (result {})".format(message["words"] or "no words", message["code"]))
    return {"ids": message["ids"], "version": version, "path": path}


def _first_message(sources: "Sources", argv: "Sequence[str]", arguments: "Arguments", ends: float) -> "Dict[str, Any]":
    """Start the child, keep it, and return what it tells in its line."""
    variables = dict(arguments.get("variables") or {}, NCCL_COMM_ID=None)
    child = LongLivedChild(argv, child_environment(sources.job.environment, variables, _QUIET))
    sources.kept.setdefault("meetings", []).append(child)  # its input stays open, and so does all that it opened
    words = "it ended without an answer"
    for one in child.messages(ends):
        if isinstance(one, dict):
            return one
        words = one
    late = time.monotonic() >= ends
    child.end()
    raise MissingError("ncclGetUniqueId: {}".format("it did not answer in its time" if late else words))
