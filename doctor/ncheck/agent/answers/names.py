"""Resolve host names by this node's own resolver, as any program does: in parallel, within a time limit."""

import errno
import queue
import select
import socket
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Sequence

    from ncheck.agent.sources import Arguments

AT_ONCE = 16
READS = (
    "getaddrinfo(3) of listed nodes' names, as /etc/nsswitch.conf says: the hosts file, DNS",
    "where a name has several addresses: a connection to port 22 of each, and the numbers of its lines in /etc/hosts",
)
_SLOW = 1.0  # seconds: a quicker lookup is not told
_PATIENCE = 2.5  # seconds for an address to answer: a lost SYN is sent again after one


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return what each of {"names": [name]} resolves to."""
    return {"names": resolved(arguments["names"], timeout)}


def resolved(names: "Sequence[str]", timeout: float) -> "Dict[str, Dict[str, Any]]":
    """Look names up, at most for so many seconds in all; what has not come by then is late."""
    waiting: "queue.Queue[str]" = queue.Queue()
    results: "Dict[str, Dict[str, Any]]" = {}
    for name in names:
        waiting.put(name)
    threads = [
        threading.Thread(target=_look_up, args=(waiting, results), daemon=True) for _ in range(min(AT_ONCE, len(names)))
    ]
    ends = time.monotonic() + timeout
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return {name: results.get(name, {"late": True, "seconds": timeout}) for name in names}


def _look_up(waiting: "queue.Queue[str]", results: "Dict[str, Dict[str, Any]]") -> None:
    while True:
        try:
            name = waiting.get_nowait()
        except queue.Empty:
            return
        begun = time.monotonic()
        found = _looked_up(name)
        seconds = time.monotonic() - begun
        if seconds >= _SLOW:
            found["seconds"] = round(seconds, 1)
        results[name] = dict(found)  # what follows takes longer, and what was found counts if there is no time for it
        silent = _silent(found.get("addresses", ()))
        if silent:
            results[name] = dict(found, silent=[{"ip": ip, "line": _line_of(name, ip)} for ip in silent])


def _looked_up(name: str) -> "Dict[str, Any]":
    try:
        found = socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return {"error": getattr(error, "strerror", None) or str(error)}
    addresses = []
    for _, _, _, _, where in found:
        ip = str(where[0]).partition("%")[0]  # fe80::1%eth0
        if ip not in addresses:
            addresses.append(ip)
    return {"addresses": addresses}


def _silent(addresses: "Iterable[str]") -> "List[str]":
    """Return the IPv4 addresses of a name that do not answer, where another one does."""
    several = [ip for ip in addresses if ":" not in ip and not ip.startswith("127.")]
    if len(several) < 2:
        return []
    waiting, silent = {}, []
    for ip in several:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.settimeout(0)
        waiting[connection.fileno()] = (ip, connection, connection.connect_ex((ip, 22)))
    poll, ends = select.poll(), time.monotonic() + _PATIENCE
    for number, (_, _, begun) in waiting.items():
        if begun == errno.EINPROGRESS:
            poll.register(number, select.POLLOUT)
    ended = {number: begun for number, (_, _, begun) in waiting.items() if begun != errno.EINPROGRESS}
    while len(ended) < len(waiting) and time.monotonic() < ends:
        for number, _ in poll.poll(max(0, int(1000 * (ends - time.monotonic())))):
            ended[number] = waiting[number][1].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            poll.unregister(number)
    for number, (ip, connection, _) in waiting.items():
        connection.close()
        if ended.get(number, errno.ETIMEDOUT) not in (0, errno.ECONNREFUSED, errno.ECONNRESET):
            silent.append(ip)
    return silent if len(silent) < len(several) else []


def _line_of(name: str, ip: str) -> int:
    """Return the number of the line of /etc/hosts that gives a name this address, 0 where none does."""
    try:
        with open("/etc/hosts", errors="replace") as file:
            for number, line in enumerate(file, 1):
                words = line.partition("#")[0].split()
                if words[:1] == [ip] and name in words[1:]:
                    return number
    except OSError:
        pass
    return 0
