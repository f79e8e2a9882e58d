"""Is this the host that it says it is? Asked before any key of ours is shown."""

from __future__ import annotations

import base64
import hmac
import os
import threading
from pathlib import Path

import paramiko

from ncheck.model.evidence import Cause
from ncheck.ssh import fault
from ncheck.ssh.fault import FaultError, failed
from ncheck.ssh.keys import described
from ncheck.ssh.known_hosts import Answer, HostRecord, Standing
from ncheck.ssh.target import SshTarget

_ADDING = threading.Lock()


def verify(key: paramiko.PKey, record: HostRecord, target: SshTarget, *, accept_new: bool) -> bool:
    """Return whether the key was new and was added to the user's file. Raises FaultError unless it may be trusted."""
    answer = record.judge(key.asbytes())
    if answer.standing is Standing.KNOWN:
        return False
    if answer.standing is Standing.UNKNOWN:
        if accept_new:
            add_host_key(target, key.get_name(), key.asbytes())
            return True
        if target.strict in ("no", "accept-new"):  # the user's own configuration trusts it; we write nothing unasked
            return False
    told = _TELL[answer.standing](target, key.asbytes(), answer)
    raise FaultError(told, elsewhere=record.has_authority)


def _unknown(target: SshTarget, key: bytes, _answer: Answer) -> fault.Fault:
    files = " and ".join(target.known_hosts_files[:1] + target.global_known_hosts_files[:1]) or "any known_hosts file"
    detail = f"the host key of {target.known_as} is not in {files}: it shows {described(key)}"
    return fault.Fault(Cause.HOST_KEY_UNKNOWN, detail, fault.by_hand(target, "-o StrictHostKeyChecking=ask"))


def _changed(target: SshTarget, key: bytes, answer: Answer) -> fault.Fault:
    line = answer.line
    known = f"{line.place} has {described(line.key or b'')}" if line else "another is known"
    detail = (
        f"the host key of {target.known_as} changed: it shows {described(key)}, {known}. "
        "Reinstalled, or someone in between: compare with ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub on its console"
    )
    return fault.Fault(Cause.HOST_KEY_CHANGED, detail, fault.forget_key(target, line.file) if line else "")


def _revoked(target: SshTarget, key: bytes, answer: Answer) -> fault.Fault:
    place = answer.line.place if answer.line else "known_hosts"
    detail = f"the host key of {target.known_as} is marked @revoked in {place}: {described(key)}. It needs new keys"
    return fault.Fault(Cause.HOST_KEY_REVOKED, detail, fault.NEW_HOST_KEYS)


_TELL = {Standing.UNKNOWN: _unknown, Standing.CHANGED: _changed, Standing.REVOKED: _revoked}


def add_host_key(target: SshTarget, key_type: str, key: bytes) -> None:
    """Append one line to the user's first known_hosts file, as ssh does: a single write, the file's mode kept."""
    if not target.known_hosts_files:
        raise failed(Cause.HOST_KEY_UNKNOWN, "there is no file to write a new key to (UserKnownHostsFile none)")
    path = Path(target.known_hosts_files[0])
    name = target.known_as.lower()
    line = f"{_hashed(name) if target.hash_known_hosts else name} {key_type} {base64.b64encode(key).decode()}\n"
    try:
        with _ADDING:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _append(path, line.encode())
    except OSError as error:
        why = f"the new host key cannot be written to {path}: {error.strerror}"
        raise failed(Cause.TRANSPORT, why, f"ls -l {path}") from None


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        whole = size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
        os.write(descriptor, line if whole else b"\n" + line)
    finally:
        os.close(descriptor)


def _hashed(name: str) -> str:
    salt = os.urandom(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
