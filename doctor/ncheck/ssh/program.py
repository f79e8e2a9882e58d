"""SSH by the ssh program itself: for jump hosts, GSSAPI, host certificates, security keys, live masters; and commands
that stand in for ssh (--rsh 'kubectl exec -i {node} --').
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ncheck.fleet.link import REMOTE_COMMAND, LoginFailedError
from ncheck.model.evidence import Cause, Login
from ncheck.model.node import Node
from ncheck.ssh.config import SshConfig
from ncheck.ssh.fault import Fault, FaultError, failed
from ncheck.ssh.persist import Persistence
from ncheck.ssh.process import Child
from ncheck.ssh.program_log import SshLog, failure
from ncheck.ssh.target import SshTarget
from ncheck.text import printable

# What is the same for every node. BatchMode: never ask. UpdateHostKeys, ControlMaster, CheckHostIP (which adds
# addresses to known_hosts before 8.5): write nothing, leave nothing behind; a master that is there is used.
# IgnoreUnknown: ssh before 8.7 lacks the names after it.
FIXED = (
    "-T", "-v", "-oBatchMode=yes", "-oUpdateHostKeys=no", "-oControlMaster=no", "-oCheckHostIP=no",
    "-oClearAllForwardings=yes",
    "-oForwardAgent=no", "-oForwardX11=no", "-oPermitLocalCommand=no", "-oRemoteCommand=none", "-oTunnel=no",
    "-oEscapeChar=none", "-oServerAliveInterval=5", "-oServerAliveCountMax=3", "-oConnectionAttempts=1",
    "-oIgnoreUnknown=StdinNull,ForkAfterAuthentication,SessionType",
    "-oStdinNull=no", "-oForkAfterAuthentication=no", "-oSessionType=default",
)  # fmt: skip


LENIENT = ("no", "off", "accept-new")


class OpenSshTransport:
    """Spawns one ssh a node, in its own process group and with its own deadline."""

    name = "openssh"

    def __init__(
        self,
        config: SshConfig,
        resolve: Callable[[Node], SshTarget],
        *,
        accept_new_host_keys: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.config, self.resolve = config, resolve
        self.accept_new_host_keys = accept_new_host_keys
        self.environ = {**environ, "LC_ALL": "C"}

    def connect(self, node: Node, timeout: float) -> Child:
        return _Way(self, node, self.resolve(node), timeout).enter()

    def argv(self, node: Node, target: SshTarget, timeout: float) -> list[str]:
        """Return the whole command line. The node's name follows `--`, so that it can never be read as an option."""
        checking = [] if target.strict in LENIENT else ["-oStrictHostKeyChecking=yes"]
        if self.accept_new_host_keys:
            checking = ["-oStrictHostKeyChecking=accept-new"]
        limit = f"-oConnectTimeout={max(1, math.ceil(timeout))}"
        ssh = [*self._leash(timeout), "ssh", *FIXED, *checking, limit]
        return [*ssh, *self.config.ssh_arguments(node), REMOTE_COMMAND]

    def _leash(self, timeout: float) -> list[str]:
        """Return what ends ssh should we be killed: in a key exchange that stalls, it would wait for ever."""
        longest = math.ceil(self.config.settings.deadline + timeout)
        return ["timeout", "-s", "KILL", str(longest)] if shutil.which("timeout", path=self.environ.get("PATH")) else []


class _Way:
    """One way into one node."""

    def __init__(self, transport: OpenSshTransport, node: Node, target: SshTarget, timeout: float) -> None:
        self.transport, self.node, self.target, self.timeout = transport, node, target, timeout
        self.began = time.monotonic()
        self.tries = Persistence(self.began + timeout)
        self.log = SshLog("", target)

    def enter(self) -> Child:
        try:
            return self.tries.until_in(self._once, lambda: self.log.address or self.target.host_name)
        except FaultError as error:
            raise LoginFailedError(self._login(error.fault)) from None

    def _once(self) -> Child:
        argv = self.transport.argv(self.node, self.target, self.tries.remaining)
        child = spawned(argv, self.transport.environ)
        try:
            self._watch(child)
        except BaseException:
            child.close()
            raise
        child.login = self._login(None)
        return child

    def _watch(self, child: Child) -> None:
        ended = child.watch(self._started, self.tries.deadline)
        self.log = SshLog(child.said, self.target)
        if not self.log.started:
            raise failure(self.log, self.timeout, timed_out=not ended)

    def _started(self, said: str) -> bool:
        return SshLog(said, self.target).started

    def _login(self, cause: Fault | None) -> Login:
        return Login(
            reached=cause is None,
            cause=cause.cause if cause else None,
            detail=printable(cause.detail, 1000) if cause else "",
            transport=OpenSshTransport.name,
            address=self.log.address,
            port=self.target.port,
            user=self.target.user,
            attempts=self.tries.attempts,
            seconds=time.monotonic() - self.began,
            offered_keys=self.log.offered,
            host_key=self.log.host_key,
            fix=cause.fix if cause else "",
        )


class RshTransport:
    """Runs a command of the user's in place of ssh. Its words are split as a shell would, and {node} is put into them
    afterwards, so that no name can become two words or a command.
    """

    name = "rsh"

    def __init__(self, command_of: Callable[[Node], str], environ: Mapping[str, str] = os.environ) -> None:
        self.command_of = command_of
        self.environ = dict(environ)

    def connect(self, node: Node, timeout: float) -> Child:  # noqa: ARG002  it says nothing before the shell does
        began = time.monotonic()
        try:
            child = spawned(self._checked(node), self.environ)
        except FaultError as error:
            raise LoginFailedError(self._login(began, error.fault)) from None
        child.login = replace(self._login(began, None), fix=shlex.join([*self._words(node), "true"]))
        return child

    def _checked(self, node: Node) -> list[str]:
        try:
            return self.argv(node)
        except ValueError as error:
            raise failed(Cause.TRANSPORT, f"--rsh {self.command_of(node)}: {error}", "ncheck --help") from None

    def argv(self, node: Node) -> list[str]:
        """Return the command line: the user's words, then a shell that goes on from its first line of input."""
        return [*self._words(node), *shlex.split(REMOTE_COMMAND.removeprefix("exec "))]

    def _words(self, node: Node) -> list[str]:
        return [word.replace("{node}", node.name) for word in shlex.split(self.command_of(node))]

    def _login(self, began: float, cause: Fault | None) -> Login:
        return Login(
            reached=cause is None,
            cause=cause.cause if cause else None,
            detail=printable(cause.detail, 1000) if cause else "",
            transport=self.name,
            seconds=time.monotonic() - began,
            fix=cause.fix if cause else "",
        )


def spawned(argv: Sequence[str], environ: Mapping[str, str]) -> Child:
    """Start a program in a process group of its own. Raises FaultError where it cannot be started."""
    program = shutil.which(argv[0], path=environ.get("PATH"))
    if program is None:
        raise failed(Cause.TRANSPORT, f"there is no {argv[0]} on PATH here", f"command -v {shlex.quote(argv[0])}")
    try:
        process = subprocess.Popen(
            [program, *argv[1:]], bufsize=0, env=dict(environ), start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise failed(Cause.TRANSPORT, f"{argv[0]} cannot be started here: {error}", "ulimit -a") from None
    return Child(process)
