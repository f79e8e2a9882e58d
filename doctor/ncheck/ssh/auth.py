"""Logging in with keys, and saying exactly why it was refused."""

from __future__ import annotations

import shlex
from typing import Protocol

import paramiko

from ncheck.model.evidence import Cause
from ncheck.ssh import fault
from ncheck.ssh.agent import AgentKey
from ncheck.ssh.fault import Fault, FaultError, failed
from ncheck.ssh.keys import Identities, Identity
from ncheck.ssh.messages import cause_of
from ncheck.ssh.paramiko_internals import Link
from ncheck.ssh.target import SshTarget

# What a server's own words may tell here; its other words say no more than that it refuses.
TELLING = frozenset({Cause.SLURM_JOB_WANTED, Cause.TOO_MANY_KEYS, Cause.PERSON_WANTED, Cause.NO_SHELL})


BROKEN = (paramiko.SSHException, OSError, EOFError)


class Progress(Protocol):
    """What the login tells of itself as it goes."""

    address: str
    timeout: float
    offered: list[str]

    @property
    def remaining(self) -> float:
        """Seconds that are left."""


def log_in(link: Link, target: SshTarget, identities: Identities, way: Progress) -> None:
    """Offer the keys one after another. Raises FaultError when none is taken."""
    way.offered.clear()
    if not identities.offers:
        _try_none(link, target, way)
    for identity in identities.offers:
        way.offered.append(identity.told)
        if _offer(link, target, identity, way):
            return
        if link.wire.heard.partial or "publickey" not in link.wire.heard.methods:
            break
    if not link.is_authenticated():
        raise FaultError(_refused(link, target, identities, way))


def _offer(link: Link, target: SshTarget, identity: Identity, way: Progress) -> bool:
    """Offer one key; return whether it let us in."""
    link.auth_timeout = way.remaining
    try:
        link.auth_publickey(target.user, identity.key)
    except BROKEN as error:
        alive = link.is_active() and not link.wire.timed_out and way.remaining > 0.001  # noqa: PLR2004  none is left
        if alive and isinstance(error, paramiko.AuthenticationException):
            return False
        raise _cut_off(link, target, way, error) from None
    return link.is_authenticated()


def _try_none(link: Link, target: SshTarget, way: Progress) -> None:
    """Ask to be let in without a key: it tells what the server would take."""
    link.auth_timeout = way.remaining
    try:
        link.auth_none(target.user)
    except BROKEN as error:
        if not link.is_active() or link.wire.timed_out:
            raise _cut_off(link, target, way, error) from None


def _cut_off(link: Link, target: SshTarget, way: Progress, error: Exception) -> FaultError:
    """Say why the connection ended in the midst of the login."""
    heard = link.wire.heard
    words = " ".join((*heard.messages, heard.parting))
    if (cause := cause_of(words)) in TELLING:
        return failed(cause, _said(words), fix_for(cause, target, way.offered))
    if link.wire.timed_out or "timeout" in str(error).lower():
        return FaultError(fault.stalled(way.address, "during the login", way.timeout))
    if words.strip():
        return failed(Cause.AUTH_REFUSED, f"the server ended the login: {_said(words)}", fault.by_hand(target, "-v"))
    if "agree on a pubkey algorithm" in str(error):  # paramiko signs nothing by SHA-1; ssh may be told to
        return failed(Cause.AUTH_REFUSED, str(error), fault.by_hand(target, "-v"), elsewhere=True)
    detail = f"the server closed the connection during the login ({len(way.offered)} key(s) offered) and gave no reason"
    return failed(Cause.CLOSED, detail, fault.by_hand(target, "-v"))


def _refused(link: Link, target: SshTarget, identities: Identities, way: Progress) -> Fault:
    heard = link.wire.heard
    words = " ".join(heard.messages)
    if (cause := cause_of(words)) in TELLING:
        return Fault(cause, _said(words), fix_for(cause, target, way.offered))
    if heard.partial or (heard.methods and "publickey" not in heard.methods):
        how = "a key alone does not do" if heard.partial else "it takes no keys"
        detail = f"the server wants a person: {how}, only {', '.join(heard.methods)}"
        return Fault(Cause.PERSON_WANTED, detail, fault.by_hand(target))
    return Fault(Cause.AUTH_REFUSED, _refusal(target, identities, way, words), _way_in(target, identities))


def _refusal(target: SshTarget, identities: Identities, way: Progress, words: str) -> str:
    said = [f"{target.user}@{target.name} may not log in with the keys at hand"]
    said.append(f"offered: {', '.join(way.offered)}" if way.offered else "there is no key to offer")
    said += [f"{i.told}: {i.key.refusal}" for i in identities.offers if isinstance(i.key, AgentKey) and i.key.refusal]
    said += [f"{path} wants a passphrase and is in no agent" for path in identities.locked]
    said += [f"cannot be used: {what}" for what in identities.unreadable]
    said += [identities.agent] if identities.agent else []
    said += [f"the server said: {_said(words)}"] if words.strip() else []
    return "; ".join(said)


def _way_in(target: SshTarget, identities: Identities) -> str:
    if identities.locked:
        return f"ssh-add {shlex.quote(identities.locked[0])}"
    filed = next((offer.path for offer in identities.offers if offer.path and not offer.path.endswith("-cert.pub")), "")
    if not identities.offers:
        return "ssh-keygen -t ed25519"
    which = f"-i {shlex.quote(filed.removesuffix('.pub') + '.pub')} " if filed else ""
    return f"ssh-copy-id {which}{fault.destination(target)}"


def fix_for(cause: Cause, target: SshTarget, offered: list[str]) -> str:
    """Return the line to type for what a server said in words."""
    if cause is Cause.SLURM_JOB_WANTED:
        return f"salloc -w {shlex.quote(target.name)}"
    if cause is Cause.TOO_MANY_KEYS:
        named = next((told.split(" ")[-1] for told in offered if "/" in told.split(" ")[-1]), "~/.ssh/id_ed25519")
        return fault.by_hand(target, "-o IdentitiesOnly=yes", f"-i {named}")
    return fault.by_hand(target)


def _said(words: str) -> str:
    return " ".join(words.split())[:400]
