"""How fast two nodes move bytes over TCP with no library at all: both send to and receive from each other at once.

Each dials the other's listener (listen.py) and sends on the streams that it opened. The first of the pair
announces on one more stream what is moved next: one size after the other, until one lasts long enough or the time is
over. One move is timed from the signal to begin to the last byte, and the slower direction counts.
"""

import select
import socket
import struct
import time
from statistics import median

from ncheck.agent.dial import PATIENCE, hang_up, not_connected, reset_at_its_end, socket_from
from ncheck.agent.streams import ARRIVED
from ncheck.agent.traffic import READS as COUNTERS
from ncheck.agent.traffic import carried, counters
from ncheck.agent.wire import PROOF, proof
from ncheck.probe.agent.transfer import BrokenError, Transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

    from ncheck.agent.sources import Arguments

STREAMS = 4  # in each direction
FEW = 3  # repeats of one size where there is little time
PART = 0.25  # of the time that is left, for a size that is not the last
ENOUGH = 0.02  # seconds of one move: this is long enough for the speed of a pair, and nothing larger is moved
_OVER, _WARM, _COUNTED = range(3)
_MOVE = struct.Struct("!BQ")  # what is moved next: its kind, and bytes in each direction
_SECONDS = struct.Struct("!d")
_READY = b"r"
_DRIFT = 0.01  # seconds, and per second: how much two clocks may differ
_SHORTEST = 1e-6  # seconds: no clock is trusted below
_SMALL, _STRIDE = 65536, 64  # bytes up to which all take about the same; how much larger a size may be than one known

READS = ("TCP between the two nodes of a pair, where they listen for this run anyway", *COUNTERS)


def answer(sources: object, arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return the result of a step: see step.py."""
    began, before = time.monotonic(), counters()
    pair = _Pair(arguments, began + min(arguments["timeout"], timeout))
    failure = None
    try:
        pair.meet()
        pair.measure(arguments["seconds"])
        pair.require_time()
    except (BrokenError, OSError, EOFError) as error:
        failure = pair.failure(error)
    finally:
        pair.part()
    return {
        "rows": [_row(size, pair.times[size]) for size in sorted(pair.times) if len(pair.times[size]) >= pair.few],
        "carried": carried(before, counters(), arguments["planned"]),
        "version": "", "library": "", "used": [], "log": [], "failure": failure,
        "start": round(pair.began - began, 4) if pair.began else None, "left": [],
    }  # fmt: skip


def _row(size: int, times: "Sequence[float]") -> "Dict[str, object]":
    times = sorted(times)
    return {
        "size": size, "in_place": False, "seconds": median(times), "fastest": times[0], "slowest": times[-1],
        "wrong": None, "timing": {"warm_ups": 1, "repeats": len(times), "iterations": 1},
    }  # fmt: skip


class _Pair:
    """This node of a pair. `out` are the streams that it opened, `arrived` those of the other node."""

    def __init__(self, asked: "Arguments", ends: float) -> None:
        self.asked, self.ends, self.sizes = asked, ends, sorted(set(asked["sizes"]))
        self.repeats: int = asked["repeats"]
        self.few = min(FEW, self.repeats)
        self.node, self.rank = asked["node"], asked["group"].index(asked["node"])
        self.other = asked["group"][1 - self.rank]
        self.out: "List[socket.socket]" = []
        self.arrived: "List[socket.socket]" = []
        self.began: "Optional[float]" = None
        self.times: "Dict[int, List[float]]" = {}
        self.seconds = 0.0
        self.doing = "connecting to {}".format(self.other)
        self.theirs = [self.ticket(self.other, number) for number in range(STREAMS + self.rank)]

    def ticket(self, dialler: str, number: int) -> bytes:
        step = "{} {} {}".format(self.asked["round"], " ".join(self.asked["group"]), number)
        return proof(self.asked["token"], dialler, step)

    def left(self, most: float = float("inf")) -> float:
        """Return the seconds that are left. Raises BrokenError if there are none."""
        seconds = min(most, self.ends - time.monotonic())
        if seconds <= 0:
            raise BrokenError("its time was over", late=True)
        return seconds

    def failure(self, error: "Union[BrokenError, OSError, EOFError]") -> "Dict[str, object]":
        """Return an error as the failure of the step."""
        if isinstance(error, socket.timeout):
            error = BrokenError("no more data from {} before the time limit".format(self.other), late=True)
        elif isinstance(error, EOFError):
            error = BrokenError("{} closed the connection in the middle".format(self.other))
        elif isinstance(error, OSError):
            error = BrokenError("the connection was cut: {}".format(error.strerror or error))
        return {"step": self.doing, "words": str(error), "rank": self.rank, "code": None, "late": error.late}

    # Connecting and disconnecting

    def meet(self) -> None:
        """Open this node's streams, and wait for the other's."""
        for number in range(STREAMS + 1 - self.rank):
            self.dial(self.ticket(self.node, number))
        self.doing = "waiting for {} to connect".format(self.other)
        self.arrived = ARRIVED.take(self.theirs, self.ends, self.hung_up)
        if not self.arrived:
            self.left()
            raise BrokenError("{} gave up; its own result has the reason".format(self.other))
        for sock in self.out + self.arrived:
            sock.settimeout(None)
        self.control = (self.out, self.arrived)[self.rank][STREAMS]

    def dial(self, ticket: bytes) -> None:
        """Open one stream. Raises BrokenError with the cause."""
        began = time.monotonic()
        try:
            sock = socket_from(self.asked["source"])
            self.out.append(sock)
            reset_at_its_end(sock)
            sock.settimeout(self.left(PATIENCE))
            sock.connect((self.asked["address"], self.asked["port"]))
        except OSError as error:
            self.left()
            cause, words = not_connected(error, time.monotonic() - began)
            where = "{address} port {port} from {source}".format(**self.asked)
            raise BrokenError("{}: {}: {}".format(cause, where, words)) from error
        sock.settimeout(self.left())
        if self.greeted(sock, ticket) != proof(self.asked["token"], self.other, "server"):
            raise BrokenError("stranger: something else answers there than the agent of {}".format(self.other))

    def greeted(self, sock: "socket.socket", ticket: bytes) -> bytes:
        """Prove to the server that this is a stream of the run, and return its proof: b"" if it hangs up."""
        try:
            sock.sendall(proof(self.asked["token"], self.other, "stream") + ticket)
            return _received(sock, PROOF)
        except (EOFError, ConnectionError):
            return b""

    def hung_up(self) -> bool:
        """Return whether the other node has closed a stream: it sends nothing on these before."""
        poll = select.poll()
        for sock in self.out:
            poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))

    def part(self) -> None:
        """Close all streams, and refuse those still to come."""
        ARRIVED.refuse(self.theirs)
        for sock in self.out + self.arrived:
            hang_up(sock)

    # Measuring

    def measure(self, seconds: float) -> None:
        """Move the sizes in their order: the first node announces each, and the other one follows."""
        began = self.began = time.monotonic()
        if self.rank:
            kind, size = self.announced()
            while kind != _OVER:
                self.move(kind, size)
                kind, size = self.announced()
            self.control.sendall(_READY)
            return
        for kind, size in self.moves(began + seconds):
            self.announce(kind, size)
            self.move(kind, size)
        self.doing = "parting from {}".format(self.other)
        self.announce(_OVER, 0)
        _received(self.control, len(_READY))

    def require_time(self) -> None:
        """Raise BrokenError on both nodes if no size was small enough for the time."""
        if not self.times:
            self.doing = "moving {} bytes in each direction".format(self.sizes[0])
            raise BrokenError("there was no time for it", late=True)

    def moves(self, until: float) -> "Iterator[Tuple[int, int]]":
        """Yield what is moved next. The smallest size always is; a larger one where the last leaves time for it."""
        known = _SMALL
        for size in self.sizes:
            while size > _STRIDE * known and self.fits(_STRIDE, until):
                known *= _STRIDE
                yield _WARM, known
            if (self.times and self.seconds > ENOUGH) or not self.fits(max(1.0, size / known), until):
                return
            yield _WARM, size
            for _ in range(self.affordable(size, until)):
                yield _COUNTED, size
            known = max(known, size)

    def fits(self, factor: float, until: float) -> bool:
        """Return whether there is time for a few moves that take `factor` times as long as the last one."""
        return not self.seconds or self.seconds * factor * (self.few + 1) < until - time.monotonic()

    def affordable(self, size: int, until: float) -> int:
        """Return how often a size is moved, by the last move of it: fewer times where there is little time."""
        is_last = size == self.sizes[-1] or self.seconds > ENOUGH
        left = (until - time.monotonic()) * (1 if is_last else PART)
        return min(self.repeats, max(FEW, int(left / self.seconds)))

    def announce(self, kind: int, size: int) -> None:
        self.control.settimeout(self.left())
        self.control.sendall(_MOVE.pack(kind, size))

    def announced(self) -> "Tuple[int, int]":
        """Return what is moved next. Raises BrokenError if it is not part of this step."""
        self.doing = "waiting for the next size from {}".format(self.other)
        self.control.settimeout(self.left())
        kind, size = _MOVE.unpack(_received(self.control, _MOVE.size))
        if size not in self.sizes and (kind == _COUNTED or size > self.sizes[-1]):
            raise BrokenError("{} requested a transfer of {} bytes, which is not in this step".format(self.other, size))
        return kind, size

    def move(self, kind: int, size: int) -> None:
        """Move so many bytes in each direction, once. Both nodes count the seconds of the slower direction."""
        self.doing = "moving {} bytes in each direction".format(size)
        transfer = Transfer(self.out[:STREAMS], self.arrived[:STREAMS], size)
        began = time.monotonic()
        try:
            self.exchanged(_READY)
        except (OSError, EOFError):
            transfer.stop("")
            raise
        own = transfer.run(self.ends)
        (others,) = _SECONDS.unpack(self.exchanged(_SECONDS.pack(own)))
        if not can_be(others, time.monotonic() - began):
            raise BrokenError("{} reported an impossible time".format(self.other))
        self.seconds = max(own, others, _SHORTEST)
        if kind == _COUNTED:
            self.times.setdefault(size, []).append(self.seconds)

    def exchanged(self, data: bytes) -> bytes:
        """Send some bytes, and return as many of the other node."""
        self.control.settimeout(self.left())
        self.control.sendall(data)
        return _received(self.control, len(data))


def can_be(seconds: float, most: float) -> bool:
    """Return whether the other node's time of one move is possible: no longer than this node has waited."""
    return 0 <= seconds <= most * (1 + _DRIFT) + _DRIFT


def _received(sock: "socket.socket", count: int) -> bytes:
    """Return so many bytes. Raises EOFError if the other side ends first."""
    received = b""
    while len(received) < count:
        data = sock.recv(count - len(received))
        if not data:
            raise EOFError
        received += data
    return received
