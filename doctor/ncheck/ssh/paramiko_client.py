"""An SSH client on paramiko: connect, verify the host key, log in, start the command, all within one deadline.

Every failure has its own cause. No password is ever asked for; no host key is trusted that OpenSSH would not trust.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from ncheck.ssh import failures
from ncheck.ssh.algorithms import lacking
from ncheck.ssh.auth import Identity, Keyring, log_in
from ncheck.ssh.dial import GreetedConnection, dial, lossy
from ncheck.ssh.failures import DroppedError, FailureError, LoginFailure, Retries, failed
from ncheck.ssh.known_hosts import HostRecord, KnownHosts, look_up, verify
from ncheck.ssh.login import LoginCause, LoginFailedError, LoginRecord
from ncheck.ssh.paramiko_internals import ConfiguredTransport, ParamikoStream, ServerMessages
from ncheck.ssh.public_keys import fingerprint
from ncheck.ssh.target import SshTarget


class ParamikoClient:
    """Opens streams over paramiko; safe to use from many threads at once."""

    def __init__(
        self,
        command: str,
        *,
        accept_new_host_keys: bool = False,
        chance: Callable[[], float] = random.random,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.command = command
        self.accept_new_host_keys = accept_new_host_keys
        self.chance, self.pause = chance, pause
        self.keyring = Keyring()
        self._lock = threading.Lock()
        self._known_hosts: dict[tuple[str, ...], KnownHosts] = {}

    def connect(self, target: SshTarget, timeout: float, arrival: GreetedConnection | None = None) -> ParamikoStream:
        """Log in and start the command, on the connection that has arrived if there is one. Raises LoginFailedError."""
        return _Attempt(self, target, timeout, arrival).stream()

    def known_hosts(self, target: SshTarget) -> KnownHosts:
        """Return what the host's files say; each set of files is read once."""
        files = (*target.known_hosts_files, *target.global_known_hosts_files)
        with self._lock:
            if files not in self._known_hosts:
                self._known_hosts[files] = KnownHosts(files)
            return self._known_hosts[files]


class _Attempt:
    """One login, with what is known of it so far. The server may drop it a few times."""

    def __init__(
        self, client: ParamikoClient, target: SshTarget, timeout: float, arrival: GreetedConnection | None
    ) -> None:
        self.client, self.target, self.timeout, self.arrival = client, target, timeout, arrival
        self.began = now = time.monotonic()
        if arrival:  # its time began when it was dialled; it does not run while it waits to be served
            self.began, timeout = now - arrival.seconds, min(timeout, arrival.timeout - arrival.seconds)
        self.retries = Retries(now + timeout, client.chance, client.pause)
        self.address = ""
        self.offered: list[Identity] = []
        self.host_key = self.host_key_warning = ""
        self.authentication = 0.0

    @property
    def remaining(self) -> float:
        return self.retries.remaining

    def stream(self) -> ParamikoStream:
        try:
            self._refuse_what_paramiko_lacks()
            return self.retries.run(self._once, lambda: self.address)
        except FailureError as error:
            failure = error.failure
            raise LoginFailedError(
                failure.cause, failure.detail, failure.fix, self._record(), openssh_may_work=error.openssh_may_work
            ) from None

    def _refuse_what_paramiko_lacks(self) -> None:
        """Refuse a host behind a proxy (a direct connection to its address may reach another host), and one for which
        the configuration allows no algorithm that paramiko has.
        """
        if proxy := self.target.proxy_jump or self.target.proxy_command:
            why = f"{self.target.name} is behind a jump host ({proxy}), which needs the ssh program"
            raise failed(LoginCause.TRANSPORT, why, openssh_may_work=True)
        if missing := lacking(self.target.algorithms):
            why = f"paramiko has no algorithm that the ssh configuration allows ({missing})"
            raise failed(LoginCause.TRANSPORT, why, openssh_may_work=True)

    def _once(self) -> ParamikoStream:
        arrival, self.arrival = self.arrival or self._dialled(), None
        sock, self.address = arrival.sock, arrival.address
        known = self.client.known_hosts(self.target)
        record = look_up(known, self.target.host_name, self.target.port, self.target.host_key_alias)
        link = ConfiguredTransport(sock, self.target.algorithms, record.key_types)
        link.wire.deadline, link.wire.identified = self.retries.deadline, True
        try:
            self._exchange_keys(link)
            self._verify(link, record, known)
            exchanged = time.monotonic()
            log_in(link, self.target, self.client.keyring.for_target(self.target), self)
            channel = self._start(link)
            self.authentication = 0.0 if lossy(sock) else time.monotonic() - exchanged
            return ParamikoStream(link, channel, self._record(), sock)
        except BaseException:
            link.close()
            if not link.is_alive():  # its thread never ran, so nothing else closes the socket
                sock.close()
            raise

    def _dialled(self) -> GreetedConnection:
        try:
            return dial(self.target, self.remaining)
        except FailureError as error:
            self.address = error.address or self.address
            raise

    def _verify(self, link: ConfiguredTransport, record: HostRecord, known: KnownHosts) -> None:
        try:
            key = link.get_remote_server_key()
        except paramiko.SSHException:
            raise DroppedError(LoginFailure(LoginCause.OVERLOADED, "closed in the key exchange")) from None
        self.host_key = f"{key.get_name()} {fingerprint(key.asbytes())}"
        verified = verify(key.asbytes(), record, self.target, accept_new=self.client.accept_new_host_keys)
        self.host_key_warning = verified.warning
        if verified.added:
            known.learn(self.target.known_as, key.asbytes())

    def _exchange_keys(self, link: ConfiguredTransport) -> None:
        done = threading.Event()
        try:
            link.start_client(event=done)
        except RuntimeError as error:
            raise failed(
                LoginCause.TRANSPORT, f"this machine cannot start another thread: {error}", "ulimit -u"
            ) from None
        done.wait(self.remaining + 1)
        if not (done.is_set() and link.is_active()):
            raise self._handshake_failure(link, link.get_exception())

    def _handshake_failure(self, link: ConfiguredTransport, error: Exception | None) -> FailureError:
        """Say why there was no key exchange, from how far it came."""
        server = link.wire.server
        if not server.banner:
            return self._banner_failure(server, timed_out=link.wire.timed_out)
        if link.wire.timed_out:
            return FailureError(failures.stalled(self.address, "in the key exchange", self.timeout))
        if isinstance(error, IncompatiblePeer):
            return failed(LoginCause.TRANSPORT, f"paramiko and the server have no common algorithm: {error}",
                          failures.by_hand(self.target, "-v"), openssh_may_work=True)  # fmt: skip
        if server.disconnect:
            return failed(LoginCause.TRANSPORT, f"the server ended the key exchange: {server.disconnect}",
                          failures.by_hand(self.target, "-v"), openssh_may_work=True)  # fmt: skip
        if isinstance(error, (EOFError, OSError)) or error is None:
            return DroppedError(LoginFailure(LoginCause.OVERLOADED, "closed in the key exchange"))
        return failed(LoginCause.TRANSPORT, f"the key exchange failed: {error}", failures.by_hand(self.target, "-v"))

    def _banner_failure(self, server: ServerMessages, *, timed_out: bool) -> FailureError:
        answer = server.before_banner.decode(errors="replace").strip()[:120]
        if answer.startswith(failures.SERVER_FULL):
            return DroppedError(LoginFailure(LoginCause.OVERLOADED, f"it answered {answer!r}"))
        if answer:
            return FailureError(failures.not_ssh(self.target, answer))
        if timed_out:
            return FailureError(failures.silent(self.target, self.address, self.timeout))
        return DroppedError(LoginFailure(LoginCause.OVERLOADED, "closed before its banner"))

    def _start(self, link: ConfiguredTransport) -> paramiko.Channel:
        try:
            channel = link.open_session(timeout=self.remaining)
            channel.exec_command(self.client.command)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._session_failure(link, error) from None
        link.wire.deadline = None
        return channel

    def _session_failure(self, link: ConfiguredTransport, error: Exception) -> FailureError:
        if link.wire.timed_out:
            return FailureError(failures.stalled(self.address, "after the login", self.timeout))
        if not link.is_active():
            why = link.wire.server.disconnect or "it gave no reason"
            return failed(LoginCause.CLOSED, f"the server closed the connection right after the login: {why}",
                          failures.by_hand(self.target, "-v"))  # fmt: skip
        return failed(LoginCause.NO_SHELL, f"logged in, but no command can be started: {error}",
                      failures.by_hand(self.target, "-v"))  # fmt: skip

    def _record(self) -> LoginRecord:
        return LoginRecord(
            transport="paramiko",
            address=self.address,
            port=self.target.port,
            user=self.target.user,
            attempts=self.retries.attempts,
            seconds=time.monotonic() - self.began,
            authentication=self.authentication,
            offered_keys=tuple(key.description for key in self.offered),
            host_key=self.host_key,
            host_key_warning=self.host_key_warning,
        )
