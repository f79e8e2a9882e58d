"""The conversation with the head, over any pair of byte streams. What is answered is not known here.

The head sends {"do": "start", ...}, {"do": "ping", "id"}, {"do": "collect", "id", "sources": [...]}, {"do": "module",
"name", "text"} and {"do": "bye"}; it gets {"is": "started", ...}, {"is": "pong", "id", "time"}, {"is": "wanted",
"module"} and {"is": "replies", "replies": {key: reply}}: each source's reply once, with those that came at about the
same time. A source is its kind ("command", "file", "tree", "answer"), its key, and the fields of the head's record of
that name.
"""

import queue
import threading
import time

from ncheck.agent.frames import FrameError, framed, packed, read_message, text_of

GATHERED = 2.0  # seconds that a reply may wait for others, to travel in one frame with them; the last waits for none
TOGETHER = 1024 * 1024  # bytes of replies from which on they go in another frame
WORKERS = 4  # sources that are read at once: enough that one that hangs holds up none, few enough for a busy node


def serve(incoming, outgoing, respond, start=None):
    """Answer the head until it says bye or its bytes end; then return at once, whatever is still being read.

    `incoming(n)` returns n bytes, fewer at the end; `outgoing(data)` writes all of it; `respond(source, fetch)` returns
    one source's reply as a dict of the fields of Reply, and may raise nothing. `fetch(name)` brings it a module's text
    from the head, or None. `start(message)` is called once, first, and returns what is to be added to "started".
    """
    _Conversation(outgoing, respond, start).listen(incoming)


class _Conversation:
    def __init__(self, outgoing, respond, start):
        self.outgoing = outgoing
        self.respond = respond
        self.start = start
        self.sending = threading.Lock()
        self.posted = []
        self.posting = threading.Event()
        self.fetching = threading.Lock()
        self.fetched = queue.Queue()
        self.work = queue.Queue()
        self.workers = 0
        self.left = {}
        self.begun = threading.Event()
        self.begun.set()

    def listen(self, incoming):
        try:
            message = read_message(incoming)
            while isinstance(message, dict) and message.get("do") != "bye":
                self.heed(message)
                message = read_message(incoming)
        except (FrameError, OSError):
            return  # the link was cut: nobody is there to be told

    def heed(self, message):
        if message.get("do") == "ping":
            self.send({"is": "pong", "id": message.get("id"), "time": time.time()})
        elif message.get("do") == "start":
            self.begun.clear()
            threading.Thread(target=self.begin, args=(message,), daemon=True).start()
        elif message.get("do") == "collect":
            self.collect(message.get("id"), message.get("sources") or [])
        elif message.get("do") == "module":
            self.fetched.put((message.get("name"), message.get("text")))

    def begin(self, message):
        """Done beside the listening, for entering the job's environment may be slow and the head may go meanwhile.

        What is to be collected waits for it, and is not read where it fails.
        """
        more = self.start(message) if self.start else {}
        try:
            self.send(dict(more, **{"is": "started"}))
        except OSError:
            return
        if "not_entered" not in more:
            self.begun.set()

    def collect(self, number, sources):
        self.left[number] = len(sources)
        for source in sources:
            self.work.put((number, source))
        if sources and not self.workers:
            threading.Thread(target=self.post_on, daemon=True).start()
        while self.workers < min(WORKERS, len(sources)):
            self.workers += 1
            threading.Thread(target=self.toil, daemon=True).start()

    def toil(self):
        while True:
            number, source = self.work.get()
            self.begun.wait()
            try:
                reply = self.respond(source, self.fetch)
                self.post(number, source, reply)
            except OSError:
                return  # the head is gone: the loop that reads from it ends everything

    def post(self, number, source, reply):
        """Keep a reply for the next frame; the last that is to come sends them all."""
        key = str(source.get("key"))
        try:
            text = text_of({key: reply})
        except (FrameError, ValueError, TypeError) as error:
            text = text_of({key: {"status": "failed", "reason": "the answer cannot be sent: {}".format(error)}})
        with self.sending:
            self.posted.append(text[1:-1])
            self.left[number] -= 1
            last = self.left[number] == 0
        if last:
            self.send_frame(b"")
        else:
            self.posting.set()

    def fetch(self, name, timeout=10.0):
        with self.fetching:
            self.send({"is": "wanted", "module": name})
            ends = time.monotonic() + timeout
            try:
                came, text = self.fetched.get(timeout=timeout)
                while came != name:  # one that was waited for in vain, and came late
                    came, text = self.fetched.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                return None
            return text

    def post_on(self):
        """Send what was posted a moment ago: replies that come together cost the head one frame, not twenty."""
        while self.posting.wait():
            self.posting.clear()
            time.sleep(GATHERED)
            try:
                self.send_frame(b"")
            except OSError:
                return

    def send(self, message):
        self.send_frame(packed(message))

    def send_frame(self, frame):
        """Send it behind all that was posted."""
        with self.sending:
            data = b"".join(map(framed, gathered(self.posted))) + frame
            self.posted = []
            if data:
                self.outgoing(data)


def gathered(posted):
    """Yield messages that hold replies, each the text `"key":{...}`; few enough in one for any frame to hold."""
    while posted:
        size = count = 0
        while count < len(posted) and (not count or size + len(posted[count]) <= TOGETHER):
            size += len(posted[count])
            count += 1
        yield b'{"is":"replies","replies":{' + b",".join(posted[:count]) + b"}}"
        posted = posted[count:]
