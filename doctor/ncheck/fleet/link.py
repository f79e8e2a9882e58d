"""The contract of a transport: one connection a node, one remote command on it, bytes both ways."""

from __future__ import annotations

from typing import Protocol

from ncheck.model.evidence import Login
from ncheck.model.node import Node

# The one remote command, whatever is to be run: no quote, backslash, newline or exclamation mark inside, so that sh,
# bash, zsh, csh and fish all read it alike. The first line of standard input is a POSIX shell script, which goes on
# from there.
REMOTE_COMMAND = "exec /bin/sh -c 'IFS= read -r line && eval \"$line\"'"


class LoginFailedError(Exception):
    """The way into the node failed; `login` says where and why, with `reached` False."""

    def __init__(self, login: Login) -> None:
        super().__init__(login.detail)
        self.login = login


class Stream(Protocol):
    """The standard input and output of REMOTE_COMMAND on one node.

    `login` is what the transport knows of the way in: transport, address, port, user, attempts, seconds, offered_keys,
    host_key; `reached` in it means that the channel was opened (the session settles the rest: shell, python, set-up).
    """

    login: Login

    def send(self, data: bytes, timeout: float) -> None:
        """Write all of it; TimeoutError after `timeout` seconds, ConnectionError when the connection is gone."""

    def receive(self, timeout: float) -> bytes:
        """Return some bytes as soon as there are any; b"" at the end; TimeoutError after `timeout` seconds;
        ConnectionError when the connection broke rather than ended.
        """

    def stderr(self) -> bytes:
        """Return the last 4 KiB that came on standard error so far."""

    def exit_status(self, timeout: float) -> int | None:
        """Return the command's exit status once it ended, None when it was not told within `timeout` seconds."""

    def close(self) -> None:
        """End it, at once and without waiting: the node's side ends at end of input."""


class Transport(Protocol):
    """Opens streams; safe to call from many threads at once."""

    name: str

    def connect(self, node: Node, timeout: float) -> Stream:
        """Connect, verify the host key, log in and start REMOTE_COMMAND, all within `timeout` seconds.

        Raises LoginFailedError, and nothing else, for whatever is wrong with the node or the way to it.
        """
