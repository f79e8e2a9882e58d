"""A module that an agent asks its head for: what comes late is not taken for what is asked next."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from ncheck.agent.frames import packed, read_message
from ncheck.agent.loop import serve

Fetch = Callable[..., "str | None"]


def test_a_text_that_comes_too_late_is_not_taken_for_the_next() -> None:
    head, node = socket.socketpair()
    head.settimeout(60.0)
    stream, answers = head.makefile("rb"), node.makefile("rb")

    def respond(_: Any, fetch: Fetch) -> dict[str, Any]:
        return {"status": "ok", "value": [fetch("first", 0.01), fetch("second", 60.0)]}

    serving = threading.Thread(target=serve, args=(answers.read, node.sendall, respond), daemon=True)
    serving.start()
    head.sendall(packed({"do": "collect", "id": 1, "sources": [{"key": "k"}]}))
    assert read_message(stream.read) == {"is": "wanted", "module": "first"}
    assert read_message(stream.read) == {"is": "wanted", "module": "second"}
    for name in ("first", "second"):
        head.sendall(packed({"do": "module", "name": name, "text": f"text of the {name}"}))
    reply = read_message(stream.read)
    head.sendall(packed({"do": "bye"}))
    serving.join(60.0)
    for one in (stream, answers, head, node):
        one.close()
    assert reply["replies"]["k"]["value"] == [None, "text of the second"]
