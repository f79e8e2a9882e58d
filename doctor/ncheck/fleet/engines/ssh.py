"""Nodes over SSH: settings and nodes become the ssh client's options and hosts, and its records become logins."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ncheck.errors import SettingsError
from ncheck.fleet.engine import REMOTE_COMMAND, NotConnectedError
from ncheck.model.evidence import Cause, Login
from ncheck.model.node import Node
from ncheck.settings import Settings
from ncheck.ssh import login as ssh
from ncheck.ssh.client import SshClient, has_paramiko
from ncheck.text import printable

LONGEST_DETAIL = 1000  # characters of a failure's detail

_USUAL, _MOST_PORTS = 22, 4  # ports that are tried on a node whose own port refuses
_SOON = 2.0  # seconds
_MOST_NODES = 8  # whose other ports are tried: it is a hint, and must not cost the other nodes their time


class SshStream:
    """A stream of the ssh client, with the login as evidence has it."""

    def __init__(self, stream: ssh.RemoteStream, options: tuple[str, ...], shared_socket: str) -> None:
        self.login = replace(login_of(stream.record), options=options, shared_socket=shared_socket)
        self.send, self.receive, self.close = stream.send, stream.receive, stream.close
        self.stderr, self.exit_status = stream.stderr, stream.exit_status
        self.lossy: Callable[[], bool] | None = getattr(stream, "lossy", None)  # the ssh program does not tell


class SshEngine:
    """Logs in to nodes by the ssh client. Raises SettingsError for a transport or a configuration that is missing."""

    name = "ssh"

    def __init__(self, settings: Settings, environ: Mapping[str, str] = os.environ, nodes: Iterable[Node] = ()) -> None:
        listed = (node.port or settings.port or _USUAL for node in nodes)
        self.ports = tuple(dict.fromkeys((_USUAL, *listed)))[:_MOST_PORTS]
        self.refused: dict[str, NotConnectedError] = {}  # of the first nodes: connect() tries their other ports
        self.tried = 0
        if settings.transport == "paramiko" and not has_paramiko():
            raise SettingsError(
                f"{settings.named('transport', 'paramiko')}: paramiko is not installed; use --transport openssh"
            )
        if settings.transport == "openssh" and not shutil.which("ssh"):
            raise SettingsError(
                f"{settings.named('transport', 'openssh')}: there is no ssh program on PATH; use --transport paramiko"
            )
        given = {} if settings.run.rehearsal else {"-F": settings.ssh_config, "-i": settings.identity}
        self.options = tuple(word for flag, value in given.items() if value for word in (flag, value))
        try:
            self.client = SshClient(REMOTE_COMMAND, options_of(settings), settings.transport, environ)
        except ssh.ConfigError as error:
            raise SettingsError(printable(str(error), LONGEST_DETAIL)) from None

    def approach(
        self, node: Node, timeout: float, begin: Callable[[], float], then: Callable[[NotConnectedError | None], None]
    ) -> None:
        """Dial a node, and call `then` once its server spoke, or with why it did not."""

        def came(error: ssh.LoginFailedError | None) -> None:
            failed = None if error is None else self._failed(error)
            if failed and failed.login.cause is Cause.REFUSED and self.tried < _MOST_NODES:
                self.tried += 1
                self.refused[node.name] = failed
                failed = None
            then(failed)

        self.client.approach(host_of(node), timeout, begin, came)

    def connect(self, node: Node, timeout: float) -> SshStream:
        """Log in and start the command. Raises NotConnectedError."""
        if refused := self.refused.pop(node.name, None):
            ports = [port for port in self.ports if port != refused.login.port]
            other = answering(refused.login.address or node.name, ports)
            raise NotConnectedError(replace(refused.login, other_port=other))
        try:
            host = host_of(node)
            stream = self.client.connect(host, timeout)
            return SshStream(stream, self.options, printable(self.client.target(host).shared_socket))
        except ssh.LoginFailedError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """Stop dialling."""
        self.client.close()

    def _failed(self, error: ssh.LoginFailedError) -> NotConnectedError:
        return NotConnectedError(replace(login_of(error.record, error), options=self.options))


def answering(host: str, ports: Iterable[int]) -> int:
    """Return the first of these ports on which an SSH server answers; 0 if none does so soon."""
    return next((port for port in ports if _is_ssh(host, port)), 0)


def _is_ssh(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _SOON) as sock:
            return sock.recv(4) == b"SSH-"
    except OSError:
        return False


def options_of(settings: Settings) -> ssh.Options:
    """Return the ssh client's options for a run."""
    config_file = settings.ssh_config and str(Path(settings.ssh_config).expanduser())
    return ssh.Options(
        settings.user, settings.port, settings.identity, config_file, settings.accept_new_host_keys,
        longest=settings.deadline, width=settings.width,
    )  # fmt: skip


def host_of(node: Node) -> ssh.ListedHost:
    """Return a node as the ssh client's host."""
    return ssh.ListedHost(node.name, node.user, node.port)


def login_of(record: ssh.LoginRecord, error: ssh.LoginFailedError | None = None) -> Login:
    """Return the login of a record; `error` is why it failed."""
    try_openssh = "ncheck --transport openssh nodes.txt" if error and error.openssh_may_work else ""
    return Login(
        reached=error is None,
        cause=Cause(error.cause.value) if error else None,
        detail=printable(error.detail, LONGEST_DETAIL) if error else "",
        transport=record.transport,
        address=record.address,
        port=record.port,
        user=record.user,
        attempts=record.attempts,
        seconds=record.seconds,
        authentication_seconds=record.authentication,
        offered_keys=record.offered_keys,
        host_key=record.host_key,
        fix=(error.fix or try_openssh) if error else "",
        host_key_warning=printable(record.host_key_warning, LONGEST_DETAIL),
    )
