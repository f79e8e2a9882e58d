"""An SSH client by the ssh program: for jump hosts, GSSAPI, host certificates, security keys and open masters.

`ssh -v` prints how far a login came, with which keys, and why it failed: its log is read here.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh import failures
from ncheck.ssh.child import ChildStream, NotStartedError, start
from ncheck.ssh.config import SshConfig
from ncheck.ssh.failures import DroppedError, FailureError, LoginFailure, Retries, cause_of, failed, main_line
from ncheck.ssh.known_hosts import line_at
from ncheck.ssh.login import ListedHost, LoginCause, LoginFailedError, LoginRecord
from ncheck.ssh.public_keys import described, read_public, type_of
from ncheck.ssh.target import SshTarget

# The options for every host. BatchMode: never ask. UpdateHostKeys, ControlMaster, CheckHostIP (which adds
# addresses to known_hosts before 8.5): write nothing, leave nothing behind; an open master is used.
# IgnoreUnknown: ssh before 8.7 lacks the names after it.
FIXED = (
    "-T", "-v", "-oBatchMode=yes", "-oUpdateHostKeys=no", "-oControlMaster=no", "-oCheckHostIP=no",
    "-oClearAllForwardings=yes",
    "-oForwardAgent=no", "-oForwardX11=no", "-oPermitLocalCommand=no", "-oRemoteCommand=none", "-oTunnel=no",
    "-oEscapeChar=none", "-oServerAliveInterval=5", "-oServerAliveCountMax=3", "-oConnectionAttempts=1",
    "-oIgnoreUnknown=StdinNull,ForkAfterAuthentication,SessionType",
    "-oStdinNull=no", "-oForkAfterAuthentication=no", "-oSessionType=default",
)  # fmt: skip

ACCEPT_NEW = ("no", "off", "accept-new")


class OpenSshStream(ChildStream):
    """The pipes of one ssh. Its own log lines on standard error are removed."""

    record = LoginRecord("openssh")


class OpenSshClient:
    """Starts one ssh for each connection, in its own process group and with its own deadline."""

    def __init__(self, command: str, config: SshConfig, environ: Mapping[str, str]) -> None:
        self.command, self.config = command, config
        self.environ = {**environ, "LC_ALL": "C"}

    def connect(self, host: ListedHost, target: SshTarget, timeout: float) -> OpenSshStream:
        """Log in and start the command. Raises LoginFailedError."""
        return _Attempt(self, host, target, timeout).stream()

    def argv(self, host: ListedHost, target: SshTarget, timeout: float) -> list[str]:
        """Return the whole command line. The host's name follows `--`, so that it can never be read as an option."""
        checking = [] if target.strict in ACCEPT_NEW else ["-oStrictHostKeyChecking=yes"]
        if self.config.options.accept_new_host_keys:
            checking = ["-oStrictHostKeyChecking=accept-new"]
        limit = f"-oConnectTimeout={max(1, math.ceil(timeout))}"
        ssh = [*self._time_limit(timeout), "ssh", *FIXED, *checking, limit]
        return [*ssh, *self.config.ssh_arguments(host), self.command]

    def _time_limit(self, timeout: float) -> list[str]:
        """Return what ends ssh if this process is killed: in a key exchange that stalls, it would wait for ever."""
        longest = math.ceil(self.config.options.longest + timeout)
        return ["timeout", "-s", "KILL", str(longest)] if shutil.which("timeout", path=self.environ.get("PATH")) else []


class _Attempt:
    """One login, with its log so far. The server may drop it a few times."""

    def __init__(self, client: OpenSshClient, host: ListedHost, target: SshTarget, timeout: float) -> None:
        self.client, self.host, self.target, self.timeout = client, host, target, timeout
        self.began = time.monotonic()
        self.retries = Retries(self.began + timeout)
        self.log = SshLog("", target)

    def stream(self) -> OpenSshStream:
        try:
            return self.retries.run(self._once, lambda: self.log.dropped_by)
        except FailureError as error:
            failure = error.failure
            raise LoginFailedError(failure.cause, failure.detail, failure.fix, self._record()) from None

    def _once(self) -> OpenSshStream:
        argv = self.client.argv(self.host, self.target, self.retries.remaining)
        try:
            stream = OpenSshStream(start(argv, self.client.environ), without_log, connection_broke)
        except NotStartedError as error:
            raise failed(LoginCause.TRANSPORT, error.detail, error.fix) from None
        try:
            self._watch(stream)
        except BaseException:
            stream.close()
            raise
        stream.record = self._record()
        return stream

    def _watch(self, stream: OpenSshStream) -> None:
        ended = stream.watch(self._started, self.retries.deadline)
        self.log = SshLog(stream.log, self.target)
        if not self.log.started:
            raise failure(self.log, self.timeout, timed_out=not ended)

    def _started(self, log: str) -> bool:
        return SshLog(log, self.target).started

    def _record(self) -> LoginRecord:
        return LoginRecord(
            transport="openssh",
            address=self.log.address,
            port=self.target.port,
            user=self.target.user,
            attempts=self.retries.attempts,
            seconds=time.monotonic() - self.began,
            offered_keys=self.log.offered,
            host_key=self.log.host_key,
            host_key_warning=self.log.host_key_warning if self.log.started else "",
        )


# client_loop: send disconnect: Broken pipe    |    Timeout, server 10.0.0.7 not responding.
_BROKEN = ("Connection reset", "closed by remote host", "Broken pipe", "not responding", "Connection to ", "timed out")


def connection_broke(messages: str) -> bool:
    """Tell from ssh's messages whether the connection broke, where its exit status is 255."""
    return any(words in messages for words in _BROKEN)


# debug1: Connecting to node07 [10.0.0.7] port 22.
# A server's banner is printed among these lines, and may look like one: what is no address is not taken.
_ADDRESS = re.compile(r"^debug1: Connecting to \S+ \[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\] port", re.MULTILINE)

# debug1: Server host key: ssh-ed25519 SHA256:J/glO1XKZI31IWzKMGQjOssdr4tQFGrCD3AXMLHQHck
_HOST_KEY = re.compile(r"^debug1: Server host key: (\S+ \S+)", re.MULTILINE)

# debug1: Offering public key: /root/.ssh/id_ed25519 ED25519 SHA256:uwA1ClT5jaMBmW8EOMm2kj explicit
_OFFERED = re.compile(r"^debug1: Offering public key: (.+?) (\S+) (SHA256:\S+)(.*)$", re.MULTILINE)

# debug1: kex_input_ext_info: server-sig-algs=<ssh-ed25519,rsa-sha2-256,rsa-sha2-512>
_ACCEPTED = re.compile(r"^debug1: kex_input_ext_info: server-sig-algs=<([^>]*)>", re.MULTILINE)

# Offending ECDSA key in /root/.ssh/known_hosts:12
_OFFENDING = re.compile(r"^Offending \S+ key in (.+):(\d{1,9})\s*$", re.MULTILINE)

# channel 0: open failed: connect failed: Connection refused
_FORWARDING = re.compile(r"open failed: (?:connect failed: |administratively prohibited: )?(.+)")

# debug1: kex_exchange_identification: banner line 0: HTTP/1.1 400 Bad Request
_IN_PLACE_OF_BANNER = re.compile(r"kex_exchange_identification: banner line \d+: (.*)")

# OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026
_LOG_LINES = re.compile(
    r"^(?:debug\d: |OpenSSH_\S.*, |Authenticated to \S+ |Transferred: sent |Bytes per second: sent ).*\n?",
    re.MULTILINE,
)

# debug1: Sending command: exec /bin/sh ...      (the connection is ours)
# debug1: mux_client_request_session: master session id: 2      (it is that of a master)
_STARTED = re.compile(r"^debug1: (?:Sending command: |mux_client_request_session: master session id)", re.MULTILINE)

# kex_exchange_identification: Connection closed by remote host
_DROPPED = re.compile(r"^(?:kex|ssh)_exchange_identification: .*(?:closed|reset)", re.MULTILINE)

# Connection closed by UNKNOWN port 65535      (what a client behind a jump host says after the line above)
_DROP_LINES = re.compile(r"(?:kex|ssh)_exchange_identification: |Connection (?:closed|reset) by ")

_FORWARDED = (
    ("refused", LoginCause.REFUSED), ("timed out", LoginCause.FILTERED), ("no route", LoginCause.UNROUTABLE),
    ("unreachable", LoginCause.UNROUTABLE), ("not known", LoginCause.NAME_UNKNOWN),
    ("name resolution", LoginCause.NAME_UNKNOWN),
)  # fmt: skip


@dataclass(frozen=True)
class SshLog:
    """The text of ssh's standard error with -v; that of a jump host's ssh is mixed in."""

    text: str
    target: SshTarget

    @property
    def started(self) -> bool:
        """Whether the login worked and the command was sent."""
        return bool(_STARTED.search(self.text))

    @property
    def address(self) -> str:
        found = _ADDRESS.findall(self.text)
        return found[-1] if found and not self.proxied else ""

    @property
    def host_key(self) -> str:
        found = _HOST_KEY.findall(self.text)
        return found[-1] if found else ""

    @property
    def host_key_warning(self) -> str:
        """Why the host's key should not be trusted, where ssh only warns (StrictHostKeyChecking no)."""
        cause = cause_of(self.messages)
        untrusted = cause in (LoginCause.HOST_KEY_CHANGED, LoginCause.HOST_KEY_REVOKED)
        return _detail(self, cause, "") if cause and untrusted else ""

    @property
    def offered(self) -> tuple[str, ...]:
        keys = (f"{kind} {print_} {path}{' (agent)' if 'agent' in rest.split() else ''}"
                for path, kind, print_, rest in _OFFERED.findall(self.text))  # fmt: skip
        return tuple(dict.fromkeys(keys))

    @property
    def offered_files(self) -> tuple[str, ...]:
        """The files with what was offered. ssh names the key of a certificate, without the ending of its file."""
        found = [(path, kind) for path, kind, _, _ in _OFFERED.findall(self.text)]
        return tuple(f"{path.removesuffix('-cert')}{'-cert' if 'CERT' in kind else ''}.pub" for path, kind in found)

    @property
    def proxied(self) -> bool:
        return bool(self.target.proxy_jump or self.target.proxy_command)

    @property
    def messages(self) -> str:
        """The text without the lines of -v: ssh's messages, the server's, and the remote standard error."""
        return without_log(self.text)

    @property
    def reached_server(self) -> bool:
        """Whether the host's own SSH server, not only a jump host's, sent its banner."""
        if self.proxied:
            return f"Authenticating to {self.target.host_name}:{self.target.port} " in self.text
        return "Remote protocol version" in self.text

    @property
    def dropped_by(self) -> str:
        """The server that dropped the connection: through a jump host, each ssh on the way says so of its own."""
        if self.proxied and len(_DROPPED.findall(self.messages)) > 1:
            return f"the jump host ({self.target.proxy_jump or 'ProxyCommand'})"
        return self.address or self.target.host_name

    @property
    def only_dropped(self) -> bool:
        """Whether nothing but a dropped connection is complained of: a jump host that fails otherwise says more."""
        return bool(_DROPPED.search(self.messages)) and not self.before_the_drop

    @property
    def before_the_drop(self) -> str:
        """What is said besides that the connection was dropped: a ProxyCommand's own words, or its shell's."""
        lines = self.messages.splitlines()
        return "\n".join(line for line in lines if line.strip() and not _DROP_LINES.match(line))


def without_log(text: str) -> str:
    return _LOG_LINES.sub("", text)


def failure(log: SshLog, seconds: float, *, timed_out: bool) -> FailureError:
    """Return why the login failed. A DroppedError is worth another attempt."""
    answer = _IN_PLACE_OF_BANNER.search(log.text)
    if answer and not answer.group(1).startswith(failures.SERVER_FULL):
        return FailureError(failures.not_ssh(log.target, answer.group(1).strip()))
    if timed_out:
        return FailureError(_timed_out(log, seconds))
    if answer:
        return DroppedError(LoginFailure(LoginCause.OVERLOADED, f"it answered {answer.group(1).strip()[:120]!r}"))
    if log.proxied and not log.reached_server and not log.only_dropped:
        return FailureError(_proxy_failure(log))
    cause = cause_of(log.messages)
    dropped = cause is LoginCause.OVERLOADED or (
        cause is LoginCause.CLOSED and "SSH2_MSG_NEWKEYS received" not in log.text
    )
    if dropped:
        return DroppedError(LoginFailure(LoginCause.OVERLOADED, _line(log)))
    if cause is LoginCause.AUTH_REFUSED and "with partial success" in log.text:
        cause = LoginCause.PERSON_WANTED
    return FailureError(_failure_of(log, cause or LoginCause.TRANSPORT, seconds))


def _timed_out(log: SshLog, seconds: float) -> LoginFailure:
    if not log.reached_server:
        connected = "Connection established" in log.text and not log.proxied
        slow = failures.silent if connected else failures.filtered
        return slow(log.target, log.address or log.target.host_name, seconds)
    stage = "in the key exchange" if "SSH2_MSG_NEWKEYS received" not in log.text else "during the login"
    return failures.stalled(log.address or log.target.host_name, stage, seconds)


def _proxy_failure(log: SshLog) -> LoginFailure:
    """Return the failure of a host that the jump host cannot reach, or of the jump host itself."""
    if forwarding := _FORWARDING.search(log.messages):
        why = forwarding.group(1)
        cause = next((cause for words, cause in _FORWARDED if words in why.lower()), LoginCause.TRANSPORT)
        detail = f"the jump host cannot reach {log.target.host_name} port {log.target.port}: {why}"
        return LoginFailure(cause, detail, failures.by_hand(log.target, "-v"))
    by = f"ProxyJump {log.target.proxy_jump}" if log.target.proxy_jump else "ProxyCommand"
    line = main_line(log.before_the_drop)[:400] or _line(log)
    return LoginFailure(LoginCause.TRANSPORT, f"{by} does not work: {line}", failures.by_hand(log.target, "-v"))


def _failure_of(log: SshLog, cause: LoginCause, seconds: float) -> LoginFailure:
    """Return the failure of this cause, in the words that both clients share where there are such."""
    target, address, line = log.target, log.address or log.target.host_name, _line(log)
    why = line.rpartition(": ")[2]
    same: dict[LoginCause, Callable[[], LoginFailure]] = {
        LoginCause.REFUSED: lambda: failures.refused(target, address),
        LoginCause.FILTERED: lambda: failures.filtered(target, address, seconds),
        LoginCause.UNROUTABLE: lambda: failures.unroutable(target, address, why),
        LoginCause.NAME_UNKNOWN: lambda: failures.name_unknown(target, why),
        LoginCause.SILENT: lambda: failures.silent(target, address, seconds),
        LoginCause.STALLED: lambda: failures.stalled(address, "in the key exchange", seconds),
        LoginCause.NOT_SSH: lambda: failures.not_ssh(target, line),
        LoginCause.HOST_KEY_REVOKED: lambda: failures.key_revoked(target, log.host_key, ""),
        LoginCause.AUTH_REFUSED: lambda: _refused(log, line),
    }
    return same[cause]() if cause in same else LoginFailure(cause, _detail(log, cause, line), _fix(log, cause))


def _detail(log: SshLog, cause: LoginCause, line: str) -> str:
    name, key = log.target.known_as, log.host_key
    if cause is LoginCause.HOST_KEY_UNKNOWN:
        return f"the host key of {name} is in no known_hosts file: the host presents {key}"
    if cause is LoginCause.HOST_KEY_CHANGED:
        return failures.key_changed(log.target, key, *_known_key(log)).detail
    if cause is LoginCause.HOST_KEY_REVOKED:
        return failures.key_revoked(log.target, key, "").detail
    return line


def _refused(log: SshLog, line: str) -> LoginFailure:
    """Return why the user's keys were refused, as far as the log and the files of the keys show it."""
    target, files, accepted = log.target, log.offered_files, _ACCEPTED.findall(log.text)
    blobs = [(path, blob) for path in files if (blob := read_public(Path(path))) is not None]
    kinds = [type_of(blob) for _, blob in blobs]
    every = len(blobs) == len(files) and bool(accepted)
    if failure := failures.key_type_refused(target, kinds, accepted[-1] if every else ""):
        return failure
    for path, blob in blobs:
        if failure := failures.certificate_out_of_date(blob, shlex.quote(path), time.time()):
            return failure
    if not log.offered:
        return LoginFailure(
            LoginCause.AUTH_REFUSED, f"{line}; there was no key to offer", failures.to_have_a_key(target)
        )
    detail = f"{line}; offered: {', '.join(log.offered)}; {failures.WHY_NO_KEY}"
    return LoginFailure(LoginCause.AUTH_REFUSED, detail, f"ssh-copy-id {failures.destination(target)}")


def _known_key(log: SshLog) -> tuple[str, str]:
    """Return what known_hosts has in place of the key that was presented, and the file."""
    offending = _OFFENDING.search(log.text)
    if not offending:
        return "known_hosts has another key", ""
    file, number = offending[1], int(offending[2])
    line = line_at(file, number)
    return f"{file}:{number} has {described(line.key) if line and line.key else 'another'}", file


def _fix(log: SshLog, cause: LoginCause) -> str:
    target = log.target
    first = shlex.quote(next(iter(target.identity_files), "~/.ssh/id_ed25519"))
    lines = {
        LoginCause.HOST_KEY_UNKNOWN: failures.by_hand(target, "-o StrictHostKeyChecking=ask"),
        LoginCause.HOST_KEY_CHANGED: failures.SHOW_HOST_KEYS,
        LoginCause.SLURM_JOB_WANTED: f"salloc -w {shlex.quote(target.name)}",
        LoginCause.TOO_MANY_KEYS: failures.by_hand(target, "-o IdentitiesOnly=yes", f"-i {first}"),
        LoginCause.PERSON_WANTED: failures.by_hand(target),
    }
    return lines.get(cause, failures.by_hand(target, "-v"))


def _line(log: SshLog) -> str:
    return main_line(log.messages)[:400] or "ssh ended without a message"
