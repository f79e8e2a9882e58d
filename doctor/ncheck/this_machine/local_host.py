"""The machine that ncheck runs on, where a launch line is typed: its addresses, its user, its variables."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ncheck.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ncheck.settings import Settings


@dataclass(frozen=True)
class LocalHost:
    """`interfaces` are the names of its interfaces by IP address, `variables` the names that its environment sets.

    `root`: its user is root, as whom mpirun refuses to start unless asked. `machine`: see IdentityFacts. `shell` is the
    path of the user's login shell, "" for a user that has no entry.
    """

    interfaces: Mapping[str, str]
    variables: frozenset[str] = frozenset()
    root: bool = False
    machine: tuple[str, str] | None = None
    shell: str = ""


def read_local_host(settings: Settings, environ: Mapping[str, str]) -> LocalHost | None:
    """Return this machine; None if lines are typed elsewhere (in a container), or its interfaces cannot be read.

    In a rehearsal this machine is not part of the cluster, so lines are typed elsewhere too.
    """
    if settings.run.rehearsal or settings.environment.enter or settings.environment.rsh:
        return None
    try:
        interfaces = _interfaces()
    except (OSError, RuntimeError):
        return None
    return LocalHost(interfaces, frozenset(environ), root=os.geteuid() == 0, machine=_machine(), shell=_shell())


def _interfaces() -> Mapping[str, str]:
    """Return the interfaces by address. Raises RuntimeError as netifaces does, or what the agent's answer raises."""
    try:
        import netifaces  # never its gateways(), which may run a program without a time limit
    except ImportError:  # the single file has no compiled package: this machine answers as a node does
        from ncheck.agent.answers.getifaddrs import getifaddrs

        return {str(one["ip"]): name for name, (_, addresses) in getifaddrs().items() for one in addresses}
    return {
        str(one["addr"]): name
        for name in sorted(netifaces.interfaces())  # it gives them in no order
        for family, addresses in netifaces.ifaddresses(name).items()
        for one in addresses
        if family in (netifaces.AF_INET, netifaces.AF_INET6)
    }


def _shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return ""


def _machine() -> tuple[str, str] | None:
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot_id, str(Path("/proc/self/ns/net").readlink())
    except OSError:
        return None
