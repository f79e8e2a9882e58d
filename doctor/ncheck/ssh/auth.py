"""The keys that are offered to a host, in OpenSSH's order, from files and from the agent; and the login with them."""

from __future__ import annotations

import shlex
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.pkey import PublicBlob, UnknownKeyType

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh import failures
from ncheck.ssh.algorithms import may_sign
from ncheck.ssh.failures import FailureError, LoginFailure, cause_of, failed
from ncheck.ssh.login import LoginCause
from ncheck.ssh.paramiko_internals import AgentKey, ConfiguredTransport, agent_keys
from ncheck.ssh.public_keys import CERTIFICATE, certifies, described, public_part, read_public, type_of
from ncheck.ssh.target import SshTarget


@dataclass(frozen=True)
class Identity:
    """One key to offer. `description` is "ED25519 SHA256:... ~/.ssh/id_ed25519"; `path` is "" for a key that only the
    agent has, `shown_path` is the same with ~ for the home folder.
    """

    key: paramiko.PKey
    description: str
    path: str = ""
    shown_path: str = ""

    @property
    def in_agent(self) -> bool:
        return isinstance(self.key, AgentKey)

    @property
    def blob(self) -> bytes:
        """What is offered: the public key, or its certificate."""
        blob = self.key.public_blob
        return blob.key_blob if blob else self.key.asbytes()

    @property
    def kind(self) -> str:
        """The type of what is offered: "ssh-ed25519", or that of its certificate."""
        return type_of(self.blob)


@dataclass(frozen=True)
class Identities:
    """The keys to offer, and the files that cannot be used, with the reason."""

    offers: tuple[Identity, ...]
    locked: tuple[str, ...] = ()  # protected by a passphrase, and in no agent
    unreadable: tuple[str, ...] = ()  # "~/.ssh/id_dsa: why"
    agent_error: str = ""  # why the agent gives no keys, "" when it does or there is none


class Keyring:
    """Loads keys once for all hosts; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: dict[object, Identities] = {}

    def for_target(self, target: SshTarget) -> Identities:
        """Return what OpenSSH would offer to this host, in its order."""
        wanted = (target.identity_files, target.certificate_files, target.identities_only, target.identity_agent)
        with self._lock:
            if wanted not in self._loaded:
                self._loaded[wanted] = load_identities(*wanted)
            return _accepted(self._loaded[wanted], target)


def _accepted(identities: Identities, target: SshTarget) -> Identities:
    """Leave out the keys that PubkeyAcceptedAlgorithms does, and name them."""
    wanted = target.algorithms
    kept = tuple(one for one in identities.offers if may_sign(one.kind, wanted))
    if len(kept) == len(identities.offers):
        return identities
    left_out = tuple(
        f"{one.description}: not in PubkeyAcceptedAlgorithms {wanted.pubkeyacceptedalgorithms}"
        for one in identities.offers
        if one not in kept
    )
    return replace(identities, offers=kept, unreadable=(*identities.unreadable, *left_out))


def load_identities(files: tuple[str, ...], certificates: tuple[str, ...], only: bool, agent: str) -> Identities:  # noqa: FBT001
    """Read files and agent. The order is that of ssh: certificates, the agent's keys that are configured too, its
    others (not with IdentitiesOnly), and then keys that only lie in files.
    """
    keys, agent_error = agent_keys(agent)
    loader = _Loader(keys)
    certified = [] if only else [_from_agent(key) for key in keys if CERTIFICATE in key.get_name()]
    for path in files:
        loader.load(path)
    for path in certificates:
        loader.certify(path)
    rest = [] if only else [_from_agent(key) for key in keys if key.blob not in loader.public.values()]
    offers = _once([*loader.certified, *certified, *loader.configured, *rest, *loader.from_files])
    return Identities(tuple(offers), tuple(loader.locked), tuple(loader.unreadable), agent_error)


class _Loader:
    """Loads identity files, and sorts them by how each can be offered."""

    def __init__(self, agent_keys: list[AgentKey]) -> None:
        self.agent_keys = {key.blob: key for key in agent_keys}
        self.public: dict[str, bytes] = {}
        self.certified: list[Identity] = []
        self.configured: list[Identity] = []
        self.from_files: list[Identity] = []
        self.locked: list[str] = []
        self.unreadable: list[str] = []

    def load(self, path: str) -> None:
        if not Path(path).exists() and not Path(path + ".pub").exists():
            return
        public = public_part(path)
        if public is not None:
            self.public[path] = public
        certificate = path.removesuffix(".pub") + "-cert.pub"
        if public is not None and public in self.agent_keys:
            self.configured.append(_identity(self.agent_keys[public], path))
            self.certify(certificate)
        elif Path(path).exists() and (key := self._private_key(path)):
            self.from_files.append(_identity(key, path))
            self.public[path] = key.asbytes()
            self.certify(certificate)

    def certify(self, path: str) -> None:
        """Offer a certificate with whichever key it was made for."""
        if not Path(path).exists():
            return
        blob = read_public(Path(path))
        if blob is None or CERTIFICATE not in type_of(blob):
            self.unreadable.append(f"{path}: not a certificate")
            return
        for candidate in (*self.configured, *self.from_files):
            if certifies(blob, candidate.key.asbytes()):
                self.certified.append(_identity(_with_certificate(candidate, blob), path, blob))
                return

    def _private_key(self, path: str) -> paramiko.PKey | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # paramiko warns of old kinds of keys
                key = paramiko.PKey.from_path(path)
        except TypeError:  # cryptography raises it where a passphrase is needed
            self.locked.append(path)
            return None
        except (OSError, ValueError, UnsupportedAlgorithm, paramiko.SSHException, UnknownKeyType) as error:
            why = error.strerror if isinstance(error, OSError) else "not a private key that paramiko can read"
            self.unreadable.append(f"{path}: {why}")
            return None
        key.public_blob = None  # the plain key; its certificate is an offer of its own, as with ssh
        return key


def _with_certificate(identity: Identity, certificate: bytes) -> paramiko.PKey:
    if isinstance(identity.key, AgentKey):
        return identity.key.certified(certificate)
    key = paramiko.PKey.from_path(identity.path)
    key.public_blob = PublicBlob(type_of(certificate), certificate)
    return key


def _once(identities: list[Identity]) -> list[Identity]:
    offered: dict[bytes, Identity] = {}
    for identity in identities:
        blob = identity.key.public_blob
        offered.setdefault(blob.key_blob if blob else identity.key.asbytes(), identity)
    return list(offered.values())


def _identity(key: paramiko.PKey, path: str, blob: bytes | None = None) -> Identity:
    home = str(Path.home())
    shown = path.replace(home, "~", 1) if path.startswith(home + "/") else path
    agent = " (agent)" if isinstance(key, AgentKey) else ""
    return Identity(key, f"{described(blob or key.asbytes())} {shown}{agent}", path, shown)


def _from_agent(key: AgentKey) -> Identity:
    return Identity(key, f"{described(key.blob)} {key.comment} (agent)")


# What a server's message may explain; its other messages say only that it refuses.
_EXPLAINED = frozenset(
    {LoginCause.SLURM_JOB_WANTED, LoginCause.TOO_MANY_KEYS, LoginCause.PERSON_WANTED, LoginCause.NO_SHELL}
)
_LOGIN_ERRORS = (paramiko.SSHException, OSError, EOFError)


class Attempt(Protocol):
    """The attempt that a login belongs to: its address, its time in seconds, and the keys offered so far."""

    address: str
    timeout: float
    offered: list[Identity]

    @property
    def remaining(self) -> float:
        """Seconds that are left."""


def log_in(link: ConfiguredTransport, target: SshTarget, identities: Identities, attempt: Attempt) -> None:
    """Offer the keys one after another. Raises FailureError when none is accepted."""
    attempt.offered.clear()
    if not identities.offers:
        _try_none(link, target, attempt)
    for identity in identities.offers:
        attempt.offered.append(identity)
        if _offer(link, target, identity, attempt):
            return
        if link.wire.server.partial or "publickey" not in link.wire.server.methods:
            break
    if not link.is_authenticated():
        raise FailureError(_refused(link, target, identities, attempt))


def _offer(link: ConfiguredTransport, target: SshTarget, identity: Identity, attempt: Attempt) -> bool:
    """Offer one key; return whether it was accepted."""
    link.auth_timeout = attempt.remaining
    try:
        link.auth_publickey(target.user, identity.key)
    except _LOGIN_ERRORS as error:
        alive = link.is_active() and not link.wire.timed_out and attempt.remaining > 0.001  # noqa: PLR2004  no time is left
        if alive and isinstance(error, paramiko.AuthenticationException):
            return False
        raise _cut_off(link, target, attempt, error) from None
    return link.is_authenticated()


def _try_none(link: ConfiguredTransport, target: SshTarget, attempt: Attempt) -> None:
    """Try to log in without a key: the answer names the methods that the server accepts."""
    link.auth_timeout = attempt.remaining
    try:
        link.auth_none(target.user)
    except _LOGIN_ERRORS as error:
        if not link.is_active() or link.wire.timed_out:
            raise _cut_off(link, target, attempt, error) from None


def _cut_off(link: ConfiguredTransport, target: SshTarget, attempt: Attempt, error: Exception) -> FailureError:
    """Say why the connection ended during the login."""
    server = link.wire.server
    message = " ".join((*server.messages, server.disconnect))
    if (cause := cause_of(message)) in _EXPLAINED:
        return failed(cause, _one_line(message), fix_for(cause, target, attempt.offered))
    if link.wire.timed_out or "timeout" in str(error).lower():
        return FailureError(failures.stalled(attempt.address, "during the login", attempt.timeout))
    if message.strip():
        return failed(
            LoginCause.AUTH_REFUSED, f"the server ended the login: {_one_line(message)}", failures.by_hand(target, "-v")
        )
    if "agree on a pubkey algorithm" in str(error):  # paramiko signs nothing with SHA-1; ssh can be configured to
        return failed(LoginCause.AUTH_REFUSED, str(error), failures.by_hand(target, "-v"), openssh_may_work=True)
    detail = (
        f"the server closed the connection during the login ({len(attempt.offered)} key(s) offered) without a reason"
    )
    return failed(LoginCause.CLOSED, detail, failures.by_hand(target, "-v"))


def _refused(link: ConfiguredTransport, target: SshTarget, identities: Identities, attempt: Attempt) -> LoginFailure:
    server = link.wire.server
    message = " ".join(server.messages)
    if (cause := cause_of(message)) in _EXPLAINED:
        return LoginFailure(cause, _one_line(message), fix_for(cause, target, attempt.offered))
    if server.partial or (server.methods and "publickey" not in server.methods):
        how = "a key alone is not enough" if server.partial else "it accepts no keys"
        detail = f"the server requires an interactive login: {how}, only {', '.join(server.methods)}"
        return LoginFailure(LoginCause.PERSON_WANTED, detail, failures.by_hand(target))
    if failure := failures.key_type_refused(target, [one.kind for one in attempt.offered], link.accepted_types):
        return failure
    for one in attempt.offered:
        if failure := failures.certificate_out_of_date(one.blob, shlex.quote(one.path), time.time()):
            return failure
    return LoginFailure(
        LoginCause.AUTH_REFUSED, _refusal(target, identities, attempt, message), _fix_for_refusal(target, identities)
    )


def _refusal(target: SshTarget, identities: Identities, attempt: Attempt, message: str) -> str:
    parts = [f"{target.user}@{target.name} was refused with the available keys"]
    offered = ", ".join(identity.description for identity in attempt.offered)
    parts.append(f"offered: {offered}" if offered else "there is no key to offer")
    parts += [failures.WHY_NO_KEY] if offered else []
    parts += [
        f"{i.description}: {i.key.refusal}" for i in identities.offers if isinstance(i.key, AgentKey) and i.key.refusal
    ]
    parts += [f"{path} has a passphrase and is in no agent" for path in identities.locked]
    parts += [f"cannot be used: {reason}" for reason in identities.unreadable]
    parts += [identities.agent_error] if identities.agent_error else []
    parts += [f"message from the server: {_one_line(message)}"] if message.strip() else []
    return "; ".join(parts)


def _fix_for_refusal(target: SshTarget, identities: Identities) -> str:
    if identities.locked:
        start = "" if target.identity_agent and not identities.agent_error else 'eval "$(ssh-agent)"; '
        return f"{start}ssh-add {shlex.quote(identities.locked[0])}"
    path = next((offer.path for offer in identities.offers if offer.path and not offer.path.endswith("-cert.pub")), "")
    if not identities.offers:
        return failures.to_have_a_key(target)
    key = f"-i {shlex.quote(path.removesuffix('.pub') + '.pub')} " if path else ""
    return f"ssh-copy-id {key}{failures.destination(target)}"


def fix_for(cause: LoginCause, target: SshTarget, offered: list[Identity]) -> str:
    """Return the command line for what the server's message explains."""
    if cause is LoginCause.SLURM_JOB_WANTED:
        return f"salloc -w {shlex.quote(target.name)}"
    if cause is LoginCause.TOO_MANY_KEYS:
        path = next((key.shown_path for key in offered if key.path and not key.in_agent), "~/.ssh/id_ed25519")
        return failures.by_hand(target, "-o IdentitiesOnly=yes", f"-i {path}")
    return failures.by_hand(target)


def _one_line(message: str) -> str:
    return " ".join(message.split())[:400]
