"""Nodes by a command in place of ssh: the user's (--rsh 'kubectl exec -i {node} --'), or a shell on this machine."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping

from ncheck.fleet.engine import REMOTE_COMMAND, NotConnectedError
from ncheck.model.evidence import Cause, Login
from ncheck.model.node import Node
from ncheck.ssh.child import ChildStream, NotStartedError, start
from ncheck.text import printable
from ncheck.this_machine.origin import user_name


class CommandStream(ChildStream):
    """The pipes of one command."""

    login = Login(reached=False)


class LocalStream(CommandStream):
    """The pipes of a shell on this machine; closing ends the agent and all that it started, in whatever session."""

    def _end(self) -> None:
        from ncheck.this_machine.process import end_tree

        end_tree(self._process)


class LocalEngine:
    """Runs the remote command on this machine."""

    name = "local"

    def connect(self, node: Node, timeout: float) -> LocalStream:  # noqa: ARG002  a process starts at once or not
        """Start it. Raises NotConnectedError."""
        began = time.monotonic()
        try:
            stream = LocalStream(start(["/bin/sh", "-c", REMOTE_COMMAND], os.environ, cwd="/"))
        except NotStartedError as error:
            login = Login(reached=False, cause=Cause.TRANSPORT, detail=error.detail, transport=self.name)
            raise NotConnectedError(login) from error
        user = user_name(os.getuid())
        stream.login = Login(reached=True, transport=self.name, user=user, seconds=time.monotonic() - began)
        return stream


class RshEngine:
    """Runs the user's command. It is split into words as a shell would, and {node} is replaced afterwards, so that no
    name can become two words or a command.
    """

    name = "rsh"

    def __init__(self, command_of: Callable[[Node], str], environ: Mapping[str, str] = os.environ) -> None:
        self.command_of = command_of
        self.environ = dict(environ)

    def connect(self, node: Node, timeout: float) -> CommandStream:  # noqa: ARG002  it prints nothing before the shell
        """Start the command. Raises NotConnectedError."""
        from ncheck.ssh.openssh import connection_broke, without_log  # the command may be an ssh of the user's

        began = time.monotonic()
        try:
            stream = CommandStream(start(self.argv(node), self.environ), without_log, connection_broke)
        except ValueError as error:
            raise self._failed(f"--rsh {self.command_of(node)}: {error}", "ncheck --help") from None
        except NotStartedError as error:
            raise self._failed(error.detail, error.fix) from None
        try_it = shlex.join([*self._words(node), "true"])
        stream.login = Login(reached=True, transport=self.name, seconds=time.monotonic() - began, fix=try_it)
        return stream

    def argv(self, node: Node) -> list[str]:
        """Return the command line: the user's words, then a shell that continues from its first line of input."""
        return [*self._words(node), *shlex.split(REMOTE_COMMAND.removeprefix("exec "))]

    def _words(self, node: Node) -> list[str]:
        return [word.replace("{node}", node.name) for word in shlex.split(self.command_of(node))]

    def _failed(self, detail: str, fix: str) -> NotConnectedError:
        login = Login(
            reached=False, cause=Cause.TRANSPORT, detail=printable(detail, 1000), transport=self.name, fix=fix
        )
        return NotConnectedError(login)
