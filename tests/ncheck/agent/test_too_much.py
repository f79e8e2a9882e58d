"""What a node may send in one session: its agent keeps to less than the head takes, and says what it left out."""

from __future__ import annotations

import threading
from typing import Any

from ncheck.agent.frames import MOST, inflated, message_of, packed, weight
from ncheck.agent.loop import serve


def test_answers_that_are_too_large_together_are_left_out_with_the_reason() -> None:
    sources = [{"key": f"file:{number}"} for number in range(8)]
    wire = packed({"do": "collect", "id": 1, "sources": sources})
    replies: dict[str, Any] = {}
    taken, done = 0, threading.Event()

    class Head:
        """Sends the questions; then waits until all are answered, and ends."""

        sent: bytes = wire

        def read(self, count: int) -> bytes:
            if not self.sent:
                done.wait(60.0)
            data, self.sent = self.sent[:count], self.sent[count:]
            return data

    def take(data: bytes) -> None:
        nonlocal taken
        while data:
            size = int.from_bytes(data[:4], "big")
            text = inflated(data[4 : 4 + size])
            taken += weight(text)
            replies.update(message_of(text)["replies"])
            data = data[4 + size :]
        if len(replies) == len(sources):
            done.set()

    serve(Head().read, take, lambda _source, _fetch: {"status": "ok", "value": "x" * (MOST // 8)})
    assert taken <= MOST
    left_out = {
        "status": "failed",
        "reason": "the answer cannot be sent: with it, this node's answers would be too large",
    }
    assert sorted(reply["status"] for reply in replies.values()) == ["failed"] * 5 + ["ok"] * 3
    assert [reply for reply in replies.values() if reply["status"] == "failed"] == [left_out] * 5
