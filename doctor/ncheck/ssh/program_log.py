"""What `ssh -v` tells of one login: how far it came, with which keys, and why no further."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from ncheck.model.evidence import Cause
from ncheck.ssh import fault
from ncheck.ssh.fault import NO_ROOM, DroppedError, Fault, FaultError
from ncheck.ssh.messages import cause_of, telling_line
from ncheck.ssh.target import SshTarget

# debug1: Connecting to node07 [10.0.0.7] port 22.
# A server's banner is printed among these lines, and may look like one: what is no address is not taken.
_ADDRESS = re.compile(r"^debug1: Connecting to \S+ \[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\] port", re.MULTILINE)


# debug1: Server host key: ssh-ed25519 SHA256:J/glO1XKZI31IWzKMGQjOssdr4tQFGrCD3AXMLHQHck
_HOST_KEY = re.compile(r"^debug1: Server host key: (\S+ \S+)", re.MULTILINE)


# debug1: Offering public key: /root/.ssh/id_ed25519 ED25519 SHA256:uwA1ClT5jaMBmW8EOMm2kj explicit
_OFFERED = re.compile(r"^debug1: Offering public key: (.+?) (\S+) (SHA256:\S+)(.*)$", re.MULTILINE)


# Offending ECDSA key in /root/.ssh/known_hosts:12
_OFFENDING = re.compile(r"^Offending \S+ key in (.+):\d+\s*$", re.MULTILINE)


# channel 0: open failed: connect failed: Connection refused
_FORWARDING = re.compile(r"open failed: (?:connect failed: |administratively prohibited: )?(.+)")


# debug1: kex_exchange_identification: banner line 0: HTTP/1.1 400 Bad Request
_IN_PLACE_OF_BANNER = re.compile(r"kex_exchange_identification: banner line \d+: (.*)")


# OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026
_CHATTER = re.compile(
    r"^(?:debug\d: |OpenSSH_\S+ ?.*, |Authenticated to \S+ |Transferred: sent |Bytes per second: sent ).*\n?",
    re.MULTILINE,
)


# debug1: Sending command: exec /bin/sh ...      (the connection is ours)
# debug1: mux_client_request_session: master session id: 2      (it is that of a master)
_STARTED = re.compile(r"^debug1: (?:Sending command: |mux_client_request_session: master session id)", re.MULTILINE)


_FORWARDED = (
    ("refused", Cause.REFUSED), ("timed out", Cause.FILTERED), ("no route", Cause.UNROUTABLE),
    ("unreachable", Cause.UNROUTABLE), ("not known", Cause.NAME_UNKNOWN), ("name resolution", Cause.NAME_UNKNOWN),
)  # fmt: skip


@dataclass(frozen=True)
class SshLog:
    """The text of ssh's standard error with -v; that of a jump host's ssh is mixed in."""

    text: str
    target: SshTarget

    @property
    def started(self) -> bool:
        """Tell whether the login worked and the command was sent."""
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
    def offered(self) -> tuple[str, ...]:
        told = (f"{kind} {print_} {path}{' (agent)' if 'agent' in rest.split() else ''}"
                for path, kind, print_, rest in _OFFERED.findall(self.text))  # fmt: skip
        return tuple(dict.fromkeys(told))

    @property
    def proxied(self) -> bool:
        return bool(self.target.proxy_jump or self.target.proxy_command)

    @property
    def spoken(self) -> str:
        """What is left without -v's own lines: ssh's messages, the server's, and the remote standard error."""
        return without_chatter(self.text)

    @property
    def met(self) -> bool:
        """Tell whether the node's own SSH server, not only a jump host's, has shown its banner."""
        if self.proxied:
            return f"Authenticating to {self.target.host_name}:{self.target.port} " in self.text
        return "Remote protocol version" in self.text


def without_chatter(text: str) -> str:
    return _CHATTER.sub("", text)


def failure(log: SshLog, seconds: float, *, timed_out: bool) -> FaultError:
    """Say why ssh did not get in. A DroppedError is worth another try."""
    said = _IN_PLACE_OF_BANNER.search(log.text)
    if said and not said.group(1).startswith(NO_ROOM):
        return FaultError(fault.not_ssh(log.target, said.group(1).strip()))
    if timed_out:
        return FaultError(_too_late(log, seconds))
    if log.proxied and not log.met:
        return FaultError(_on_the_way(log))
    cause = cause_of(log.spoken)
    dropped = cause is Cause.OVERLOADED or (cause is Cause.CLOSED and "SSH2_MSG_NEWKEYS received" not in log.text)
    if dropped:
        return DroppedError(Fault(Cause.OVERLOADED, _line(log)))
    if cause is Cause.AUTH_REFUSED and "with partial success" in log.text:
        cause = Cause.PERSON_WANTED
    return FaultError(_told(log, cause or Cause.TRANSPORT, seconds))


def _too_late(log: SshLog, seconds: float) -> Fault:
    if not log.met:
        connected = "Connection established" in log.text and not log.proxied
        slow = fault.silent if connected else fault.filtered
        return slow(log.target, log.address or log.target.host_name, seconds)
    stage = "in the key exchange" if "SSH2_MSG_NEWKEYS received" not in log.text else "during the login"
    return fault.stalled(log.address or log.target.host_name, stage, seconds)


def _on_the_way(log: SshLog) -> Fault:
    """Tell a node that a jump host cannot reach from a jump host that cannot be used."""
    if forwarding := _FORWARDING.search(log.spoken):
        why = forwarding.group(1)
        cause = next((cause for words, cause in _FORWARDED if words in why.lower()), Cause.TRANSPORT)
        detail = f"the jump host cannot reach {log.target.host_name} port {log.target.port}: {why}"
        return Fault(cause, detail, fault.by_hand(log.target, "-v"))
    by = f"ProxyJump {log.target.proxy_jump}" if log.target.proxy_jump else "ProxyCommand"
    return Fault(Cause.TRANSPORT, f"{by} does not work: {_line(log)}", fault.by_hand(log.target, "-v"))


def _told(log: SshLog, cause: Cause, seconds: float) -> Fault:
    """Return the fault in the same words as the other transport, where they say all that there is to say."""
    target, address, said = log.target, log.address or log.target.host_name, _line(log)
    why = said.rpartition(": ")[2]
    same: dict[Cause, Callable[[], Fault]] = {
        Cause.REFUSED: lambda: fault.refused(target, address),
        Cause.FILTERED: lambda: fault.filtered(target, address, seconds),
        Cause.UNROUTABLE: lambda: fault.unroutable(target, address, why),
        Cause.NAME_UNKNOWN: lambda: fault.name_unknown(target, why),
        Cause.SILENT: lambda: fault.silent(target, address, seconds),
        Cause.STALLED: lambda: fault.stalled(address, "in the key exchange", seconds),
        Cause.NOT_SSH: lambda: fault.not_ssh(target, said),
    }
    return same[cause]() if cause in same else Fault(cause, _words(log, cause, said), _fix(log, cause))


def _words(log: SshLog, cause: Cause, said: str) -> str:
    name, key = log.target.known_as, log.host_key
    if cause is Cause.HOST_KEY_UNKNOWN:
        return f"the host key of {name} is in no known_hosts file: it shows {key}"
    if cause is Cause.HOST_KEY_CHANGED:
        offending = _OFFENDING.search(log.text)
        where = f", another is in {offending.group(0).partition(' in ')[2].strip()}" if offending else ""
        return f"the host key of {name} changed: it shows {key}{where}"
    if cause is Cause.HOST_KEY_REVOKED:
        return f"the host key of {name} is marked as revoked: {key}"
    if cause is Cause.AUTH_REFUSED:
        return f"{said}; offered: {', '.join(log.offered)}" if log.offered else f"{said}; there was no key to offer"
    return said


def _fix(log: SshLog, cause: Cause) -> str:
    target, offending = log.target, _OFFENDING.search(log.text)
    forget = fault.forget_key(target, offending.group(1)) if offending else fault.by_hand(target, "-v")
    first = shlex.quote(next(iter(target.identity_files), "~/.ssh/id_ed25519"))
    lines = {
        Cause.HOST_KEY_UNKNOWN: fault.by_hand(target, "-o StrictHostKeyChecking=ask"),
        Cause.HOST_KEY_CHANGED: forget,
        Cause.HOST_KEY_REVOKED: fault.NEW_HOST_KEYS,
        Cause.AUTH_REFUSED: f"ssh-copy-id {fault.destination(target)}" if log.offered else "ssh-keygen -t ed25519",
        Cause.SLURM_JOB_WANTED: f"salloc -w {shlex.quote(target.name)}",
        Cause.TOO_MANY_KEYS: fault.by_hand(target, "-o IdentitiesOnly=yes", f"-i {first}"),
        Cause.PERSON_WANTED: fault.by_hand(target),
    }
    return lines.get(cause, fault.by_hand(target, "-v"))


def _line(log: SshLog) -> str:
    return telling_line(log.spoken)[:400] or "ssh ended and said nothing"
