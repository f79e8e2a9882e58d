"""SSH by paramiko: connect, verify the host key, log in, start the command, all within one deadline.

Every failure leaves with its own cause. No password is ever asked for; no key is trusted that OpenSSH would not trust.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from ncheck.fleet.link import REMOTE_COMMAND, LoginFailedError
from ncheck.model.evidence import Cause, Login
from ncheck.model.node import Node
from ncheck.ssh import fault
from ncheck.ssh.auth import log_in
from ncheck.ssh.dial import dial
from ncheck.ssh.fault import DroppedError, FaultError, failed
from ncheck.ssh.host_key import verify
from ncheck.ssh.keys import Keyring, fingerprint
from ncheck.ssh.known_hosts import HostRecord, KnownHosts, look_up
from ncheck.ssh.paramiko_internals import Heard, Link, ParamikoStream, silence_paramiko
from ncheck.ssh.persist import Persistence
from ncheck.ssh.target import SshTarget
from ncheck.text import printable


class ParamikoTransport:
    """Opens streams over paramiko; safe to call from many threads at once."""

    name = "paramiko"

    def __init__(
        self,
        resolve: Callable[[Node], SshTarget],
        *,
        accept_new_host_keys: bool = False,
        chance: Callable[[], float] = random.random,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        silence_paramiko()
        self.resolve = resolve
        self.accept_new_host_keys = accept_new_host_keys
        self.chance, self.pause = chance, pause
        self.keyring = Keyring()
        self._lock = threading.Lock()
        self._known_hosts: dict[tuple[str, ...], KnownHosts] = {}

    def connect(self, node: Node, timeout: float) -> ParamikoStream:
        return _Way(self, self.resolve(node), timeout).enter()

    def known_hosts(self, target: SshTarget) -> KnownHosts:
        """Return what the host's files say; each set of files is read once."""
        files = (*target.known_hosts_files, *target.global_known_hosts_files)
        with self._lock:
            if files not in self._known_hosts:
                self._known_hosts[files] = KnownHosts(files)
            return self._known_hosts[files]


class _Way:
    """One way into one node, with what is learnt on it."""

    def __init__(self, transport: ParamikoTransport, target: SshTarget, timeout: float) -> None:
        self.transport, self.target, self.timeout = transport, target, timeout
        self.began = time.monotonic()
        self.tries = Persistence(self.began + timeout, transport.chance, transport.pause)
        self.address = ""
        self.offered: list[str] = []
        self.host_key = ""

    @property
    def remaining(self) -> float:
        return self.tries.remaining

    def enter(self) -> ParamikoStream:
        try:
            self._refuse_detours()
            return self.tries.until_in(self._once, lambda: self.address)
        except FaultError as error:
            raised = fault.ElsewhereError if error.elsewhere else LoginFailedError
            raise raised(self._login(error.fault)) from None

    def _refuse_detours(self) -> None:
        """Go straight only where the configuration says straight: what stands at that address may be another host."""
        if detour := self.target.proxy_jump or self.target.proxy_command:
            why = f"{self.target.name} is behind a jump host ({detour}), where paramiko does not go"
            raise failed(Cause.TRANSPORT, why, "ncheck --transport openssh nodes.txt", elsewhere=True)

    def _once(self) -> ParamikoStream:
        sock, self.address = dial(self.target, self.remaining)
        known = self.transport.known_hosts(self.target)
        record = look_up(known, self.target.host_name, self.target.port, self.target.host_key_alias)
        link = Link(sock, record.key_types)
        link.wire.deadline = self.tries.deadline
        try:
            self._shake_hands(link)
            self._verify(link, record, known)
            log_in(link, self.target, self.transport.keyring.for_target(self.target), self)
            return self._start(link)
        except BaseException:
            link.close()
            if not link.is_alive():  # its thread never ran, and gives nothing back
                sock.close()
            raise

    def _verify(self, link: Link, record: HostRecord, known: KnownHosts) -> None:
        try:
            key = link.get_remote_server_key()
        except paramiko.SSHException:
            raise DroppedError(fault.Fault(Cause.OVERLOADED, "closed in the key exchange")) from None
        self.host_key = f"{key.get_name()} {fingerprint(key.asbytes())}"
        if verify(key, record, self.target, accept_new=self.transport.accept_new_host_keys):
            known.learn(self.target.known_as, key.get_name(), key.asbytes())

    def _shake_hands(self, link: Link) -> None:
        done = threading.Event()
        try:
            link.start_client(event=done)
        except RuntimeError as error:
            raise failed(Cause.TRANSPORT, f"this machine cannot start another thread: {error}", "ulimit -u") from None
        done.wait(self.remaining + 1)
        if not (done.is_set() and link.is_active()):
            raise self._no_handshake(link, link.get_exception())

    def _no_handshake(self, link: Link, error: Exception | None) -> FaultError:
        """Say why there was no key exchange, from how far it came."""
        heard = link.wire.heard
        if not heard.banner:
            return self._no_banner(heard, timed_out=link.wire.timed_out)
        if link.wire.timed_out:
            return FaultError(fault.stalled(self.address, "in the key exchange", self.timeout))
        if isinstance(error, IncompatiblePeer):
            return failed(Cause.TRANSPORT, f"paramiko and the server have nothing in common: {error}",
                          fault.by_hand(self.target, "-v"), elsewhere=True)  # fmt: skip
        if heard.parting:
            return failed(Cause.TRANSPORT, f"the server ended the key exchange: {heard.parting}",
                          fault.by_hand(self.target, "-v"), elsewhere=True)  # fmt: skip
        if isinstance(error, (EOFError, OSError)) or error is None:
            return DroppedError(fault.Fault(Cause.OVERLOADED, "closed in the key exchange"))
        return failed(Cause.TRANSPORT, f"the key exchange failed: {error}", fault.by_hand(self.target, "-v"))

    def _no_banner(self, heard: Heard, *, timed_out: bool) -> FaultError:
        said = heard.before_banner.decode(errors="replace").strip()[:120]
        if said.startswith(fault.NO_ROOM):
            return DroppedError(fault.Fault(Cause.OVERLOADED, f"it said {said!r}"))
        if said:
            return FaultError(fault.not_ssh(self.target, said))
        if timed_out:
            return FaultError(fault.silent(self.target, self.address, self.timeout))
        return DroppedError(fault.Fault(Cause.OVERLOADED, "closed before its banner"))

    def _start(self, link: Link) -> ParamikoStream:
        try:
            channel = link.open_session(timeout=self.remaining)
            channel.exec_command(REMOTE_COMMAND)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._no_session(link, error) from None
        link.wire.deadline = None
        return ParamikoStream(link, channel, self._login(None))

    def _no_session(self, link: Link, error: Exception) -> FaultError:
        if link.wire.timed_out:
            return FaultError(fault.stalled(self.address, "after the login", self.timeout))
        if not link.is_active():
            why = link.wire.heard.parting or "it gave no reason"
            return failed(Cause.CLOSED, f"the server closed the connection right after the login: {why}",
                          fault.by_hand(self.target, "-v"))  # fmt: skip
        return failed(Cause.NO_SHELL, f"logged in, and no command can be started: {error}",
                      fault.by_hand(self.target, "-v"))  # fmt: skip

    def _login(self, cause: fault.Fault | None) -> Login:
        return Login(
            reached=cause is None,
            cause=cause.cause if cause else None,
            detail=printable(cause.detail, 1000) if cause else "",
            transport=ParamikoTransport.name,
            address=self.address,
            port=self.target.port,
            user=self.target.user,
            attempts=self.tries.attempts,
            seconds=time.monotonic() - self.began,
            offered_keys=tuple(self.offered),
            host_key=self.host_key,
            fix=cause.fix if cause else "",
        )
