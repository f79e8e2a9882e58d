"""This node's own ssh to its peers, in batch mode, as a launcher would use it. Nothing is written."""

import queue
import random
import shutil
import threading
import time

from ncheck.agent.answers import MissingError
from ncheck.agent.commands import run

# Logins that one node has open at once. Each starts with the node after itself, so each is asked by about as many at
# once: below 10, where sshd's MaxStartups (10:30:100) begins to drop. The one node that asks hundreds may open more.
AT_ONCE, AT_MOST = 6, 32
TRIES = 3
_UNTRIED = {"exit_status": None, "stderr": "", "seconds": 0.0, "cut_short": True}
_DROPPED = ("kex_exchange_identification", "ssh_exchange_identification", "Exceeded MaxStartups")
OPTIONS = (
    "BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no", "ControlMaster=no", "ControlPath=none",
    "NumberOfPasswordPrompts=0", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
    "ClearAllForwardings=yes", "LogLevel=ERROR",
    "CheckHostIP=no",  # before OpenSSH 8.5 it is on, and adds the address to known_hosts, strict or not
)  # fmt: skip


def answer(sources, arguments, timeout):
    """Return {"peers": {target: {...}}}, every peer that was asked for; MissingError where ssh is not installed."""
    peers = queue.Queue()
    for peer in arguments["peers"]:
        peers.put(peer)
    if not shutil.which("ssh"):
        raise MissingError("no ssh on PATH")
    said = {peer["target"]: dict(_UNTRIED) for peer in arguments["peers"]}
    ends = time.monotonic() + timeout
    threads = [
        threading.Thread(target=_ask, args=(peers, arguments["timeout"], ends, said), daemon=True)
        for _ in range(min(AT_MOST, max(AT_ONCE, peers.qsize() // 8), peers.qsize()))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return {"peers": dict(said)}


def line(peer, timeout):
    """Return the command line for one peer. What comes from the listing stands after --, or is an option's value."""
    argv = ["ssh", "-n", "-T", "-x"]
    for option in (*OPTIONS, "ConnectTimeout={:.0f}".format(max(1, timeout))):
        argv += ["-o", option]
    if peer.get("port"):
        argv += ["-p", str(peer["port"])]
    if peer.get("user"):
        argv += ["-l", peer["user"]]
    return [*argv, "--", peer["host"], "true"]


READS = ("runs, to each peer: " + " ".join(line({"host": "PEER"}, 15)),)


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
        left = ends - time.monotonic() - 0.5
        if left < 1.0:
            return dict(_UNTRIED)
        reply = run(line(peer, timeout), min(timeout + 2, left))
        stderr = reply.get("stderr", "")[-2000:]
        if not any(words in stderr for words in _DROPPED) or number == TRIES - 1:
            break
        time.sleep(random.uniform(0.2, 1.0) * (number + 1))  # noqa: S311  to be apart from the others, no secret
    status = reply.get("exit_status")
    return {
        "exit_status": status, "stderr": stderr, "seconds": reply.get("seconds", 0.0),
        "cut_short": status is None and left < timeout + 2,
    }  # fmt: skip
