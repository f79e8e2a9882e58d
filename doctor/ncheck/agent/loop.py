"""The protocol with the head, over any pair of byte streams. This module knows nothing of the answers.

The head sends {"do": "start", ...}, {"do": "ping"}, {"do": "collect", "sources": [...]}, {"do": "module", "name",
"text"} and {"do": "bye"}; it gets {"is": "started", ...}, {"is": "pong", "time"}, {"is": "wanted", "module"} and
{"is": "replies", "replies": {key: reply}}: each source's reply once, with those that came at about the same time. A
source is its kind ("command", "file", "tree", "answer"), its key, and the fields of the head's record of that name.
"""

import queue
import threading
import time

from ncheck.agent.frames import MOST, FrameError, framed, packed, read_message, text_of, weight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

    Message = Dict[str, Any]  # as it comes from the head
    Source = Dict[str, Any]
    Read = Callable[[int], bytes]
    Write = Callable[[bytes], object]
    Fetch = Callable[[str], Optional[str]]
    Respond = Callable[[Source, Fetch], object]
    Start = Callable[[Message], Dict[str, Any]]

GATHERED = (
    2.0  # seconds that a reply may wait for others, to be sent in one frame with them; the last one does not wait
)
TOGETHER = 1024 * 1024  # bytes of replies per frame, about
MOST_REPLIES = MOST // 2  # of the replies to one request, by weight: the head ends a session that sends more than MOST
WORKERS = 8  # sources read at once: those that wait for a driver or a disk delay no other; few enough for a busy node


def serve(incoming: "Read", outgoing: "Write", respond: "Respond", start: "Optional[Start]" = None) -> None:
    """Answer the head until it sends bye or its bytes end; then return at once, even while sources are being read.

    `incoming(n)` returns n bytes, fewer at the end; `outgoing(data)` writes all of it; `respond(source, fetch)` returns
    one source's reply as a dict of the fields of Reply, and may raise nothing. `fetch(name)` brings it a module's text
    from the head, or None. `start(message)` is called once, first, and returns what is to be added to "started".
    """
    _Conversation(outgoing, respond, start).listen(incoming)


class _Conversation:
    def __init__(self, outgoing: "Write", respond: "Respond", start: "Optional[Start]") -> None:
        self.outgoing = outgoing
        self.respond = respond
        self.start = start
        self.sending = threading.Lock()
        self.posted: "List[bytes]" = []
        self.posting = threading.Event()
        self.fetching = threading.Lock()
        self.fetched: "queue.Queue[Tuple[object, Optional[str]]]" = queue.Queue()
        self.work: "queue.Queue[Source]" = queue.Queue()
        self.workers = 0
        self.weight = 0
        self.left = 0  # sources that are not answered yet
        self.begun = threading.Event()
        self.begun.set()

    def listen(self, incoming: "Read") -> None:
        try:
            message = read_message(incoming)
            while isinstance(message, dict) and message.get("do") != "bye":
                self.handle(message)
                message = read_message(incoming)
        except (FrameError, OSError):
            return  # the connection is gone

    def handle(self, message: "Message") -> None:
        if message.get("do") == "ping":
            self.send({"is": "pong", "time": time.time()})
        elif message.get("do") == "start":
            self.begun.clear()
            threading.Thread(target=self.begin, args=(message,), daemon=True).start()
        elif message.get("do") == "collect":
            self.collect(message.get("sources") or [])
        elif message.get("do") == "module":
            self.fetched.put((message.get("name"), message.get("text")))

    def begin(self, message: "Message") -> None:
        """Run beside `listen`: entering the job's environment may be slow, and the head may go away meanwhile.

        Sources wait for it, and are not read where it fails.
        """
        more = self.start(message) if self.start else {}
        try:
            self.send(dict(more, **{"is": "started"}))
        except OSError:
            return
        if "not_entered" not in more:
            self.begun.set()

    def collect(self, sources: "Sequence[Source]") -> None:
        with self.sending:
            if not self.left:
                self.weight = 0  # the head has taken the answers to what it asked before
            self.left += len(sources)
        for source in sources:
            self.work.put(source)
        if sources and not self.workers:
            threading.Thread(target=self.send_posted, daemon=True).start()
        while self.workers < min(WORKERS, len(sources)):
            self.workers += 1
            threading.Thread(target=self.read_sources, daemon=True).start()

    def read_sources(self) -> None:
        while True:
            source = self.work.get()
            self.begun.wait()
            try:
                reply = self.respond(source, self.fetch)
                self.post(source, reply)
            except OSError:
                return  # the head is gone: the loop that reads from it ends everything

    def post(self, source: "Source", reply: object) -> None:
        """Keep a reply for the next frame; the last reply sends them all."""
        key = str(source.get("key"))
        try:
            text = text_of({key: reply})
        except (FrameError, ValueError, TypeError) as error:
            text = not_sent(key, error)
        with self.sending:
            if self.weight + weight(text) > MOST_REPLIES:
                text = not_sent(key, "with it, this node's answers would be too large")
            self.weight += weight(text)
            self.posted.append(text[1:-1])
            self.left -= 1
            last = not self.left
        if last:
            self.send_frame(b"")
        else:
            self.posting.set()

    def fetch(self, name: str, timeout: float = 10.0) -> "Optional[str]":
        with self.fetching:
            self.send({"is": "wanted", "module": name})
            ends = time.monotonic() + timeout
            try:
                came, text = self.fetched.get(timeout=timeout)
                while came != name:  # an earlier module that came too late
                    came, text = self.fetched.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                return None
            return text

    def send_posted(self) -> None:
        """Send the replies posted a moment ago: together they cost the head one frame, not twenty."""
        while self.posting.wait():
            self.posting.clear()
            time.sleep(GATHERED)
            try:
                self.send_frame(b"")
            except OSError:
                return

    def send(self, message: object) -> None:
        self.send_frame(packed(message))

    def send_frame(self, frame: bytes) -> None:
        """Send a frame after all posted replies."""
        with self.sending:
            data = b"".join(map(framed, merged(self.posted))) + frame
            self.posted = []
            if data:
                self.outgoing(data)


def not_sent(key: str, why: object) -> bytes:
    """Return the reply in place of one that cannot be sent, as JSON."""
    return text_of({key: {"status": "failed", "reason": "the answer cannot be sent: {}".format(why)}})


def merged(posted: "List[bytes]") -> "Iterator[bytes]":
    """Yield messages that hold replies, each the text `"key":{...}`; few enough in one for any frame to hold."""
    while posted:
        size = count = 0
        while count < len(posted) and (not count or size + len(posted[count]) <= TOGETHER):
            size += len(posted[count])
            count += 1
        yield b'{"is":"replies","replies":{' + b",".join(posted[:count]) + b"}}"
        posted = posted[count:]
