"""The contract of an engine: one connection to a node, one remote command on it, bytes both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ncheck.model.evidence import Login
    from ncheck.model.node import Node

# The name ($0) that the remote command gives its shell, and the script returns: a shell that came in its place, by a
# start-up file or by sshd, also runs the script, and has another name.
COMMAND_NAME = "ncheck-command"

# The one remote command, whatever is to be run: no quote, backslash, newline or exclamation mark inside, so that sh,
# bash, zsh, csh and fish all read it alike. The first line of standard input is a POSIX shell script, which continues
# from there.
REMOTE_COMMAND = f"exec /bin/sh -c 'IFS= read -r line && eval \"$line\"' {COMMAND_NAME}"


class NotConnectedError(Exception):
    """A node could not be connected to; `login` says where and why, with `reached` False."""

    def __init__(self, login: Login) -> None:
        super().__init__(login.detail)
        self.login = login


class NodeFloodsError(Exception):
    """A node sent more than any answer could be."""


class EngineBrokeError(ConnectionError):
    """What carries many streams broke, and all of them with it: no node is at fault."""


class Stream(Protocol):
    """The standard input and output of REMOTE_COMMAND on one node.

    `login` is what the engine knows of the connection: transport, address, port, user, attempts, seconds,
    offered_keys, host_key; `reached` in it means that the command was started (the session finds out about the rest:
    shell, python, set-up).
    """

    login: Login

    def send(self, data: bytes, timeout: float) -> None:
        """Write all of it; TimeoutError after `timeout` seconds, ConnectionError when the connection is gone."""

    def receive(self, timeout: float) -> bytes:
        """Return some bytes as soon as there are any; b"" at the end; TimeoutError after `timeout` seconds;
        ConnectionError when the connection broke rather than ended; NodeFloodsError.
        """

    def stderr(self) -> bytes:
        """Return the last 4 KiB that came on standard error so far."""

    def exit_status(self, timeout: float) -> int | None:
        """Return the command's exit status once it ended, None when it is not known within `timeout` seconds."""

    def close(self) -> None:
        """End it, at once and without waiting: the node's side ends at end of input."""


class Engine(Protocol):
    """Opens streams; safe to use from many threads at once."""

    name: str

    def connect(self, node: Node, timeout: float) -> Stream:
        """Connect, log in where that is needed, and start REMOTE_COMMAND, all within `timeout` seconds.

        Raises NotConnectedError, and nothing else, for whatever is wrong with the node or the connection to it.
        """


@runtime_checkable
class DiallingEngine(Engine, Protocol):
    """An engine that waits for the answers of nodes by itself, without a worker for each."""

    def approach(
        self, node: Node, timeout: float, begin: Callable[[], float], then: Callable[[NotConnectedError | None], None]
    ) -> None:
        """Call `then` once, from a thread of the engine: when connect() would wait for nothing but the login, or with
        why the node does not answer. `begin` is called when the node is first tried, and returns how many seconds there
        are; if there are none, `then` is not called. `timeout` limits what comes before.
        """

    def close(self) -> None:
        """Stop waiting; `then` may still be called for a moment."""
