"""What names lead to by this node's own resolver, asked as any program asks it: several at once, and with an end."""

import queue
import socket
import threading
import time

AT_ONCE = 16
READS = ("getaddrinfo(3) of listed nodes' names, as /etc/nsswitch.conf says: the hosts file, DNS",)


def answer(sources, arguments, timeout):
    """Return what each of {"names": [name]} resolves to."""
    return {"names": resolved(arguments["names"], timeout)}


def resolved(names, timeout):
    """Look names up, at most for so many seconds in all; what has not come by then is late."""
    waiting, said = queue.Queue(), {}
    for name in names:
        waiting.put(name)
    threads = [
        threading.Thread(target=_look_up, args=(waiting, said), daemon=True) for _ in range(min(AT_ONCE, len(names)))
    ]
    ends = time.monotonic() + timeout
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return {name: said.get(name, {"late": True}) for name in names}


def _look_up(waiting, said):
    while True:
        try:
            name = waiting.get_nowait()
        except queue.Empty:
            return
        said[name] = _looked_up(name)


def _looked_up(name):
    try:
        found = socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return {"error": getattr(error, "strerror", None) or str(error)}
    addresses = []
    for _, _, _, _, where in found:
        ip = where[0].partition("%")[0]  # fe80::1%eth0
        if ip not in addresses:
            addresses.append(ip)
    return {"addresses": addresses}
