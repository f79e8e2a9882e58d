"""ssh to other nodes, in batch mode, as a launcher would use it. Nothing is written.

A nonce that the command prints proves that the command itself ran. Where this user's configuration accepts new host
keys, so does the test: they would be written to the first of the known_hosts files, and that is /dev/null here.
"""

import os
import queue
import random
import shutil
import threading
import time

from ncheck.agent.answers import MissingError
from ncheck.agent.commands import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

    from ncheck.agent.commands import Process, Reply
    from ncheck.agent.sources import Arguments

    Peer = Mapping[str, Any]  # "target", "host", "port", "user" and "words"

# Logins that one node has open at once. Each starts with the node after itself, so each is asked by about as many at
# once: below 10, where sshd's MaxStartups (10:30:100) begins to drop. The one node that asks hundreds may open more.
AT_ONCE, AT_MOST = 6, 32
TRIES = 3
_UNTRIED = {"exit_status": None, "stderr": "", "seconds": 0.0, "cut_short": True, "ran": False}
_DROPPED = ("kex_exchange_identification", "ssh_exchange_identification", "Exceeded MaxStartups")
OPTIONS = (
    "BatchMode=yes", "UpdateHostKeys=no", "ControlMaster=no", "NumberOfPasswordPrompts=0", "ForwardAgent=no",
    "ForwardX11=no", "PermitLocalCommand=no", "ClearAllForwardings=yes",
    "LogLevel=INFO",  # at ERROR, ssh does not say why it cannot negotiate
    "CheckHostIP=no",  # before OpenSSH 8.5 it is on, and adds the address to known_hosts, strict or not
)  # fmt: skip
STRICT = ("StrictHostKeyChecking=yes",)
_SECONDS_TO_READ = 5.0  # for ssh to read its configuration


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return {"peers": {target: {...}}}, every peer that was asked for; MissingError where ssh is not installed.

    Asked as {"peers": [{"target": node, "host", "port": int|null, "user": str|null}], "timeout": seconds}.
    """
    peers: "queue.Queue[Peer]" = queue.Queue()
    for peer in arguments["peers"]:
        peers.put(peer)
    if not shutil.which("ssh"):
        raise MissingError("no ssh on PATH")
    results = {peer["target"]: dict(_UNTRIED, port=peer.get("port")) for peer in arguments["peers"]}
    tries = Tries(arguments["timeout"], time.monotonic() + timeout)
    threads = [
        threading.Thread(target=_ask, args=(peers, tries, results), daemon=True)
        for _ in range(min(AT_MOST, max(AT_ONCE, peers.qsize() // 8), peers.qsize()))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, tries.ends - time.monotonic()))
    return {"peers": dict(results)}


def line(peer: "Peer", timeout: float, checking: "Iterable[str]" = STRICT, command: str = "echo NONCE") -> "List[str]":
    """Return the command line for one peer."""
    argv = ["ssh", "-n", "-T", "-x"]
    for option in (*OPTIONS, *checking, "ConnectTimeout={:.0f}".format(max(1, timeout))):
        argv += ["-o", option]
    return [*argv, *_destination(peer), command]


def _destination(peer: "Peer") -> "List[str]":
    """Return the peer's own words. What comes from the listing stands after --, or is an option's value."""
    words = list(peer.get("words", ()))
    if peer.get("port"):
        words += ["-p", str(peer["port"])]
    if peer.get("user"):
        words += ["-l", peer["user"]]
    return [*words, "--", peer["host"]]


def accepting(text: str) -> "Tuple[str, ...]":
    """Return the options that accept new host keys as this output of `ssh -G` does, and write none; else STRICT."""
    values = dict(row.split(" ", 1) for row in text.splitlines() if " " in row)
    checking = values.get("stricthostkeychecking")
    if checking not in ("no", "off", "false", "accept-new"):
        return STRICT
    files = [name.replace("%", "%%") for name in values.get("userknownhostsfile", "").split() if name != "none"]
    checking = "accept-new" if checking == "accept-new" else "no"
    return ("StrictHostKeyChecking=" + checking, "UserKnownHostsFile=" + " ".join(["/dev/null", *files]))


READS = ("runs, to each peer: " + " ".join(line({"host": "PEER"}, 15)),)


class Tries:
    """What all tries of one question share: seconds for each login, when to end, the current folder of ssh, and who is
    called with each process that begins.
    """

    def __init__(
        self, timeout: float, ends: float, folder: str = "/", begun: "Optional[Callable[[Process], object]]" = None
    ) -> None:
        self.timeout, self.ends, self.folder, self.begun = timeout, ends, folder, begun

    def run(self, argv: "Sequence[str]", longest: float) -> "Reply":
        left = max(0.1, min(longest, self.ends - time.monotonic() - 0.5))
        return run(argv, left, cwd=self.folder, begun=self.begun)


def _ask(peers: "queue.Queue[Peer]", tries: "Tries", results: "Dict[str, Dict[str, object]]") -> None:
    while True:
        try:
            peer = peers.get_nowait()
        except queue.Empty:
            return
        results[peer["target"]] = dict(tried(peer, tries), port=peer.get("port"))


def tried(peer: "Peer", tries: "Tries") -> "Dict[str, Any]":
    """Log in to one peer. A login that its sshd dropped for want of room is tried again a little later."""
    checking = accepting(tries.run(["ssh", "-G", *_destination(peer)], _SECONDS_TO_READ).get("stdout", ""))
    first, second = os.urandom(8).hex(), os.urandom(8).hex()
    # In two halves, which any shell joins: what only repeats the command does not look like its output.
    argv = line(peer, tries.timeout, checking, "echo {}''{}".format(first, second))
    longest = tries.timeout + 2  # ConnectTimeout does not cover the key exchange: the command has its own end
    for number in range(TRIES):
        left = tries.ends - time.monotonic() - 0.5
        if left < 1.0:
            return dict(_UNTRIED)
        reply = tries.run(argv, longest)
        stderr = reply.get("stderr", "")[-2000:]
        if not any(words in stderr for words in _DROPPED) or number == TRIES - 1:
            break
        time.sleep(random.uniform(0.2, 1.0) * (number + 1))  # noqa: S311  to be apart from the others, no secret
    status = reply.get("exit_status")
    return {
        "exit_status": status, "stderr": stderr, "seconds": reply.get("seconds", 0.0),
        "cut_short": status is None and left < longest, "ran": first + second in reply.get("stdout", ""),
    }  # fmt: skip
