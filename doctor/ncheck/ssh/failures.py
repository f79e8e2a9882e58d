"""Why a login failed: its cause, a sentence about it, and a command line for this very node.

The sentences are the same whichever client logs in. `cause_of` reads the cause from what the ssh program prints, in
OpenSSH's own words (7.4 to 9.x, LC_ALL=C); its exit status is 255 for all of them.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import struct
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh.algorithms import signatures_of
from ncheck.ssh.login import LoginCause
from ncheck.ssh.public_keys import described, validity
from ncheck.ssh.target import SSH_PORT, SshTarget

T = TypeVar("T")

# What newer releases of OpenSSH send instead of the banner when they are full, or refuse this client for a while
# (PerSourcePenalties); older ones send nothing.
_FULL, _PENALTY = "Exceeded MaxStartups", "Not allowed at this time"
SERVER_FULL = (_FULL, _PENALTY)
RESTART_SSH = "sudo systemctl restart ssh || sudo systemctl restart sshd"  # Debian's unit; that of Red Hat and SUSE
NEW_HOST_KEYS = f"sudo rm /etc/ssh/ssh_host_*_key* && sudo ssh-keygen -A && ({RESTART_SSH})"

# A server does not tell which of these it is.
WHY_NO_KEY = (
    "none is in authorized_keys there, sshd accepts no key of this type (PubkeyAcceptedAlgorithms), or the account "
    "does not exist there: the log of sshd on the node says which"
)
SHOW_HOST_KEYS = "cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -"
MAKE_KEY = "ssh-keygen -t ed25519; "  # before what installs it: on several nodes, it is made once
USE_KEY = "name a key that is in authorized_keys there, with -i"  # a sentence


@dataclass(frozen=True)
class LoginFailure:
    """One failure; `detail` is one line, `fix` a command line or empty."""

    cause: LoginCause
    detail: str
    fix: str = ""


class FailureError(Exception):
    """Raised while a client logs in; what leaves the client is LoginFailedError.

    `openssh_may_work`: the ssh program has what was missing (a common algorithm, host certificates, a jump host).
    `address` is what was connected to, where that is known here.
    """

    def __init__(self, failure: LoginFailure, *, openssh_may_work: bool = False, address: str = "") -> None:
        super().__init__(failure.detail)
        self.failure = failure
        self.address = address
        self.openssh_may_work = openssh_may_work


class DroppedError(FailureError):
    """The server closed the connection before the login: worth another try, since MaxStartups drops at random."""


def failed(cause: LoginCause, detail: str, fix: str = "", *, openssh_may_work: bool = False) -> FailureError:
    return FailureError(LoginFailure(cause, detail, fix), openssh_may_work=openssh_may_work)


def destination(target: SshTarget) -> str:
    """Return what follows ssh on a command line: "-p 10001 root@node07"."""
    port = f"-p {target.port} " if target.port != SSH_PORT else ""
    login = f"{target.user}@{target.name}" if target.user else target.name
    return port + shlex.quote(login)


def to_have_a_key(target: SshTarget) -> str:
    """Return the line that makes a key and installs it, where there is none; or that names another one."""
    made = os.path.expanduser("~/.ssh/id_ed25519")  # noqa: PTH111  as the paths of the configuration are
    if made not in target.identity_files or any(map(os.path.exists, target.identity_files)):
        return USE_KEY
    return f"{MAKE_KEY}ssh-copy-id {destination(target)}"


def certificate_out_of_date(certificate: bytes, shown_path: str, now: float) -> LoginFailure | None:
    """Return the failure where a certificate that was offered is no longer valid, or not yet; None where it is."""
    try:
        after, until = validity(certificate)
    except (ValueError, struct.error):
        return None
    if after <= now < until:
        return None
    what = f"expired at {_utc(until)}" if now >= until else f"is valid only from {_utc(after)} on"
    where = shown_path or "in the agent"
    look = f"ssh-keygen -L -f {shown_path}" if shown_path else "ssh-add -L | ssh-keygen -L -f -"
    detail = f"the certificate {described(certificate)} {where} {what}; it is {_utc(int(now))} on this machine"
    return LoginFailure(LoginCause.CERTIFICATE_EXPIRED, detail, look)


def _utc(seconds: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "no time"


def key_type_refused(target: SshTarget, kinds: Iterable[str], accepted: str) -> LoginFailure | None:
    """Return the failure where a server accepts none of these types of keys, by its own list (server-sig-algs); None
    where it accepts one, or does not say. Older releases of OpenSSH, such as 9.2, list all that they know.
    """
    names = frozenset(accepted.split(","))
    signing = {name for kind in kinds for name in signatures_of(kind)}
    if not accepted or not signing or names & signing:
        return None
    detail = f"sshd accepts no key of the types that were offered; it accepts {', '.join(accepted.split(',')[:_SHOWN])}"
    made = (("ed25519", "ssh-ed25519"), ("ecdsa", "ecdsa-sha2-nistp256"), ("rsa -b 4096", "rsa-sha2-512"))
    kind = next((kind for kind, name in made if name in names), "")
    if not kind:
        return LoginFailure(LoginCause.KEY_TYPE_REFUSED, detail, by_hand(target, "-v"))
    path = f"~/.ssh/id_{kind.partition(' ')[0]}"
    make = "" if os.path.exists(os.path.expanduser(path)) else f"ssh-keygen -t {kind}; "  # noqa: PTH110, PTH111
    return LoginFailure(LoginCause.KEY_TYPE_REFUSED, detail, f"{make}ssh-copy-id -i {path}.pub {destination(target)}")


_SHOWN = 8  # names of algorithms


def by_hand(target: SshTarget, *options: str) -> str:
    """Return the line that repeats the login by hand: "ssh -v -p 10001 root@node07"."""
    config = (f"-F {shlex.quote(target.config_file)}",) if target.config_file else ()
    identity = (
        (f"-i {shlex.quote(target.identity)}",)
        if target.identity and not any(one.startswith("-i ") for one in options)
        else ()
    )
    return " ".join(("ssh", *config, *identity, *options, destination(target)))


def key_changed(target: SshTarget, presented: str, known: str, file: str) -> LoginFailure:
    """Say that a host presents another key than `known`, which names its place. To compare comes first: who removes the
    old key at once trusts whatever machine answers.
    """
    remove = f"ssh-keygen -f {shlex.quote(file)} -R {shlex.quote(target.known_as)}" if file else "ssh-keygen -R"
    detail = (
        f"the host key of {target.known_as} changed: it presents {presented}, {known}. The node was reinstalled, or "
        f"another machine answers: compare on its console. Only if it shows the key that it presents, type: {remove}"
    )
    return LoginFailure(LoginCause.HOST_KEY_CHANGED, detail, SHOW_HOST_KEYS)


def key_revoked(target: SshTarget, presented: str, place: str) -> LoginFailure:
    """Say that a host's key is revoked, and what this machine forgets and learns once there is a new one: without that
    the new key looks like a change.
    """
    where = f" in {place}" if place else ""
    file = shlex.quote(next(iter(target.known_hosts_files), "~/.ssh/known_hosts"))
    port = f"-p {target.port} " if target.port != SSH_PORT else ""
    forget = f"ssh-keygen -f {file} -R {shlex.quote(target.known_as)}"
    learn = f"ssh-keyscan {port}{shlex.quote(target.host_name)} >> {file}"
    detail = (
        f"the host key of {target.known_as} is marked @revoked{where}: {presented}. It needs new host keys. Once it "
        f"has them, type on this machine: {forget}; {learn}"
    )
    return LoginFailure(LoginCause.HOST_KEY_REVOKED, detail, NEW_HOST_KEYS)


def name_unknown(target: SshTarget, why: str) -> LoginFailure:
    same = target.host_name.lower() == target.name.lower()  # ssh asks for the name in lower case
    via = "" if same else f" (HostName of {target.name})"
    name = target.name if same else target.host_name
    meant = _meant(target.host_name.lower(), _names_here(target.known_hosts_files[:1]))
    hint = f"; did you mean {meant}?" if meant else ""
    detail = f"the name {name}{via} does not resolve on this machine: {why}{hint}"
    return LoginFailure(LoginCause.NAME_UNKNOWN, detail, f"getent hosts {shlex.quote(target.host_name)}")


def _meant(name: str, known: Iterable[str]) -> str:
    """Return a known name of which this one is a slip: a letter that looks like a digit, or letters astray. Another
    number is another node.
    """
    from difflib import get_close_matches

    by_look = {one.translate(_LOOKS_LIKE): one for one in known if one != name}
    if found := by_look.get(name.translate(_LOOKS_LIKE)):
        return found
    alike = [one for one in by_look.values() if _DIGITS.sub("", one) == _DIGITS.sub("", name)]
    return next(iter(get_close_matches(name, alike, n=1, cutoff=0.7)), "")


_LOOKS_LIKE = str.maketrans("oli", "011")
_DIGITS = re.compile(r"\D")  # all else


@lru_cache(maxsize=4)
def _names_here(files: tuple[str, ...]) -> tuple[str, ...]:
    """Return the host names that /etc/hosts and known_hosts files have in clear."""
    names: dict[str, None] = {}
    for file in ("/etc/hosts", *files):
        try:
            text = Path(file).read_bytes()[:_MOST_READ].decode("utf-8", "replace")
        except OSError:
            continue
        for line in text.lower().splitlines():
            fields = line.partition("#")[0].split()
            found = fields[1:] if file == "/etc/hosts" else fields[:1] and fields[0].split(",")
            names |= dict.fromkeys(name for name in found if _NAME.fullmatch(name))
    return tuple(names)


_MOST_READ = 4 * 2**20  # bytes
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,252}")  # gpu-07.rack2.example.com


def refused(target: SshTarget, address: str) -> LoginFailure:
    detail = f"{address} refuses connections on port {target.port}: no SSH server listens there"
    return LoginFailure(LoginCause.REFUSED, detail, RESTART_SSH)


def way_to(address: str, port: int) -> str:
    """Return the look at where packets go: a stale static route shows in the first part, a firewall in the second."""
    return f"ip route get {address}; sudo traceroute -T -p {port} {address}"


def filtered(target: SshTarget, address: str, seconds: float) -> LoginFailure:
    why = "packets are dropped, or the node is down"
    detail = f"{address} port {target.port} did not answer within {seconds:.0f} s: {why}"
    return LoginFailure(LoginCause.FILTERED, detail, way_to(address, target.port))


def unroutable(target: SshTarget, address: str, why: str) -> LoginFailure:
    detail = f"cannot reach {address} port {target.port}: {why}"
    return LoginFailure(LoginCause.UNROUTABLE, detail, f"ip route get {address}")


def silent(target: SshTarget, address: str, seconds: float) -> LoginFailure:
    detail = (
        f"{address} port {target.port} accepts connections but sends nothing for {seconds:.0f} s: "
        "its SSH server is frozen, or the node hangs"
    )
    return LoginFailure(LoginCause.SILENT, detail, RESTART_SSH)


def stalled(address: str, stage: str, seconds: float) -> LoginFailure:
    detail = (
        f"the SSH server at {address} answered, then stopped {stage} ({seconds:.0f} s): "
        "large packets are lost on the way (path MTU), or the node hangs"
    )
    return LoginFailure(LoginCause.STALLED, detail, f"ping -M do -s 1472 -c 3 {address}")


def overloaded(server: str, attempts: int, why: str) -> LoginFailure:
    """Say why a server dropped every attempt before the login. `why` holds the server's own words, if it had any."""
    times = "once" if attempts == 1 else f"{attempts} times"
    if _PENALTY in why:
        meaning = "it refuses this client for a while because earlier connections failed (PerSourcePenalties)"
    elif _FULL in why:
        meaning = "it has as many connections without a login as it accepts (MaxStartups)"
    else:
        meaning = (
            "it does not say why: it lacks open files, processes or memory, refuses this client (hosts.deny), or, if "
            "it is an older release, has as many connections without a login as it accepts (MaxStartups)"
        )
    detail = f"the SSH server at {server} is up, and dropped the connection before the login {times} ({why}): {meaning}"
    return LoginFailure(LoginCause.OVERLOADED, detail, "sudo journalctl -u ssh -u sshd -n 50 --no-pager")


def not_ssh(target: SshTarget, answer: str) -> LoginFailure:
    detail = f"port {target.port} of {target.host_name} is not an SSH server: it answered {answer!r}"
    return LoginFailure(LoginCause.NOT_SSH, detail, f"nc -v {shlex.quote(target.host_name)} {target.port}")


# The first row that matches decides, so a row that explains more comes before one that only follows from it. Nothing in
# a pattern is without a bound: a hostile server writes part of the text.
_MESSAGES: tuple[tuple[LoginCause, str], ...] = (
    # Access denied by pam_slurm_adopt: you have no active jobs on this node
    (LoginCause.SLURM_JOB_WANTED, r"pam_slurm_adopt|you have no active jobs on this node"),
    # @       WARNING: REVOKED HOST KEY DETECTED!               @
    (LoginCause.HOST_KEY_REVOKED, r"REVOKED HOST KEY|host key .{0,300} revoked|Host key .{0,300} is revoked"),
    # @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
    (LoginCause.HOST_KEY_CHANGED, r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .{0,300} has changed"),
    # No ED25519 host key is known for [127.0.0.1]:10001 and you have requested strict checking.
    (LoginCause.HOST_KEY_UNKNOWN, r"host key is known for .{0,300} strict checking|Host key verification failed"),
    # Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures
    (LoginCause.TOO_MANY_KEYS, r"Too many authentication failures"),
    # WARNING: Your password has expired.
    (LoginCause.PERSON_WANTED, r"[Pp]assword (has )?expired|required to change your password|password change required"),
    # Permissions 0644 for '/root/.ssh/id_ed25519' are too open.      (and then: Permission denied)
    (LoginCause.TRANSPORT, r"UNPROTECTED PRIVATE KEY FILE|Permissions 0\d+ for .* are too open"),
    # root@10.0.0.1: Permission denied (keyboard-interactive).
    (LoginCause.PERSON_WANTED, r"Permission denied \((?:password,)?keyboard-interactive(?:,password)?\)"),
    # root@10.0.0.1: Permission denied (publickey,password).
    (LoginCause.AUTH_REFUSED, r"Permission denied \(|No supported authentication methods|Authentication failed"),
    # ssh: Could not resolve hostname nosuchhost: Name or service not known
    (LoginCause.NAME_UNKNOWN, r"Could not resolve hostname"),
    # ssh: connect to host 10.0.0.1 port 22: Connection refused
    (LoginCause.REFUSED, r"connect to (?:host|address) .{0,300}: Connection refused"),
    # Connection timed out during banner exchange
    (LoginCause.SILENT, r"timed out during banner exchange|Timeout, server .{0,300} not responding"),
    # Bad packet length 1349676916.  |  kex_exchange_identification: client sent invalid protocol identifier
    (LoginCause.NOT_SSH, r"Bad packet length|[Ii]nvalid (?:SSH )?(?:protocol )?identification"),
    (LoginCause.NOT_SSH, r"Protocol major versions differ"),
    (
        LoginCause.NOT_SSH,
        r"banner line contains invalid characters|no SSH identification|banner exchange: .{0,300}invalid format",
    ),
    # ssh: connect to host 10.0.0.1 port 22: Connection timed out
    (LoginCause.FILTERED, r"connect to (?:host|address) .{0,300}: (?:Connection|Operation) timed out"),
    # ssh: connect to host 10.0.0.1 port 22: No route to host    (a blackhole route: Invalid argument)
    (LoginCause.UNROUTABLE, r"No route to host|Network is unreachable|Host is (?:down|unreachable)"),
    (LoginCause.UNROUTABLE, r"connect to (?:host|address) .{0,300}: Invalid argument"),
    # Connection to 10.0.0.1 port 22 timed out   (the key exchange stopped)
    (
        LoginCause.STALLED,
        r"Connection to .{0,300} timed out|ssh_dispatch_run_fatal: .{0,300}(?:timed out|Connection timed out)",
    ),
    # kex_exchange_identification: read: Connection reset by peer      (MaxStartups drops)
    (LoginCause.OVERLOADED, r"kex_exchange_identification:|ssh_exchange_identification:|Exceeded MaxStartups"),
    # This account is currently not available.
    (LoginCause.NO_SHELL, r"This account is currently not available|/nologin|shell .{0,300} not executable"),
    # Connection reset by 10.0.0.1 port 22
    (
        LoginCause.CLOSED,
        r"Connection (?:reset|closed) by|Connection to .{0,300} closed|Broken pipe|Connection reset by peer",
    ),
    # Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa
    (LoginCause.TRANSPORT, r"Unable to negotiate|Bad configuration option|[Bb]ad owner or permissions|percent_expand"),
    # Cannot execute command-line and remote command.      (RemoteCommand is set)
    (LoginCause.TRANSPORT, r"Cannot execute command-line and remote command"),
    # /root/.ssh/config line 2: unsupported option "maybe".      (a remote shell writes "/root/.bashrc: line 2: ...")
    (LoginCause.TRANSPORT, r"(?m)^/[^:\n]+ line \d+: "),
)

MOST_LINES = 500  # of ssh's messages that are looked at one by one


def cause_of(stderr: str) -> LoginCause | None:
    """Return the cause that ssh's messages name; None where no known message is among them."""
    for cause, pattern in _MESSAGES:
        if re.search(pattern, stderr):
            return cause
    return None


def main_line(stderr: str) -> str:
    """Return the one line of ssh's messages to show: the one that names the cause, else the last with text."""
    lines = [line.strip() for line in stderr.splitlines()[-MOST_LINES:] if line.strip(" \t@")]
    cause = cause_of(stderr)
    for line in reversed(lines):
        if cause is not None and cause_of(line) is cause:
            return line.strip("@ \t")
    return lines[-1].strip("@ \t") if lines else ""


_OUT_OF_TIME = (LoginCause.FILTERED, LoginCause.SILENT, LoginCause.STALLED)
FIRST_PAUSE, LONGEST_PAUSE = 0.3, 3.0  # seconds; with less than the first left, there is no further attempt

# Seconds for a login. An attempt with less that runs out of time shows nothing, and a server that is full does not wait
# so long before it drops a connection.
ENOUGH = 5.0


class Retries:
    """Retries one login that the server drops (MaxStartups) until the deadline, with random pauses in between."""

    def __init__(
        self,
        deadline: float,
        chance: Callable[[], float] = random.random,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.deadline, self.chance, self.pause = deadline, chance, pause
        self.attempts = 1

    @property
    def remaining(self) -> float:
        """Seconds that are left, never quite zero."""
        return max(self.deadline - time.monotonic(), 0.001)

    def run(self, attempt: Callable[[], T], address: Callable[[], str]) -> T:
        """Return the result of the first attempt that is not dropped. Raises its FailureError, or OVERLOADED."""
        longest, dropped, at_once = FIRST_PAUSE, "", False
        while True:
            began = self.remaining
            try:
                return attempt()
            except DroppedError as error:
                dropped, at_once = error.failure.detail, began - self.remaining < ENOUGH
            except FailureError as error:
                if at_once and began < ENOUGH and error.failure.cause in _OUT_OF_TIME:
                    raise FailureError(overloaded(address(), self.attempts, dropped)) from None
                raise
            pause = longest * (0.5 + self.chance())
            if pause + FIRST_PAUSE >= self.remaining:
                raise FailureError(overloaded(address(), self.attempts, dropped))
            self.pause(pause)
            longest = min(2 * longest, LONGEST_PAUSE)
            self.attempts += 1
