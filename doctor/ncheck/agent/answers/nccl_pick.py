"""Which address NCCL itself picks here: ncclGetUniqueId, called in a child of the job's interpreter.

It needs no GPU and no driver. The answer is that of the job's environment and of NCCL's own configuration files, or of
a plan's variables set over that environment. The identifier comes with a listening socket, which ends with the child.
"""

import json
import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.nccl_job import WHY, child_environment
from ncheck.agent.answers.nccl_loaded import AskingLibraries, loaded, spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple

    from ncheck.agent.answers.nccl_loaded import Version
    from ncheck.agent.commands import Environment, Reply
    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Arguments, Sources

READS = (
    "the libnccl or librccl that the job loads, opened by the job's python3: ncclGetVersion, ncclGetUniqueId",
    "the files that this NCCL reads by itself: $NCCL_CONF_FILE or ~/.nccl.conf, /etc/nccl.conf",
)

# Set over the job's own, and over the files: no log of NCCL's is written anywhere, not even one that a file asks for.
_QUIET = {"NCCL_DEBUG": "VERSION", "NCCL_DEBUG_FILE": ""}

# Runs in a child of its own, for a library can end the process that opens it. Old interpreters can run it, too. By the
# time that NCCL has answered, the lines of its files have become variables, which libc shows and os.environ does not.
_ASK = (
    r"""
import binascii, ctypes, json, os, sys
library, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
number, name = ctypes.c_int(), ctypes.create_string_buffer(128)
library.ncclGetVersion(ctypes.byref(number))
code = library.ncclGetUniqueId(name)
"""
    + WHY
    + r"""both = ("libnccl.so", "librccl.so")
maps = [line for line in open("/proc/self/maps") if any(word in line for word in both)]
paths = [line.split(None, 5)[-1].strip() for line in maps]
print("\nncheck:" + json.dumps({
    "number": number.value, "path": paths[0] if paths else "", "code": code, "words": error or "",
    "id": None if code else binascii.hexlify(name.raw).decode(),
    "rendezvous": (libc.getenv(b"NCCL_COMM_ID") or b"").decode("utf-8", "replace"),
}))
sys.stdout.flush()
os._exit(0)
"""
)


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return what NCCL says, or why it could not be asked, with what was asked.

    Asked as null, or under the plan as {"variables": {NAME: value|null}, "interfaces": [names that the plan means]}.
    """
    asked = arguments or {}
    asking = _Picking(sources.job, time.monotonic() + timeout, asked.get("variables") or {})
    found = loaded(sources.job, ("a copy may be there",), asking)
    if found is None:
        raise MissingError("no NCCL that the job's interpreter would load")
    if found.get("static"):
        raise MissingError("NCCL is {}: it cannot be asked without torch".format(found["how"]))
    if "error" in found:
        return {"error": found["error"], "asked": asked}
    return dict(asking.message, version=found["version"], path=found["path"], asked=asked)


class _Picking(AskingLibraries):
    """Asks the copy that the job loads for its version and, in the same child, for its pick."""

    def __init__(self, job: "JobSetup", ends: float, variables: "Dict[str, Optional[str]]") -> None:
        AskingLibraries.__init__(self, job, ends)
        self.variables = variables
        self.message: "Dict[str, Any]" = {}

    def version(self, python: str, library: str, environment: "Environment") -> "Tuple[Version, str]":
        """Return (version | {"error"}, path), and keep what else was said."""
        left = max(0.1, self.ends - time.monotonic()) + self.job.start_seconds
        reply = self.job.run(_ASK, [library], left, child_environment(environment, self.variables, _QUIET))
        lines = [line for line in reply.get("stdout", "").splitlines() if line.startswith("ncheck:{")]
        if lines:
            message = json.loads(lines[-1][len("ncheck:") :])
            self.message = {name: message[name] for name in ("code", "id", "words", "rendezvous")}
            return spelled(message["number"]), message["path"] or library
        return {"error": _why(reply, left)}, ""


def _why(reply: "Reply", seconds: float) -> str:
    if reply.get("status") == "timeout":
        return "NCCL did not answer within {:.0f} s which address it picks".format(seconds)
    words = reply.get("stderr", "").strip().splitlines()
    status = reply.get("exit_status")
    ending = " (exit status {})".format(status) if status else ""
    return (words[-1] if words else reply.get("reason") or "it ended without an answer") + ending
