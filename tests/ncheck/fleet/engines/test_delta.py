"""A message as its difference from another, put together again by the agent."""

from __future__ import annotations

import random

import pytest
from ncheck.agent.broadcast import DELTA, HEADER, KEPT, NUMBER, Broadcast
from ncheck.agent.frames import framed, message_of, packed, read_message, text_of
from ncheck.fleet.engines.delta import delta

ROWS = [[f"n{number}", f"10.0.{number // 250}.{number % 250}", 32768 + number * 7919 % 28000] for number in range(1000)]


def question(number: int) -> bytes:
    """Return what a node of a thousand is asked of the others."""
    rows = [*ROWS[number + 1 :], *ROWS[:number]]
    text: bytes = text_of({"do": "collect", "id": 3, "node": f"n{number}", "targets": rows})
    return text


def put_together(text: bytes, base: bytes, parts: bytes) -> bytes:
    """Return what an agent reads that kept one message and gets the other as parts."""
    data: list[bytes] = []
    agent = Broadcast("ncheck-0f3a", lambda: data.pop() if data else b"", len)
    body = NUMBER.pack(0) + parts
    data += [HEADER.pack(b"otheragt", KEPT, len(framed(base))) + framed(base)
            + HEADER.pack(agent.address, DELTA, len(body)) + body]  # fmt: skip
    read: object = read_message(agent.read_exactly)
    assert read == message_of(text)
    return text_of(read)


@pytest.mark.parametrize("number", [1, 2, 500, 999])
def test_the_same_rows_in_another_order_are_a_few_bytes(number: int) -> None:
    base, text = question(0), question(number)
    parts = delta(text, base)
    assert len(text) > 25_000
    assert len(parts) < 300
    assert put_together(text, base, parts) == text


def test_messages_of_all_kinds_are_put_together_again() -> None:
    chance = random.Random(7)  # noqa: S311  the same messages each time
    for _ in range(50):
        rows = [chance.randrange(10**9) for _ in range(200)]
        other = [row if chance.random() < 0.9 else chance.randrange(10**9) for row in rows]
        chance.shuffle(other) if chance.random() < 0.2 else None
        base, text = text_of(rows), text_of(other)
        if parts := delta(text, base):
            assert put_together(text, base, parts) == text


def test_messages_that_are_not_alike_have_no_difference() -> None:
    assert delta(bytes(range(256)) * 20, b"nothing of that") == b""
    assert delta(b"short", packed({"do": "bye"})) != b""
