"""SSH to many hosts as the user's configuration says: over paramiko where it serves, by the ssh program elsewhere."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ncheck.ssh.algorithms import lacking
from ncheck.ssh.config import read_ssh_config
from ncheck.ssh.dial import GreetedConnection
from ncheck.ssh.dialler import Dialler, Outcome
from ncheck.ssh.failures import FailureError
from ncheck.ssh.login import ConfigError, ListedHost, LoginCause, LoginFailedError, LoginRecord, Options, RemoteStream
from ncheck.ssh.target import SshTarget

if TYPE_CHECKING:
    from ncheck.ssh.openssh import OpenSshClient
    from ncheck.ssh.paramiko_client import ParamikoClient


MIN_RETRY = 1.0  # seconds: with less than this left, a login that failed by paramiko is not tried by the ssh program


@cache
def has_paramiko() -> bool:
    """Tell whether paramiko and what it is built on can be imported; a pure-Python archive has neither."""
    return all(find_spec(name) is not None for name in ("paramiko", "cryptography"))


class SshClient:
    """Runs one command on each host. `transport` is paramiko, openssh, or auto: for each host the one that serves.

    Safe to use from many threads at once. Nothing is connected, and paramiko not imported, before it is needed.
    Raises ConfigError where the configuration named by -F cannot be read.
    """

    def __init__(
        self, command: str, options: Options, transport: str = "auto", environ: Mapping[str, str] = os.environ
    ) -> None:
        self.command, self.options, self.transport, self.environ = command, options, transport, environ
        self.config = read_ssh_config(options, environ)
        self._lock = threading.Lock()
        self._targets: dict[ListedHost, SshTarget] = {}
        self._paramiko: ParamikoClient | None = None
        self._openssh: OpenSshClient | None = None
        self._dialler: Dialler | None = None
        self._arrivals: dict[ListedHost, GreetedConnection] = {}

    def approach(
        self,
        host: ListedHost,
        timeout: float,
        begin: Callable[[], float],
        then: Callable[[LoginFailedError | None], None],
    ) -> None:
        """Dial a host without holding a thread, and call `then` once its server spoke, or with why it does not.

        connect() goes on with that connection. A host that the ssh program serves is not dialled here. `begin` is
        called when the first address is tried, and returns the seconds that there are for it.
        """
        if self.transport == "openssh":
            then(None)
            return
        began = time.monotonic()

        def arrived(outcome: Outcome) -> None:
            if isinstance(outcome, FailureError):
                then(self._not_dialled(host, outcome, time.monotonic() - began))
                return
            if outcome:
                self._arrivals[host] = outcome
                if dialler.closed:
                    self.close()
            then(None)

        with self._lock:
            if not self._dialler:
                self._dialler = Dialler(self.options.width)
                threading.Thread(target=self._prepare, args=(host,), name="prepare", daemon=True).start()
            dialler = self._dialler
        dialler.add(lambda: self._dialled_target(host), timeout, begin, arrived)

    def _prepare(self, host: ListedHost) -> None:
        """Import paramiko while the first host is dialled: it takes longer than the dialling."""
        with suppress(Exception):  # whoever needs it meets the same, and says so
            if self.transport_for(host) == "paramiko":
                import ncheck.ssh.paramiko_client  # noqa: F401

    def close(self) -> None:
        """Stop dialling, and close the connections that nobody went on with."""
        if self._dialler:
            self._dialler.close()
        for host in tuple(self._arrivals):
            if arrival := self._arrivals.pop(host, None):
                arrival.sock.close()

    def connect(self, host: ListedHost, timeout: float) -> RemoteStream:
        """Log in and start the command, within `timeout` seconds. Raises LoginFailedError."""
        began = time.monotonic()
        arrival = self._arrivals.pop(host, None)
        try:
            if self.transport_for(host) == "openssh":
                return self.openssh().connect(host, self.target(host), timeout)
            return self.paramiko().connect(self.target(host), timeout, arrival)
        except ConfigError as error:  # ssh -G refuses the configuration of this one host
            raise LoginFailedError(LoginCause.TRANSPORT, str(error), "", LoginRecord("")) from None
        except LoginFailedError as error:
            remaining = timeout - (time.monotonic() - began)
            may_work = error.openssh_may_work and self.transport == "auto" and shutil.which("ssh")
            if not may_work or remaining < MIN_RETRY:
                raise
            return self.openssh().connect(host, self.target(host), remaining)
        finally:
            if arrival and self._dialler:
                self._dialler.logged_in(arrival)

    def _dialled_target(self, host: ListedHost) -> SshTarget | None:
        """Return where a host's connection goes; None where connect() makes none by itself, or says what is wrong."""
        try:
            if self.transport_for(host) == "openssh":
                return None
            target = self.target(host)
        except ConfigError:
            return None
        return None if target.proxy_jump or target.proxy_command or lacking(target.algorithms) else target

    def _not_dialled(self, host: ListedHost, error: FailureError, seconds: float) -> LoginFailedError:
        target, failure = self.target(host), error.failure
        record = LoginRecord("paramiko", error.address, target.port, target.user, seconds=seconds)
        return LoginFailedError(failure.cause, failure.detail, failure.fix, record)

    def transport_for(self, host: ListedHost) -> str:
        """Return what serves this host: paramiko or openssh."""
        if self.transport != "auto":
            return self.transport
        return "openssh" if not has_paramiko() or self.target(host).needs_openssh else "paramiko"

    def target(self, host: ListedHost) -> SshTarget:
        """Return where ssh goes for this host; resolved once. Raises ConfigError where ssh refuses it."""
        with self._lock:
            known = self._targets.get(host)
        if known is None:
            known = replace(self.config.resolve(host), config_file=self.options.config_file or "",
                            identity=self.options.identity or "")  # fmt: skip
            self._targets[host] = known
        return known

    def paramiko(self) -> ParamikoClient:
        """Return the client on paramiko, made once."""
        with self._lock:
            if self._paramiko is None:
                from ncheck.ssh.paramiko_client import ParamikoClient

                accept = self.options.accept_new_host_keys
                self._paramiko = ParamikoClient(self.command, accept_new_host_keys=accept)
            return self._paramiko

    def openssh(self) -> OpenSshClient:
        """Return the client by the ssh program, made once."""
        with self._lock:
            if self._openssh is None:
                from ncheck.ssh.openssh import OpenSshClient

                self._openssh = OpenSshClient(self.command, self.config, self.environ)
            return self._openssh
