"""What went wrong on the way into a node: its cause, the words for it, and the line to type for this very node."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ncheck.fleet.link import LoginFailedError
from ncheck.model.evidence import Cause
from ncheck.ssh.target import SshTarget

SSH_PORT = 22


# What OpenSSH since 9.8 says in place of its banner when it has no room, or holds a grudge (PerSourcePenalties).
NO_ROOM = ("Exceeded MaxStartups", "Not allowed at this time")


NEW_HOST_KEYS = "sudo rm /etc/ssh/ssh_host_*_key && sudo ssh-keygen -A"


@dataclass(frozen=True)
class Fault:
    """One failure; `detail` is one line, `fix` a command line or empty."""

    cause: Cause
    detail: str
    fix: str = ""


class FaultError(Exception):
    """Raised inside a transport only; what leaves it is LoginFailedError.

    `elsewhere`: the ssh program may do better (no common algorithm, host certificates, hostbased): it is tried where
    the choice of the transport was left to ncheck.
    """

    def __init__(self, fault: Fault, *, elsewhere: bool = False) -> None:
        super().__init__(fault.detail)
        self.fault = fault
        self.elsewhere = elsewhere


class DroppedError(FaultError):
    """The server hung up before it could be talked to: worth another try, since MaxStartups drops at random."""


def failed(cause: Cause, detail: str, fix: str = "", *, elsewhere: bool = False) -> FaultError:
    return FaultError(Fault(cause, detail, fix), elsewhere=elsewhere)


def destination(target: SshTarget) -> str:
    """Return what follows ssh on a command line: "-p 10001 root@node07"."""
    port = f"-p {target.port} " if target.port != SSH_PORT else ""
    who = f"{target.user}@{target.name}" if target.user else target.name
    return port + shlex.quote(who)


def by_hand(target: SshTarget, *options: str) -> str:
    """Return the line by which a person looks for himself: "ssh -v -p 10001 root@node07"."""
    config = (f"-F {shlex.quote(target.config_file)}",) if target.config_file else ()
    return " ".join(("ssh", *config, *options, destination(target)))


def forget_key(target: SshTarget, file: str) -> str:
    """Return the line that takes a host's keys out of the file that has them."""
    return f"ssh-keygen -f {shlex.quote(file)} -R {shlex.quote(target.known_as)}"


def name_unknown(target: SshTarget, why: str) -> Fault:
    via = "" if target.host_name == target.name else f" (HostName of {target.name})"
    detail = f"the name {target.host_name}{via} does not resolve here: {why}"
    return Fault(Cause.NAME_UNKNOWN, detail, f"getent hosts {shlex.quote(target.host_name)}")


def refused(target: SshTarget, address: str) -> Fault:
    detail = f"{address} refuses connections on port {target.port}: no SSH server listens there"
    return Fault(Cause.REFUSED, detail, "sudo systemctl restart ssh")


def filtered(target: SshTarget, address: str, seconds: float) -> Fault:
    why = "packets are dropped, or the node is down"
    detail = f"{address} port {target.port} did not answer within {seconds:.0f} s: {why}"
    return Fault(Cause.FILTERED, detail, f"sudo traceroute -T -p {target.port} {address}")


def unroutable(target: SshTarget, address: str, why: str) -> Fault:
    detail = f"no way to {address} port {target.port}: {why}"
    return Fault(Cause.UNROUTABLE, detail, f"ip route get {address}")


def silent(target: SshTarget, address: str, seconds: float) -> Fault:
    detail = (
        f"{address} port {target.port} accepts connections and says nothing for {seconds:.0f} s: "
        "its SSH server is frozen, or the node hangs"
    )
    return Fault(Cause.SILENT, detail, "sudo systemctl restart ssh")


def stalled(address: str, stage: str, seconds: float) -> Fault:
    detail = (
        f"the SSH server at {address} answered and then went quiet {stage} ({seconds:.0f} s): "
        "large packets are lost on the way (path MTU), or the node hangs"
    )
    return Fault(Cause.STALLED, detail, f"ping -M do -s 1472 -c 3 {address}")


def overloaded(address: str, attempts: int, why: str) -> Fault:
    detail = (
        f"{address} dropped the connection before the login {attempts} time(s) ({why}): "
        "too many logins at once (MaxStartups), or hosts.deny; the node itself may be well"
    )
    return Fault(Cause.OVERLOADED, detail, "sudo sshd -T | grep -i maxstartups")


def not_ssh(target: SshTarget, said: str) -> Fault:
    detail = f"port {target.port} of {target.host_name} is not an SSH server: it said {said!r}"
    return Fault(Cause.NOT_SSH, detail, f"nc -v {shlex.quote(target.host_name)} {target.port}")


class ElsewhereError(LoginFailedError):
    """The login failed for want of something that the ssh program has: worth a try with it."""
