"""Which transport serves a node: paramiko, the ssh program, a command in place of ssh, or none at all."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ncheck.errors import SettingsError
from ncheck.fleet.link import LoginFailedError
from ncheck.model.evidence import Cause, Login
from ncheck.ssh.config import SshConfig, read_ssh_config
from ncheck.ssh.fault import ElsewhereError

if TYPE_CHECKING:
    from ncheck.fleet.link import Stream, Transport
    from ncheck.model.node import Node
    from ncheck.settings import Settings
    from ncheck.ssh.target import SshTarget


LEAST_LEFT = 1.0  # seconds: with less than this there is no second try by another transport


def transports(settings: Settings, environ: Mapping[str, str] = os.environ) -> Callable[[Node], Transport]:
    """Return what gives each node its transport. Nothing is connected, and paramiko not imported, before it is needed.

    Raises SettingsError where the configuration named by -F cannot be read, or --transport cannot be had.
    """
    if settings.transport == "paramiko" and not paramiko_is_here():
        raise SettingsError("--transport paramiko: paramiko cannot be imported here; use --transport openssh")
    if settings.transport == "openssh" and not shutil.which("ssh"):
        raise SettingsError("--transport openssh: there is no ssh program on PATH; use --transport paramiko")
    choice = Choice(settings, read_ssh_config(settings, environ))
    return lambda _node: choice


@cache
def paramiko_is_here() -> bool:
    """Tell whether paramiko and what it is built on can be imported; the pure-Python archive has neither."""
    return all(find_spec(name) is not None for name in ("paramiko", "cryptography"))


class Choice:
    """One transport in front of all: it picks for each node as it connects, and makes each kind when first needed."""

    name = "auto"

    def __init__(self, settings: Settings, config: SshConfig) -> None:
        self.settings = settings
        self.config = config
        self._lock = threading.Lock()
        self._made: dict[str, Transport] = {}
        self._targets: dict[Node, SshTarget] = {}

    def connect(self, node: Node, timeout: float) -> Stream:
        """Connect by the transport that serves this node. Raises LoginFailedError."""
        began = time.monotonic()
        try:
            name = self.name_for(node)
            return self._transport(name).connect(node, timeout)
        except SettingsError as error:  # ssh -G refuses the configuration of this one node
            raise LoginFailedError(Login(reached=False, cause=Cause.TRANSPORT, detail=str(error))) from None
        except ElsewhereError:
            remaining = timeout - (time.monotonic() - began)
            if self.settings.transport != "auto" or not shutil.which("ssh") or remaining < LEAST_LEFT:
                raise
            return self._transport("openssh").connect(node, remaining)

    def name_for(self, node: Node) -> str:
        """Return which transport serves this node: local, rsh, paramiko or openssh."""
        if node.local:
            return "local"
        if self.settings.environment_of(node.name).rsh:
            return "rsh"
        if self.settings.transport != "auto":
            return self.settings.transport
        return "openssh" if not paramiko_is_here() or self.target(node).needs_openssh else "paramiko"

    def target(self, node: Node) -> SshTarget:
        """Return where ssh goes for this node; asked once a node."""
        with self._lock:
            known = self._targets.get(node)
        if known is None:
            resolved = self.config.resolve(node)
            known = self._targets[node] = replace(resolved, config_file=self.settings.ssh_config or "")
        return known

    def _transport(self, name: str) -> Transport:
        with self._lock:
            if name not in self._made:
                self._made[name] = _MAKERS[name](self)
            return self._made[name]


def _local(_choice: Choice) -> Transport:
    from ncheck.fleet.local import LocalTransport

    return LocalTransport()


def _paramiko(choice: Choice) -> Transport:
    with _invoke_left_out():
        from ncheck.ssh.client import ParamikoTransport

    return ParamikoTransport(choice.target, accept_new_host_keys=choice.settings.accept_new_host_keys)


@contextmanager
def _invoke_left_out() -> Iterator[None]:
    """Let paramiko find no `invoke`, which it imports where it can and uses for nothing that we do: half of its time.

    None in sys.modules is the import system's own way to say that a module is not there.
    """
    if "invoke" in sys.modules:
        yield
        return
    sys.modules["invoke"] = None  # type: ignore[assignment]  # the type leaves out what the language allows
    try:
        yield
    finally:
        del sys.modules["invoke"]


def _openssh(choice: Choice) -> Transport:
    from ncheck.ssh.program import OpenSshTransport

    return OpenSshTransport(choice.config, choice.target, accept_new_host_keys=choice.settings.accept_new_host_keys)


def _rsh(choice: Choice) -> Transport:
    from ncheck.ssh.program import RshTransport

    return RshTransport(lambda node: choice.settings.environment_of(node.name).rsh or "")


_MAKERS: Mapping[str, Callable[[Choice], Transport]] = {
    "local": _local,
    "paramiko": _paramiko,
    "openssh": _openssh,
    "rsh": _rsh,
}
