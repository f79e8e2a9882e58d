"""Where the ranks of later turns find each other, kept open until the agent ends.

For NCCL a child of the job's interpreter, under the plan's variables, calls ncclGetUniqueId: each identifier comes with
a root that listens in that child, and is good for one communicator.
"""

import json
import os
import queue
import signal
import subprocess
import threading
import time
from importlib import import_module

from doctor.agent import commands
from doctor.agent.answers import MissingError
from doctor.agent.answers.nccl_job import job_nccl, set_over

# Means to the module of doctor/agent/turns/ whose `meeting` opens it; NCCL's own is below.
OPENED_BY = {"gloo": "gloo"}

AT_MOST = 4096  # identifiers of one question: each is a thread and a socket
_OURS = "ncheck:"
_LONGEST = 4 * 1024 * 1024  # bytes of a line

READS = (
    "ncclGetUniqueId, called by the job's python3, run with -B -S -c: its roots listen until the run ends (the probe)",
)

# No log of NCCL's own goes anywhere, and no rendezvous of another job's is taken.
_QUIET = {"NCCL_DEBUG": "VERSION", "NCCL_DEBUG_FILE": ""}

# Old interpreters can run it, too. It ends with its input: when the agent does.
_ROOTS = r"""
import binascii, ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
ids = []
for turn in range(int(sys.argv[2])):
    name = ctypes.create_string_buffer(128)
    code = library.ncclGetUniqueId(name)
    if code: break
    ids.append(binascii.hexlify(name.raw).decode())
def words(function, argument):
    said = getattr(library, function, None)
    if said is None: return ""
    said.restype, said.argtypes = ctypes.c_char_p, [type(argument)]
    return (said(argument) or b"").decode("utf-8", "replace").strip()
error = code and (words("ncclGetLastError", ctypes.c_void_p()) or words("ncclGetErrorString", ctypes.c_int(code)))
sys.stdout.write("\nncheck:" + json.dumps({"ids": ids, "code": code, "words": error or ""}) + "\n")
sys.stdout.flush()
sys.stdin.read()
"""


def answer(sources, arguments, timeout):
    """Return what the turns need to meet there: see answers/__init__.py."""
    if arguments["means"] in OPENED_BY:
        module = import_module("doctor.agent.turns." + OPENED_BY[arguments["means"]])
        return module.meeting(sources, arguments, timeout)
    return _roots(sources, arguments, time.monotonic() + timeout)


def _roots(sources, arguments, ends):
    path, version = job_nccl(sources, ends)
    count = max(1, min(AT_MOST, int(arguments.get("count") or 1)))
    said = _told(sources, [sources.job.path, "-B", "-S", "-c", _ROOTS, path, str(count)], arguments, ends)
    if said["code"]:
        raise MissingError("ncclGetUniqueId: {} (result {})".format(said["words"] or "no words", said["code"]))
    return {"ids": said["ids"], "version": version, "path": path}


def _told(sources, argv, arguments, ends):
    """Start the child, keep it, and return what it tells in its line."""
    variables = dict(arguments.get("variables") or {}, NCCL_COMM_ID=None)
    process = subprocess.Popen(
        argv, env=set_over(sources.job.environment, variables, _QUIET), cwd="/", start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    sources.kept.setdefault("meetings", []).append(process)  # its input stays open, and so does all that it opened
    heard = queue.Queue()
    threading.Thread(target=_listen, args=(process.stdout, heard), daemon=True).start()
    try:
        said, words = heard.get(timeout=max(0.1, ends - time.monotonic()))
    except queue.Empty:
        said, words = "", "it did not answer in its time"
    if said:
        return json.loads(said[len(_OURS) :])
    end(process)
    raise MissingError("ncclGetUniqueId: {}".format(words))


def _listen(stream, heard):
    """Hear the child to its end, so that it is never held up; its first line of ours, or the end, is told."""
    last = "it ended without an answer"
    for data in iter(lambda: stream.readline(_LONGEST), b""):
        line = commands.decoded(data).strip()
        if line.startswith(_OURS):
            heard.put((line, ""))
        last = line or last
    heard.put(("", last))


def end(process):
    """End the child and what it started; it is not waited for long."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(1.0)
    except (OSError, subprocess.TimeoutExpired):
        pass
