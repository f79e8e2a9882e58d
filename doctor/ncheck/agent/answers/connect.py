"""Connects to the other nodes' agents, from each of this node's own addresses, and reports which links carry data.

One thread; few links are tried at once, in the order that was given: the head rotates it, so that all nodes dial at
once and none is dialled by all. A link that waits in silence gives its place to the next one.

Two things are measured besides, and what looks bad is measured once more when all links are done and this node sends
nothing else: how many packets were lost on a link, and how many of several connections that begin at once are late.
"""

import errno
import os
import resource
import select
import selectors
import socket
import time
from collections import deque

from ncheck.agent.answers.listen import NODE
from ncheck.agent.dial import PATIENCE, hang_up, not_connected, socket_from
from ncheck.agent.lost_segments import counted, resent, unanswered
from ncheck.agent.wire import BLOCK, COUNTS, LARGE, PART, PROOF, SMALL, SMALLS, Talk, proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

    from ncheck.agent.sources import Arguments, Sources
    from ncheck.agent.wire import Script

    Row = List[Any]  # [node, source, address, port, subnet, is the port the job's: bool]

AT_ONCE, AT_MOST = 8, 256  # links that are busy, and all that are open
# Seconds of silence after which a link no longer counts as busy: a kernel answers a SYN at once, a node that works a
# little later.
UNANSWERED, QUIET = 0.3, 1.0
LONGEST = 20.0  # seconds for one link, however much it moves: who answers a byte at a time would hold up the run
MOST_BROKEN = 4096  # links that are told one by one; the nodes of those beyond do not count as tried
AGAIN = 10.0  # seconds in which links are measured again
LOSSY, TIMES = 8, 4  # links of one subnet that are measured again, and how often until packets are lost
BURST, BURSTS = 10, 3  # connections that begin at once to one address, and nodes to which they do
SOON = 0.9  # seconds for them: a kernel that gets no answer sends its SYN again after one second
AGAIN_SYN = 2.4  # seconds more, in which it sends it again twice
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PHASES = {  # what silence means, by what was waited for
    "connect": ("filtered", "no answer within {:.0f} s"),
    "hello": ("cut", "connected, but no answer within {:.0f} s"),
    "small": ("cut", "connected, but small messages got no answer for {:.0f} s"),
    "there": ("large-lost", "small messages pass; 256 KiB that were sent stopped arriving for {:.0f} s"),
    "back": ("large-lost-back", "small messages pass; 256 KiB that were sent back stopped arriving for {:.0f} s"),
}

_SILENT = frozenset(cause for cause, _ in _PHASES.values())

READS = (
    "connects to where the others listen, from each of its own addresses: small messages, then 256 KiB there and back",
    "connects to the job's ports on the nodes that need them: small messages alone",
    "opens ten connections at once to each of three other nodes, and closes them",
)


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return {"reaches": [{"subnet", "source", "tried": int, "reached": int}], "broken": [{"source", "target": node,
    "address", "subnet", "cause": a LinkCause, "detail": words, "port": int (0: the mesh's own)}], "tried": [nodes,
    without those of which not every broken one is listed], "lossy": [{"source", "target", "address", "subnet", "there":
    [segments lost, sent], "back": the same of the other side, "alone": bool (no other link was tried meanwhile)}] of
    the links that lost some, "counted": bool (this kernel counts them), "late": [{"source", "target", "address",
    "subnet", "begun": connections, "late": of these, "lost": of the late ones, those that never got an answer}]}.

    Asked as {"token", "timeout": seconds, "sources": {subnet: [its own ips]}, "targets": [[node, ip, port, subnet, is
    the port the job's: bool, source ip (without it: all sources of the subnet)]]}; or, where all nodes are asked the
    same, with "rows": the targets of all, "of": {node: [its sources, a place in rows, [steps from there to the first of
    some targets, how many these are, ...]]}.
    """
    arguments = part_of(sources.kept.get(NODE, ""), arguments)
    links, ends = [_Link(row) for row in rows(arguments)], time.monotonic() + min(arguments["timeout"], timeout)
    _Tries(links, arguments["token"], ends).run()
    _second_chance(links, arguments["token"], min(ends, time.monotonic() + AGAIN))
    whole = [link for link in links if not link.cause and not link.job]
    _once_more(whole, arguments["token"], min(ends, time.monotonic() + AGAIN))
    lossy = _lossy(whole, arguments["token"], min(ends, time.monotonic() + AGAIN))
    trying = [link for link in links if link.cause in ("", "filtered") and not link.job]
    late = _late_bursts(trying, min(ends, time.monotonic() + AGAIN))
    broken = list(_listed_once(link for link in links if link.cause))
    unlisted = {link.node for link in broken[MOST_BROKEN:]}
    return {
        "reaches": _reaches(links),
        "broken": [link.described() for link in broken[:MOST_BROKEN]],
        "tried": sorted({link.node for link in links if link.cause != "untried"} - unlisted),
        "lossy": [link.losses(alone=False) for link in whole if link.lost()][:MOST_BROKEN]
        + [link.losses(alone=True) for link in lossy],
        "counted": counted(),
        "late": late,
    }


def part_of(node: str, arguments: "Arguments") -> "Dict[str, Any]":
    """Return what is asked of one node, of a question that all nodes are asked alike."""
    if "of" not in arguments:
        return dict(arguments)
    (sources, place, runs), every = arguments["of"][node], arguments["rows"]
    targets = [
        every[(place + runs[at] + number) % len(every)]
        for at in range(0, len(runs), 2)
        for number in range(runs[at + 1])
    ]
    return dict(arguments, sources=sources, targets=targets)


def rows(arguments: "Arguments") -> "Iterator[Row]":
    """Yield [node, source, address, port, subnet, job] of each link: who names no source has all of the subnet."""
    for node, address, port, subnet, job, *source in arguments["targets"]:
        for own in source or arguments["sources"][subnet]:
            yield [node, own, address, port, subnet, job]


class StrangerError(Exception):
    """Something answers there that is not the agent of that node."""


class _Link:
    """One direction, from one of our addresses to one of another node's. `cause` is "" once it carried all."""

    def __init__(self, row: "Row") -> None:
        self.row = row
        self.node, self.source, self.address, self.port, self.subnet, self.job = row
        self.cause, self.detail = "untried", "no time was left to try it"
        self.phase, self.began, self.moved, self.until = "connect", 0.0, 0.0, 0.0
        self.sock: "Optional[socket.socket]" = None
        self.talk: "Optional[Talk]" = None
        self.there, self.back, self.unanswered = (0, 0), (0, 0), 0  # segments lost and sent each way; SYN sent again

    def lost(self) -> bool:
        """Return whether packets were lost, either way."""
        return self.there[0] + self.back[0] > 0

    def script(self, token: str) -> "Script":
        """Yield the messages on this link; wire.Talk explains the form."""
        self.phase = "hello"
        yield proof(token, self.node, "client")
        if (yield PROOF) != proof(token, self.node, "server"):
            raise StrangerError
        self.phase = "small"
        for number in range(SMALLS):
            yield bytes([number]) * SMALL
            if (yield SMALL) != bytes([number]) * SMALL:
                raise StrangerError
        if not self.job:
            yield from self.large()

    def large(self) -> "Script":
        self.phase = "there"
        yield BLOCK
        for _ in range(LARGE // PART):
            yield 1
        self.phase = "back"
        for _ in range(LARGE // PART):
            yield PART
        yield b"."
        self.back = COUNTS.unpack((yield COUNTS.size))

    def busy(self, now: float) -> float:
        """Return for how many seconds more it counts as busy; 0 and less where it does not."""
        return min(self.moved + (UNANSWERED if self.phase == "connect" else QUIET), self.began + PATIENCE) - now

    def ends(self) -> "Dict[str, str]":
        return {"source": self.source, "target": self.node, "address": self.address, "subnet": self.subnet}

    def losses(self, *, alone: bool) -> "Dict[str, object]":
        return dict(self.ends(), there=self.there, back=self.back, alone=alone)

    def described(self) -> "Dict[str, object]":
        return dict(self.ends(), cause=self.cause, detail=self.detail, port=self.port if self.job else 0)


class _Tries:
    def __init__(self, links: "Iterable[_Link]", token: str, ends: float) -> None:
        self.waiting, self.token, self.ends = deque(links), token, ends
        self.selector = selectors.DefaultSelector()
        self.open: "Set[_Link]" = set()
        self.spent = 0.0  # seconds; those in which this process was stopped are not among them
        self.at_most = min(AT_MOST, max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))

    def run(self) -> None:
        """Try all links, until none is left or the time is over."""
        while (self.waiting or self.open) and time.monotonic() < self.ends:
            self.begin_some()
            before = time.monotonic()  # what came while this process was stopped is read before anybody is called late
            for key, _ in self.selector.select(self.nap(before)):
                self.handle(*key.data)
            self.spent += min(time.monotonic() - before, PATIENCE)
            for link in [link for link in self.open if before - link.moved > PATIENCE or self.spent > link.until]:
                self.close(link, *_silence(link, silent=before - link.moved > PATIENCE))
        for link in list(self.open):
            self.close(link, "untried", "the time limit came before the result")
        self.selector.close()

    def nap(self, now: float) -> float:
        """Return how long to wait for a socket: until a link is late, or gives its place to the next one."""
        if not self.open:
            return 0.0
        due = min(link.moved for link in self.open) + PATIENCE - now
        if self.waiting:
            due = min([due, *(left for left in (link.busy(now) for link in self.open) if left > 0)])
        return max(0.001, min(due, self.ends - now))

    def begin_some(self) -> None:
        now = time.monotonic()
        busy = sum(link.busy(now) > 0 for link in self.open)
        while self.waiting and busy < AT_ONCE and len(self.open) < self.at_most:
            link = self.waiting.popleft()
            if not self.begin(link):
                return
            busy += link in self.open

    def begin(self, link: "_Link") -> bool:
        """Start to connect. Return whether there was room for it; where there was none, it waits for its turn."""
        link.began = link.moved = time.monotonic()
        link.until = self.spent + LONGEST
        try:
            sock = link.sock = socket_from(link.source)
            sock.setblocking(False)  # noqa: FBT003
            sock.connect((link.address, link.port))
        except BlockingIOError:
            pass
        except OSError as error:
            return self.not_begun(link, error)
        self.open.add(link)
        self.selector.register(sock, selectors.EVENT_WRITE, (link, sock))
        return True

    def not_begun(self, link: "_Link", error: OSError) -> bool:
        if error.errno in _NO_ROOM and self.open:
            if link.sock:
                link.sock.close()
            self.waiting.appendleft(link)
            return False
        if error.errno in _NO_ROOM:
            self.close(link, "untried", "this node has no socket for it: {}".format(error.strerror))
        elif error.errno == errno.EADDRNOTAVAIL and link.sock:  # the address is its own: it was bound
            self.close(link, "untried", "this node has no free port for it: {}".format(error.strerror))
        else:
            self.close(link, *not_connected(error, 0.0))
        return True

    def handle(self, link: "_Link", sock: "socket.socket") -> None:
        talk = link.talk or self.connected(link, sock)
        if talk is None:
            return
        try:
            if talk.go_on():
                link.moved = time.monotonic()
        except StrangerError:
            self.close(link, "stranger", "something other than the agent of {} answers there".format(link.node))
        except (EOFError, OSError) as error:
            self.close(link, *_ended(link.phase, error))
        else:
            self.go_on(link, talk)

    def connected(self, link: "_Link", sock: "socket.socket") -> "Optional[Talk]":
        """Start to talk, or close the link with the reason."""
        number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            error = OSError(number, os.strerror(number))
            self.close(link, *not_connected(error, time.monotonic() - link.began))
            return None
        link.moved = time.monotonic()
        link.unanswered = unanswered(sock)
        link.talk = Talk(sock, link.script(self.token))
        return link.talk

    def go_on(self, link: "_Link", talk: "Talk") -> None:
        if talk.ended:
            self.close(link, "")
        else:
            events = selectors.EVENT_WRITE if talk.sending else selectors.EVENT_READ
            self.selector.modify(talk.sock, events, (link, talk.sock))

    def close(self, link: "_Link", cause: str, detail: str = "") -> None:
        link.cause, link.detail = cause, detail
        if link.talk:
            link.there = resent(link.talk.sock, link.unanswered)
        if link.sock:
            if link in self.open:
                self.selector.unregister(link.sock)
            hang_up(link.sock)
        self.open.discard(link)
        link.sock = link.talk = None


def _silence(link: "_Link", *, silent: bool) -> "Tuple[str, str]":
    """Return the cause and the detail of a link that is silent, or that takes too long."""
    if link.phase == "hello" and link.talk and link.talk.received:
        return "stranger", "something other than the agent of {} answers there".format(link.node)
    if not silent:
        return "cut", "connected, but 512 KiB took longer than {:.0f} s".format(LONGEST)
    cause, words = _PHASES[link.phase]
    return cause, words.format(PATIENCE)


def _ended(phase: str, error: "Union[EOFError, OSError]") -> "Tuple[str, str]":
    if phase == "hello" and isinstance(error, (EOFError, ConnectionResetError)):
        return "stranger", "what answers there closed the connection, which the agent does not do"
    how = "closed in the middle" if isinstance(error, EOFError) else "cut: {}".format(error.strerror)
    return "cut", "connected, then {}".format(how)


def _second_chance(links: "Sequence[_Link]", token: str, ends: float) -> None:
    """Try again what got no answer in a subnet in which packets are lost: a link may work the second time."""
    lossy = {link.subnet for link in links if link.lost()}
    silent = [link for link in links if link.cause in _SILENT and link.subnet in lossy and not link.job][:LOSSY]
    tries = [(link, _Link(link.row)) for link in silent]
    _Tries([second for _, second in tries], token, ends).run()
    for link, second in tries:
        if not second.cause:
            link.cause, link.detail, link.there, link.back = "", "", second.there, second.back


def _once_more(links: "Sequence[_Link]", token: str, ends: float) -> None:
    """Try links of a subnet with few of them once more, or several times: in 256 KiB some loss does not show."""
    for subnet in sorted({link.subnet for link in links}):
        few = [link for link in links if link.subnet == subnet]
        for link in few * ((LOSSY - 1) // len(few)):
            again = _Link(link.row)
            if not link.lost():
                _Tries([again], token, ends).run()
            if again.lost():
                link.there, link.back = again.there, again.back


def _lossy(links: "Sequence[_Link]", token: str, ends: float) -> "List[_Link]":
    """Return links that lose packets while nothing else is sent, as they were then.

    In a subnet where some link lost packets all are tried again, up to a number: which node they share shows then.
    """
    found: "List[_Link]" = []
    for subnet in sorted({link.subnet for link in links if link.lost()}):
        waiting = sorted((link for link in links if link.subnet == subnet), key=lambda link: not link.lost())[:LOSSY]
        for _ in range(TIMES):
            again = [_Link(link.row) for link in waiting]
            for link in again:
                _Tries([link], token, ends).run()
            found += [link for link in again if link.lost()]
            waiting = [link for link in again if not link.lost() and link.cause != "untried"]
    return found


class _Burst:
    """Connections that begin at once on the way of one link. `opened`: how many did soon; None: none could begin."""

    def __init__(self, link: "_Link") -> None:
        self.link = link
        self.opened: "Optional[int]" = 0
        self.silent: "Dict[int, socket.socket]" = {}
        self.answered: "List[socket.socket]" = []
        try:
            for _ in range(BURST):
                sock = socket_from(link.source)
                self.silent[sock.fileno()] = sock
                sock.setblocking(False)  # noqa: FBT003
                sock.connect_ex((link.address, link.port))
        except OSError:  # this node has no sockets for them: nothing is known
            self.close()
            self.opened = None

    def late(self) -> int:
        return 0 if self.opened is None else BURST - self.opened

    def hang_up(self) -> None:
        """Close those that got an answer: what allows only so many at once then lets the others in."""
        while self.answered:
            hang_up(self.answered.pop())

    def close(self) -> None:
        self.answered += self.silent.values()
        self.silent = {}
        self.hang_up()


def _late_bursts(links: "Sequence[_Link]", ends: float) -> "List[Dict[str, object]]":
    """Return the bursts of which connections are late, twice; of links that get no answer, those of which some open."""
    nodes = list(dict.fromkeys(link.node for link in links))[:BURSTS]
    firsts: "Dict[Tuple[str, str], _Link]" = {}
    for link in sorted(links, key=lambda link: bool(link.cause)):
        if link.node in nodes:
            firsts.setdefault((link.node, link.subnet), link)
    suspects = [link for link in firsts.values() if not link.cause and _tried([link], ends, hold=False)]
    silent = _tried([link for link in firsts.values() if link.cause], ends, hold=False)
    suspects += [burst.link for burst in silent if burst.opened]
    bursts = [burst for link in suspects for burst in _tried([link], ends, hold=True)]
    results = [dict(burst.link.ends(), begun=BURST, late=burst.late(), lost=0) for burst in bursts]
    if ends - time.monotonic() > AGAIN_SYN:
        _wait(bursts, AGAIN_SYN)
        for one, burst in zip(results, bursts):  # noqa: B905  Python 3.6
            one["lost"] = len(burst.silent)
    for burst in bursts:
        burst.close()
    return results


def _tried(links: "Iterable[_Link]", ends: float, *, hold: bool) -> "List[_Burst]":
    """Begin a burst on each of these links; return those of which some are late. `hold`: these go on waiting."""
    bursts = [_Burst(link) for link in links] if time.monotonic() < ends else []
    for burst, count in _wait(bursts, SOON):
        burst.opened = (burst.opened or 0) + count
    for burst in bursts:
        if hold:
            burst.hang_up()
        else:
            burst.close()
    return [burst for burst in bursts if burst.late()]


def _wait(bursts: "Iterable[_Burst]", seconds: float) -> "List[Tuple[_Burst, int]]":
    """Wait for the answers to connections; return (burst, how many opened) of those with some."""
    poll, until = select.poll(), time.monotonic() + seconds
    opened: "Dict[_Burst, int]" = {}
    waiting = {number: burst for burst in bursts for number in burst.silent}
    for number in waiting:
        poll.register(number, select.POLLOUT)
    while waiting:
        left = until - time.monotonic()
        ready = [number for number, _ in poll.poll(max(0.0, left) * 1000)]
        for number in ready:
            poll.unregister(number)
            burst = waiting.pop(number)
            sock = burst.silent.pop(number)
            burst.answered.append(sock)
            if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                opened[burst] = opened.get(burst, 0) + 1
        if left <= 0 and not ready:
            break
    return list(opened.items())


def _listed_once(links: "Iterable[_Link]") -> "Iterator[_Link]":
    """Yield the broken links; what there was no time for once a node and subnet."""
    seen: "Set[Tuple[str, str, bool]]" = set()
    for link in links:
        key = (link.node, link.subnet, link.job)
        if link.cause != "untried" or key not in seen:
            yield link
        if link.cause == "untried":
            seen.add(key)


def _reaches(links: "Iterable[_Link]") -> "List[Dict[str, object]]":
    """Fold the links by subnet and own address; those to the job's ports are told only where they are broken."""
    folded: "Dict[Tuple[str, str], List[_Link]]" = {}
    for link in links:
        if not link.job and link.cause != "untried":
            folded.setdefault((link.subnet, link.source), []).append(link)
    return [
        {"subnet": subnet, "source": source, "tried": len(tried), "reached": sum(not link.cause for link in tried)}
        for (subnet, source), tried in folded.items()
    ]
