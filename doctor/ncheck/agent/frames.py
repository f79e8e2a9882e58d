"""Frames: four bytes of length (big-endian), then that many bytes of zlib over JSON.

Both sides keep to the same limits: one of a frame, and one of all frames that a node sends in its session.
"""

import json
import struct
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn

    Message = Any  # whatever JSON can hold

LARGEST = 8 * 1024 * 1024  # bytes of one frame, packed and unpacked: more than any answer can be
MOST = 32 * 1024 * 1024  # of all that a node sends, by `weight`; a large node's answers weigh a hundredth of it
_VALUE = 64  # bytes of memory that a value of JSON takes at least, however short its text is
_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """What came is not a frame: too long, not zlib, not JSON, or cut off in the middle."""


def packed(message: object) -> bytes:
    """Return one message as a frame. FrameError when it is too long to be sent."""
    return framed(text_of(message))


def text_of(message: object) -> bytes:
    """Return a message as JSON in ASCII. FrameError when it is too long to be sent."""
    text = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(text) > LARGEST:
        raise FrameError("{} bytes are more than one frame may hold".format(len(text)))
    return text


def framed(text: bytes) -> bytes:
    """Return a message's JSON as a frame."""
    body = zlib.compress(text, 1)
    return _LENGTH.pack(len(body)) + body


def weight(text: bytes) -> int:
    """Return about how many bytes of memory a message takes once it is read, from its JSON: [[],[],[]] takes most."""
    return len(text) + _VALUE * sum(text.count(mark) for mark in (b",", b"[", b"{"))


def unpacked(body: bytes) -> "Message":
    """Return the message of one frame's body."""
    return message_of(inflated(body))


def inflated(body: bytes) -> bytes:
    """Return the JSON of one frame's body."""
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(body, LARGEST)
    except zlib.error as error:
        raise FrameError("not a frame: {}".format(error)) from None
    if inflater.unconsumed_tail or not inflater.eof:
        raise FrameError("a frame that is too long or cut off")
    return text


def message_of(text: bytes) -> "Message":
    """Return the message of a frame's JSON."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise FrameError("not a frame: {}".format(error)) from None


def _no_number(name: str) -> "NoReturn":
    raise ValueError(name + " is no number of JSON")


def length_of(header: bytes) -> int:
    """Return how many bytes follow these four."""
    length: int = _LENGTH.unpack(header)[0]
    if length > LARGEST:
        raise FrameError("a frame of {} bytes is announced".format(length))
    return length


def read_message(read: "Callable[[int], bytes]") -> "Message":
    """Read one message; None at a clean end. `read(n)` returns exactly n bytes, or fewer at the end."""
    header = read(_LENGTH.size)
    if not header:
        return None
    if len(header) < _LENGTH.size:
        raise FrameError("cut off in the middle of a frame")
    length = length_of(header)
    body = read(length)
    if len(body) < length:
        raise FrameError("cut off in the middle of a frame")
    return unpacked(body)
