"""Frames: what is sent comes whole, and nothing else is taken for a frame."""

from __future__ import annotations

import io
import json
import struct
import zlib

import pytest
from ncheck.agent.frames import LARGEST, FrameError, packed, read_message, unpacked


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@pytest.mark.parametrize("message", [{}, {"a": [1, None, 2.5, True, "caf\u00e9 \ud83d"]}, {"deep": {"er": []}}])
def test_what_is_sent_comes_whole(message: object) -> None:
    assert read_message(io.BytesIO(packed(message)).read) == message


def test_a_clean_end_is_no_message() -> None:
    assert read_message(io.BytesIO(b"").read) is None


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0",
        packed({"a": 1})[:-3],
        framed(b"not zlib"),
        framed(zlib.compress(b"not json")),
        framed(zlib.compress(b'{"cut": "off"}')[:-2]),
        framed(zlib.compress(b"[" * 100_000)),
        framed(zlib.compress(b"[NaN]")),
        struct.pack(">I", LARGEST + 1),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        read_message(io.BytesIO(data).read)


def test_a_small_frame_that_unpacks_to_a_giant_is_refused_without_unpacking_it_all() -> None:
    bomb = zlib.compress(json.dumps("0" * (4 * LARGEST)).encode(), 9)
    with pytest.raises(FrameError):
        unpacked(bomb)


def test_a_message_that_is_too_long_is_never_sent() -> None:
    with pytest.raises(FrameError):
        packed({"text": "0" * (LARGEST + 1)})
