"""The bytes between two ranks: each side proves that it knows the job's token, then frames of JSON follow.

The hub speaks first, so that a rank says nothing to a stranger who holds the port (a database, the job's own store):

    hub:  greeting, nonce
    rank: nonce, proof          HMAC-SHA-256 of both nonces, with the token as key
    hub:  proof
    both: frames                length (4 bytes), code (32 bytes), JSON

The code of a frame depends on the token, both nonces, the side that sends and the number of the frame: nobody without
the token can forge, repeat or swap one. Nothing is encrypted, and nothing that is sent is secret.
"""

from __future__ import annotations

import hmac
import json
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncheck.rank_variables import Rank

GREETING = b"ncheck meeting 1\n"
LARGEST_FROM_RANK = 16 * 1024  # bytes of JSON: what a rank says of itself takes 500
LARGEST_FROM_HUB = 32 * 1024 * 1024  # the report of a large job
MOST_FROM_RANK = 64  # frames
MOST_FROM_HUB = 64
MOST_VALUES = 2_000_000  # in one text of JSON: an empty list takes 2 bytes on the wire and 64 in memory

_NONCE = 32
_CODE = 32
_HEAD = struct.Struct(">I")


class ForeignError(Exception):
    """The other side is not of this job: it does not know the token, or it speaks something else."""


class MisuseError(Exception):
    """The other side knows the token and sends what ncheck does not send."""


def job_token(rank: Rank, secret: str, user: str) -> bytes:
    """Return what the ranks of one attempt of one job share, and nobody else.

    `secret` is NCHECK_TOKEN; "" is none: then it is as secret as the launcher's job id. `user` counts only where
    there is neither: ranks of one job may be of several users, as in containers, and two may take one MASTER_PORT.
    """
    parts = (rank.job, str(rank.attempt), str(rank.master_port or ""), "" if secret or rank.job else user)
    return _code(secret.encode("utf-8", "surrogateescape"), "\0".join(parts).encode("utf-8", "surrogateescape"))


class End:
    """One end of a connection, without its socket: `feed` takes what came and returns the messages in it.

    `outgoing` holds what is to be sent next; who sends it empties it.
    """

    def __init__(self, token: bytes, *, hub: bool) -> None:
        self._token, self._hub = token, hub
        self._came = bytearray()
        self._nonce = os.urandom(_NONCE)
        self._key = b""
        self._sent = self._received = 0
        self._size: int | None = None  # of the frame that comes
        self._proof = b""  # that the hub owes
        self.outgoing: list[bytes] = [GREETING + self._nonce] if hub else []

    @property
    def proved(self) -> bool:
        """Whether the other side has proved that it knows the token."""
        return bool(self._key)

    @property
    def wanted(self) -> int:
        """How many bytes to read: never more than belong to the next step, so a socket can be handed on after it."""
        return self._step_size() - len(self._came)

    def feed(self, data: bytes) -> list[object]:
        """Take at most `wanted` bytes. Raises ForeignError or MisuseError."""
        self._came += data
        if not self._key and not self._hub and not self._proof and not GREETING.startswith(self._came[: len(GREETING)]):
            raise ForeignError("it does not greet as ncheck does")
        messages = []
        while len(self._came) >= self._step_size():
            size = self._step_size()
            step = bytes(self._came[:size])
            del self._came[:size]
            if self._key:
                messages += self._frame(step)
            elif self._hub:
                self._check_rank(step)
            elif self._proof:
                self._check_hub(step)
            else:
                self._answer(step)
        return messages

    def say(self, text: bytes) -> None:
        """Queue a frame. `text` is JSON; it is not copied, so one report to a thousand ranks takes its size once."""
        self.outgoing += [_HEAD.pack(len(text)) + self._frame_code(text, self._hub, self._sent), text]
        self._sent += 1

    def _step_size(self) -> int:
        if self._key:
            return _HEAD.size + _CODE if self._size is None else self._size
        if self._hub:
            return _NONCE + _CODE
        return _CODE if self._proof else len(GREETING) + _NONCE

    def _check_rank(self, step: bytes) -> None:
        nonces = self._nonce + step[:_NONCE]
        if not hmac.compare_digest(step[_NONCE:], _code(self._token, b"rank" + nonces)):
            raise ForeignError("it does not know the token")
        self.outgoing.append(_code(self._token, b"hub" + nonces))
        self._key = _code(self._token, b"frames" + nonces)

    def _answer(self, step: bytes) -> None:
        nonces = step[len(GREETING) :] + self._nonce
        self.outgoing.append(self._nonce + _code(self._token, b"rank" + nonces))
        self._proof = _code(self._token, b"hub" + nonces)
        self._next_key = _code(self._token, b"frames" + nonces)

    def _check_hub(self, step: bytes) -> None:
        if not hmac.compare_digest(step, self._proof):
            raise ForeignError("it does not know the token")
        self._key = self._next_key

    def _frame(self, step: bytes) -> list[object]:
        if self._size is None:
            size = _HEAD.unpack(step[: _HEAD.size])[0]
            largest, most = (LARGEST_FROM_RANK, MOST_FROM_RANK) if self._hub else (LARGEST_FROM_HUB, MOST_FROM_HUB)
            if not 0 < size <= largest or self._received >= most:
                raise MisuseError("it sends too much")
            self._size, self._expected = size, step[_HEAD.size :]
            return []
        self._size = None
        if not hmac.compare_digest(self._expected, self._frame_code(step, not self._hub, self._received)):
            raise MisuseError("a frame was changed")
        self._received += 1
        try:
            return [decoded(step)]
        except ValueError as error:
            raise MisuseError("a frame is not JSON") from error

    def _frame_code(self, text: bytes, from_hub: bool, number: int) -> bytes:  # noqa: FBT001
        return _code(self._key, (b"hub" if from_hub else b"rank") + struct.pack(">Q", number) + text)


def _code(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def few_values(text: bytes) -> bool:
    """Return whether JSON holds so few values that this process can hold them: each follows one of these characters."""
    return sum(map(text.count, (b"[", b"{", b",", b":"))) <= MOST_VALUES


def decoded(text: bytes) -> object:
    """Return what another process said in JSON. Raises ValueError where it is none, too much or too deep."""
    if not few_values(text):
        raise ValueError("it holds too many values")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is too deep") from None
