"""Listens for the other nodes' agents until this one ends: on addresses of the node, and on the ports of the job.

Whoever connects has ten seconds to prove that it belongs to this run, and is closed otherwise. One thread serves all;
what a peer may send is bounded, and so is its time. A stream of the probe is handed over to the step that it is for.
"""

import errno
import pwd
import resource
import selectors
import socket
import threading
import time
from collections import Counter

from ncheck.agent import proc
from ncheck.agent.dial import reset_at_its_end
from ncheck.agent.lost_segments import resent
from ncheck.agent.streams import ARRIVED
from ncheck.agent.tcp_table import LISTENS, tcp_rows
from ncheck.agent.wire import BLOCK, COUNTS, LARGE, PART, PROOF, SMALL, SMALLS, Talk, proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Generator, List, Optional, Union

    from ncheck.agent.sources import Sources

    Script = Generator[Union[int, bytes], bytes, None]

TO_PROVE, IDLE, LONGEST = 10.0, 15.0, 90.0  # seconds for a peer to prove itself, to be silent, and in all
AT_MOST, EACH = 512, 4  # peers at once; one address may have this part of them
NODE = "node"  # under this key
_PAUSE = 0.2  # seconds without new peers where this system gives no more sockets

READS = (
    "listens on its own addresses, on ports that the kernel picks, for the run's other nodes, until the run ends",
    "listens on a port that the job needs there (--master-port, --need-port, its launcher's own)",
    "/proc/net/tcp, /proc/net/tcp6, /proc/*/fd, where such a port is taken: by whom",
)


def answer(sources: "Sources", arguments: "Dict[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return {"ports": {ip: port}, "failed": {ip: why}, "needed": [{"port", "assumed", "free": bool, "taken_by":
    "python3 (pid 4711) of ada"|"a program of ada"|"", "error": ""|why it was not tried}]}.

    Asked as {"node": its name, "token": hex, "addresses": [ip], "ports": [{"port", "assumed": bool}]}. It goes on
    listening until the agent ends, on the needed ports, too, where they are free. Its name is kept for later answers.
    """
    sources.kept[NODE] = arguments["node"]
    server = _Server(arguments["token"], arguments["node"])
    needed = [server.need(wanted) for wanted in arguments["ports"]]
    ports: "Dict[str, int]" = {}
    failed: "Dict[str, str]" = {}
    for address in arguments["addresses"]:
        try:
            ports[address] = server.listen(address, 0)
        except (OSError, ValueError) as error:
            failed[address] = str(error)
    threading.Thread(target=server.serve, daemon=True).start()
    return {"ports": ports, "failed": failed, "needed": needed}


class _Peer:
    def __init__(self, sock: socket.socket, address: str, script: "Script", now: float) -> None:
        self.talk, self.address = Talk(sock, script), address
        self.began, self.moved, self.known = now, now, False
        self.ticket: "Optional[bytes]" = None

    def late(self, now: float) -> bool:
        if not self.known:
            return now - self.began > TO_PROVE
        return now - self.moved > IDLE or now - self.began > LONGEST


class _Server:
    def __init__(self, token: str, node: str) -> None:
        self.expected, self.own_proof = proof(token, node, "client"), proof(token, node, "server")
        self.of_stream = proof(token, node, "stream")
        self.selector = selectors.DefaultSelector()
        self.listeners: "List[socket.socket]" = []
        self.peers: "Dict[socket.socket, _Peer]" = {}
        self.at_most = min(AT_MOST, max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))
        self.paused_until = 0.0

    def listen(self, address: str, port: int) -> int:
        """Listen at one address and return the port."""
        v6 = ":" in address
        sock = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_STREAM)
        try:
            # As torch's store and the launchers do: what only waits for its TIME_WAIT to end does not count as taken.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if v6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
            sock.bind((address, port))
            sock.listen(1024)
            sock.settimeout(0.0)
        except (OSError, OverflowError):
            sock.close()
            raise
        self.listeners.append(sock)
        taken: int = sock.getsockname()[1]
        return taken

    def need(self, wanted: "Dict[str, Any]") -> "Dict[str, Any]":
        """Take a port of the job's as the job would: on all addresses, of both families where there are two."""
        port, state = wanted["port"], {"free": False, "taken_by": "", "error": ""}
        try:
            self.everywhere(port)
            state["free"] = True
        except (OSError, OverflowError) as error:
            if getattr(error, "errno", None) == errno.EADDRINUSE:
                state["taken_by"] = owner_of(port)
            else:
                state["error"] = getattr(error, "strerror", None) or str(error)
        return dict(state, port=port, assumed=bool(wanted.get("assumed")))

    def everywhere(self, port: int) -> None:
        try:
            self.listen("::", port)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise
            self.listen("0.0.0.0", port)  # noqa: S104  no IPv6 here; all addresses is what the job would take

    def serve(self) -> None:
        """Serve until the process ends. Nothing that a peer does, or the system lacks, ends it."""
        for sock in self.listeners:
            self.selector.register(sock, selectors.EVENT_READ)
        while True:
            try:
                self.turn()
            except Exception:  # noqa: BLE001  a thread of its own: there is nobody to be told, and others to be served
                time.sleep(_PAUSE)

    def turn(self) -> None:
        began = time.monotonic()
        for key, _ in self.selector.select(1.0 if self.peers or self.paused_until else None):
            if key.data is None:
                self.accept(key.fileobj)  # type: ignore[arg-type]  # it is one of the listeners
            elif key.data.talk.sock in self.peers:
                self.handle(key.data)
        for peer in [peer for peer in self.peers.values() if peer.late(began)]:
            self.drop(peer)
        if self.paused_until and time.monotonic() > self.paused_until:
            self.accept_again()

    def accept(self, listener: socket.socket) -> None:
        """Accept a peer. Where this system gives no socket, all wait."""
        try:
            sock, place = listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            self.stop_accepting()
            return
        sock.settimeout(0.0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reset_at_its_end(sock)  # and leaves no TIME_WAIT on a port of the job's
        peer = _Peer(sock, place[0], self.script(sock), time.monotonic())
        self.peers[sock] = peer
        self.selector.register(sock, selectors.EVENT_READ, peer)
        self.make_room(peer)

    def make_room(self, newest: _Peer) -> None:
        """Drop a peer where there are too many: one of the address that has too many, or of the one with the most.

        Of that address it is the oldest without a proof, else the newest: no node can keep another one out.
        """
        held = Counter(peer.address for peer in self.peers.values())
        if held[newest.address] > self.at_most // EACH:
            crowded = newest.address
        elif len(self.peers) > self.at_most:
            crowded = max(held, key=lambda address: (held[address], address == newest.address))
        else:
            return
        crowd = [peer for peer in self.peers.values() if peer.address == crowded]
        self.drop(next((peer for peer in crowd if not peer.known), crowd[-1]))

    def script(self, sock: socket.socket) -> "Script":
        """Yield the messages to one peer; wire.Talk explains the form."""
        given = yield PROOF
        if given not in (self.expected, self.of_stream):
            return
        self.peers[sock].known = True
        if given == self.of_stream:
            self.peers[sock].ticket = yield PROOF
            yield self.own_proof
            return
        yield self.own_proof
        for _ in range(SMALLS):
            small = yield SMALL
            yield small
        for _ in range(LARGE // PART):
            yield PART
            yield b"+"
        yield BLOCK
        yield 1  # it has all of it
        yield COUNTS.pack(*resent(sock))
        yield 1  # nothing comes: who connected ends it, and so has the port in TIME_WAIT that is nobody's

    def handle(self, peer: _Peer) -> None:
        try:
            if peer.talk.go_on():
                peer.moved = time.monotonic()
        except (OSError, EOFError):
            self.drop(peer)
            return
        if peer.talk.ended and peer.ticket:
            ARRIVED.put(peer.ticket, self.let_go(peer))
        elif peer.talk.ended:
            self.drop(peer)
        else:
            events = selectors.EVENT_WRITE if peer.talk.sending else selectors.EVENT_READ
            self.selector.modify(peer.talk.sock, events, peer)

    def drop(self, peer: _Peer) -> None:
        """Close it. A peer with a wrong proof gets no answer first: it then knows that this is a stranger."""
        self.let_go(peer).close()

    def let_go(self, peer: _Peer) -> socket.socket:
        """Stop serving it, and return its socket."""
        sock: socket.socket = peer.talk.sock
        self.peers.pop(sock, None)
        self.selector.unregister(sock)
        return sock

    def stop_accepting(self) -> None:
        if not self.paused_until:
            for sock in self.listeners:
                self.selector.unregister(sock)
        self.paused_until = time.monotonic() + _PAUSE

    def accept_again(self) -> None:
        self.paused_until = 0.0
        for sock in self.listeners:
            self.selector.register(sock, selectors.EVENT_READ)


def owner_of(port: int, root: str = proc.ROOT) -> str:
    """Return who has a TCP port open: "python3 (pid 4711) of ada"; "a program of ada" for other users; or ""."""
    rows = (row for row in tcp_rows(root) if row.inode != "0" and int(row.local.rpartition(":")[2], 16) == port)
    for row in sorted(rows, key=lambda row: row.state != LISTENS)[:1]:
        return described(next(proc.holders(row.inode, root), None), row.user, root)
    return ""


def described(pid: "Optional[int]", user: int, root: str = proc.ROOT) -> str:
    """Return a process as "python3 (pid 4711) of ada"; pid is None where this user may not see it."""
    name = proc.text(pid, "comm", root=root).strip()[:64] if pid else ""
    program = "{} (pid {})".format(name or "a program", pid) if pid else "a program"
    return "{} of {}".format(program, _user_name(user))


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return "user {}".format(user)
