"""What NCCL's RAS says of the job, asked twice over the port at which it waits for such questions; RCCL's is the same.

Any process of the job answers for all of them. Nothing is asked of a port that does not greet as RAS does.
"""

import array
import errno
import os
import re
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from ncheck.agent import commands, proc
from ncheck.agent.answers.names import resolved
from ncheck.agent.elf import Library
from ncheck.agent.sources import within
from ncheck.triage.agent.net_namespaces import addresses, own_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

    Rank = Mapping[str, Any]

READS = (
    "/proc/PID/maps of the job's ranks: which libnccl they have loaded",
    "the port of NCCL's RAS (NCCL_RAS_ADDR, or localhost:28028): VERBOSE STATUS, twice, 10 s apart",
    "getifaddrs(3): RAS names a node by its address",
)

APART = 10.0  # seconds from one question to the next: between them a job that works launches collectives
_LONGEST = 2 * 1024 * 1024  # bytes of an answer; 3,000 ranks in JSON
_LINE = 4096
_PATIENCE = 1.5  # seconds for a connection and a greeting; a stopped process may hold the port and never greets
_READING = 2.0  # seconds to read which libraries a rank has: its memory map, or their file system, may be held up
_TRIES = 4  # all processes of a node share the port, and the kernel picks one for each connection
_COLLECTING = 4  # seconds that RAS waits for other processes; then it may wait for 5 more
_LAST = 1.0  # seconds at the end, for what was read until then
_NEWNET = 0x40000000
# 7f1e34000000-7f1e36000000 r-xp 00000000 08:01 1234   /opt/venv/lib/python3.11/site-packages/.../libnccl.so.2
_NCCL = re.compile(r"/(?:libnccl|librccl)\.so[^/]*$|/libtorch_(?:cuda|hip)\.so$")  # torch may hold it itself


class _RasError(Exception):
    """RAS was not asked, or did not answer: the message says why."""


def answer(sources: object, arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return the NCCL of each rank, the node's addresses, and what RAS answered, twice if at all.

    Asked as {"ranks", "at": "host:port" (null: nothing is to be asked here), "spare": {"from", "to"} | null: releases
    that are not asked, from the first to before the second}.
    """
    ends = time.monotonic() + timeout - _LAST
    with ThreadPoolExecutor(max(1, len(arguments["ranks"]))) as pool:
        ranks = list(pool.map(_library_in_time, arguments["ranks"]))
    asked: "List[Dict[str, Any]]" = []
    if arguments["at"]:
        try:
            pid = _asked_rank(ranks, arguments.get("spare"))
            asked = _twice(arguments["at"], pid, ends)
        except _RasError as error:
            asked = [_nothing(0.0, str(error))]
    return {"ranks": ranks, "addresses": sorted({ip for ip, _ in addresses(proc.path("self"))}), "asked": asked}


def _library_in_time(rank: "Rank") -> "Dict[str, Any]":
    found = within(_READING, _library, rank)
    why = "no answer within {:g} s".format(_READING)
    return found[0] if found else {"pid": rank["pid"], "path": "", "version": "", "error": why}


def _library(rank: "Rank") -> "Dict[str, Any]":
    """Return {"pid", "path", "version", "error"} of the NCCL that a rank has loaded; path is "" where it has none."""
    found = {"pid": rank["pid"], "path": "", "version": "", "error": ""}
    paths = proc.mapped(rank["pid"], ".so")
    now = proc.stat(rank["pid"])
    if now is None or now.started != rank["started"]:  # its number may belong to another process by now
        return dict(found, error="gone")
    if paths is None:
        return dict(found, error=os.strerror(errno.EACCES))
    libraries = sorted((path for path in paths if _NCCL.search(path)), key=lambda path: "libtorch" in path)
    if libraries:
        found.update(path=libraries[0], version=_version(proc.path(rank["pid"], "root") + libraries[0]))
    return found


def _version(path: str) -> str:
    """Return the version that a libnccl carries, "" where it says none."""
    try:
        library = Library(path)
        version: str = library.constant(b"NCCL version 2.")
        library.close()
    except (OSError, ValueError):
        return ""
    return version[len("NCCL version ") :]


def _asked_rank(ranks: "Iterable[Rank]", spare: "Optional[Mapping[str, str]]") -> int:
    """Return the pid of a rank that may be asked."""
    loaded = [rank for rank in ranks if rank["path"]]
    if not loaded:
        unread = [rank["error"] for rank in ranks if rank["error"] not in ("", "gone")]
        raise _RasError(
            "the libraries of the ranks cannot be read: " + unread[0] if unread else "no rank here has loaded NCCL"
        )
    for rank in loaded:
        if spare and _release(spare["from"]) <= _release(rank["version"]) < _release(spare["to"]):
            raise _RasError("NCCL {} is not asked: a question can end it".format(rank["version"].partition("+")[0]))
    pid: int = loaded[0]["pid"]
    return pid


def _release(version: str) -> "List[int]":
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3]]


def _twice(at: str, pid: int, ends: float) -> "List[Dict[str, Any]]":
    """Ask, wait, and ask again. The first question leaves the second one half of the time."""
    began = time.monotonic()
    half = began + (ends - began) / 2
    asked: "List[Dict[str, Any]]" = []
    for number in range(2):
        time.sleep(max(0.0, min(number * APART - (time.monotonic() - began), ends - time.monotonic())))
        start = time.monotonic() - began
        if ends - time.monotonic() <= _PATIENCE:
            asked.append(_nothing(start, "there was no time left to ask again"))
            continue
        try:
            asked.append(dict(_asked(at, pid, ends if number else half), at=round(start, 3)))
        except (OSError, ValueError, _RasError) as error:
            asked.append(_nothing(start, getattr(error, "strerror", None) or str(error)))
    return asked


def _nothing(start: float, error: str) -> "Dict[str, Any]":
    return {"at": round(start, 3), "text": "", "whole": False, "silent": 0, "error": error}


def _asked(at: str, pid: int, ends: float) -> "Dict[str, Any]":
    """Ask once: in JSON where RAS knows it, which since 2.29.2 is also the form that cannot crash it."""
    sock, silent = _greeted(at, pid, ends)
    try:
        _command(sock, "TIMEOUT {}".format(_COLLECTING), ends)
        _command(sock, "SET FORMAT json", ends)  # before 2.28.7: ERROR: Unknown command
        sock.sendall(b"VERBOSE STATUS\n")
        data, whole = _to_the_end(sock, ends)
    finally:
        sock.close()
    return {"text": commands.decoded(data), "whole": whole, "silent": silent, "error": ""}


def _greeted(at: str, pid: int, ends: float) -> "Tuple[socket.socket, int]":
    """Return a connection to a process that greets as RAS, and how many accepted one and said nothing."""
    silent = 0
    for _ in range(_TRIES):
        limit = min(ends, time.monotonic() + _PATIENCE)
        sock = _connected(at, pid, limit)
        try:
            greeting = _command(sock, "CLIENT PROTOCOL 2", limit)
        except socket.timeout:
            sock.close()
            silent += 1
            continue
        except OSError:
            sock.close()
            raise
        if greeting.upper().startswith("SERVER PROTOCOL"):
            return sock, silent
        sock.close()
        raise _RasError("what listens at {} is not NCCL's RAS".format(at))
    raise _RasError("{} connections to {} were accepted and not answered".format(silent, at))


def _command(sock: socket.socket, line: str, ends: float) -> str:
    sock.sendall(line.encode() + b"\n")
    reply = b""
    while not reply.endswith(b"\n") and len(reply) < _LINE:
        part = _received(sock, 1, ends)
        if not part:
            break
        reply += part
    return reply.decode("utf-8", "backslashreplace").strip()


def _to_the_end(sock: socket.socket, ends: float) -> "Tuple[bytes, bool]":
    """Return all that comes, and whether its end came, too."""
    parts: "List[bytes]" = []
    length = 0
    while length < _LONGEST:
        try:
            part = _received(sock, min(65536, _LONGEST - length), ends)
        except OSError:  # the process ended, or the time is over: what came until then is evidence
            return b"".join(parts), False
        if not part:
            return b"".join(parts), True
        parts.append(part)
        length += len(part)
    return b"".join(parts), False


def _received(sock: socket.socket, most: int, ends: float) -> bytes:
    left = ends - time.monotonic()
    if left <= 0:
        raise socket.timeout("no answer in its time")
    sock.settimeout(left)
    return sock.recv(most)


def _connected(at: str, pid: int, ends: float) -> socket.socket:
    host, _, port = at.rpartition(":")
    host = host.strip("[]")
    elsewhere = proc.link(pid, "ns/net")
    if elsewhere and elsewhere != own_namespace():
        own = ["127.0.0.1", "::1"] if host in ("localhost", "") else [host]
        return _first(own, port, ends, lambda family: _socket_in(pid, family))
    found = resolved([host or "localhost"], max(0.1, ends - time.monotonic()))[host or "localhost"]
    if not found.get("addresses"):
        raise _RasError("{}: {}".format(host, found.get("error", "its name does not resolve in time")))
    return _first(found["addresses"], port, ends, lambda family: socket.socket(family, socket.SOCK_STREAM))


def _first(
    addresses: "Iterable[str]", port: str, ends: float, opened: "Callable[[int], socket.socket]"
) -> socket.socket:
    """Return a connection to the first address that takes one."""
    error: Exception = _RasError("there is no address to connect to")
    for address in addresses:
        sock = opened(socket.AF_INET6 if ":" in address else socket.AF_INET)
        try:
            sock.settimeout(max(0.05, ends - time.monotonic()))
            sock.connect((address, int(port)))
        except OSError as one:
            sock.close()
            error = one
        else:
            return sock
    raise error


# Enters a network namespace, makes a socket there and hands it back: a socket stays in the namespace it was made in.
_IN_NAMESPACE = """
import array, ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.setns(os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2])):
    sys.exit(os.strerror(ctypes.get_errno()))
made = socket.socket(int(sys.argv[3]), socket.SOCK_STREAM)
back = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, int(sys.argv[4]))
back.sendmsg([b"s"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [made.fileno()]))])
"""


def _socket_in(pid: int, family: int) -> socket.socket:
    """Return a socket in the network namespace of a rank: a child enters it, this process never does."""
    if os.geteuid() != 0:
        raise _RasError("the ranks are in another network namespace: needs root")
    ours, theirs = socket.socketpair()
    try:
        argv = [sys.executable, "-E", "-B", "-S", "-c", _IN_NAMESPACE, proc.path(pid, "ns", "net"), str(_NEWNET)]
        said = commands.run([*argv, str(int(family)), str(theirs.fileno())], 5.0, pass_fds=(theirs.fileno(),))
        ours.settimeout(0.5)
        numbers: "array.array[int]" = array.array("i")
        if said.get("exit_status") == 0:
            _, extra, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(numbers.itemsize))
            for _, _, data in extra:
                numbers.frombytes(data[: numbers.itemsize])
        if not numbers:
            why = said.get("stderr", "").strip().rpartition("\n")[2] or said.get("reason", "")
            raise _RasError("the network namespace of the ranks cannot be entered: " + why)
        return socket.socket(family, socket.SOCK_STREAM, 0, numbers[0])
    finally:
        ours.close()
        theirs.close()
