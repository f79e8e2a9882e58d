"""This node's own ssh to its peers, in batch mode, as a launcher would use it; nothing is learned and nothing kept."""

import queue
import random
import shutil
import threading
import time

from doctor.agent.answers import MissingError
from doctor.agent.commands import run

AT_ONCE = 4  # logins that one node has open: below what sshd's MaxStartups (10:30:100) drops when all nodes do it
TRIES = 3
_DROPPED = ("kex_exchange_identification", "ssh_exchange_identification", "Exceeded MaxStartups")
OPTIONS = (
    "BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no", "ControlMaster=no", "ControlPath=none",
    "NumberOfPasswordPrompts=0", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
    "ClearAllForwardings=yes", "LogLevel=ERROR",
)  # fmt: skip


def answer(sources, arguments, timeout):
    """Return {"peers": {target: {"exit_status", "stderr", "seconds"}}}; MissingError where ssh is not installed."""
    peers = queue.Queue()
    for peer in arguments["peers"]:
        peers.put(peer)
    if not shutil.which("ssh"):
        raise MissingError("no ssh on the PATH")
    said = {}
    ends = time.monotonic() + timeout
    threads = [
        threading.Thread(target=_ask, args=(peers, arguments["timeout"], ends, said), daemon=True)
        for _ in range(min(AT_ONCE, peers.qsize()))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return {"peers": dict(said)}


def line(peer, timeout):
    """Return the command line for one peer. What comes from the listing stands after --, or is an option's value."""
    argv = ["ssh", "-n", "-T", "-x"]
    for option in OPTIONS + ("ConnectTimeout={:.0f}".format(max(1, timeout)),):
        argv += ["-o", option]
    if peer.get("port"):
        argv += ["-p", str(peer["port"])]
    if peer.get("user"):
        argv += ["-l", peer["user"]]
    return argv + ["--", peer["host"], "true"]


def _ask(peers, timeout, ends, said):
    while True:
        try:
            peer = peers.get_nowait()
        except queue.Empty:
            return
        said[peer["target"]] = _tried(peer, timeout, ends)


def _tried(peer, timeout, ends):
    """Log in to one peer. A login that its sshd dropped for want of room is tried again a little later."""
    for number in range(TRIES):
        # ConnectTimeout does not cover the key exchange: the command has its own end.
        reply = run(line(peer, timeout), max(0.1, min(timeout + 2, ends - time.monotonic())))
        stderr = reply.get("stderr", "")[-2000:]
        if not any(words in stderr for words in _DROPPED) or number == TRIES - 1:
            break
        time.sleep(random.uniform(0.2, 1.0) * (number + 1))
    status = reply.get("exit_status")
    return {"exit_status": status, "stderr": stderr or reply.get("reason", ""), "seconds": reply.get("seconds", 0.0)}
