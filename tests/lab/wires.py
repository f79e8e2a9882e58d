"""Bare hosts: N network namespaces on one switch a subnet, with no files and no server of their own. ncheck enters them
by `--rsh`, in place of ssh; all of them end with the block that made them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import namespaces

_INIT = ("--net", "--mount", "--uts", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")
_SCRIPT = "mount -t sysfs sysfs /sys; hostname $0; echo made; while read -r _; do :; done"
_PER_BLOCK = 250


@dataclass(frozen=True)
class BareHost:
    """One host. `addresses` are those of eth0, eth1 ..., one in each subnet, all /16."""

    name: str
    number: int
    pid: int
    addresses: tuple[str, ...]

    def sh(self, script: str) -> str:
        """Run a shell script there as root."""
        return namespaces.run(self.argv("bash", "-c", script)).stdout

    def argv(self, *argv: str) -> list[str]:
        """Return the command that runs this there."""
        return ["nsenter", "-t", str(self.pid), "-n", "-m", "-u", "-p", "--", *argv]


@dataclass(frozen=True)
class BareHosts:
    """The hosts, and `rsh`: what enters the one called {node}."""

    hosts: tuple[BareHost, ...]
    rsh: str


@contextmanager
def bare_hosts(size: int, subnets: int = 1, mtu: int = 1500) -> Iterator[BareHosts]:
    """Run so many hosts with an interface in each of so many subnets."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ncheck-hosts-")))
        switch = _made(_started(stack, ["unshare", *_INIT, "bash", "-c", _SCRIPT, "switch"]))
        names = [f"host{number:03}" for number in range(1, size + 1)]
        argv = namespaces.enter(switch, ["unshare", *_INIT, "bash", "-c", _SCRIPT])
        inits = [_started(stack, [*argv, name]) for name in names]
        hosts = tuple(
            BareHost(name, number, _made(init), tuple(_address(subnet, number) for subnet in range(subnets)))
            for number, (name, init) in enumerate(zip(names, inits, strict=True), start=1)
        )
        _wire(switch, hosts, mtu)
        yield BareHosts(hosts, _entrance(folder, hosts))


def _started(stack: ExitStack, argv: Sequence[str]) -> subprocess.Popen[str]:
    init = namespaces.start(argv)
    stack.callback(namespaces.end, init)
    return init


def _made(init: subprocess.Popen[str]) -> int:
    """Return the host's init by its pid out here, once it is there."""
    namespaces.expect(init, "made")
    return namespaces.innermost(init.pid)


def _address(subnet: int, number: int) -> str:
    return f"10.{80 + subnet}.{number // _PER_BLOCK}.{number % _PER_BLOCK + 1}"


def _wire(switch: int, hosts: Sequence[BareHost], mtu: int) -> None:
    """Give each host a macvlan on each wire: a switch that needs no bridge."""
    lines = []
    for subnet in range(len(hosts[0].addresses)):
        lines += [f"link add wire{subnet} mtu {mtu} type veth peer name far{subnet} mtu {mtu}"]
        lines += [f"link set wire{subnet} up", f"link set far{subnet} up"]
        lines += [
            f"link add link wire{subnet} name eth{subnet} mtu {mtu} netns {host.pid} type macvlan mode bridge"
            for host in hosts
        ]
    _ip(["nsenter", "-t", str(switch), "-n"], lines)
    for host in hosts:
        lines = ["link set lo up"]
        for subnet, address in enumerate(host.addresses):
            lines += [f"addr add {address}/16 dev eth{subnet}", f"link set eth{subnet} up"]
        _ip(host.argv(), lines)


def _ip(where: Sequence[str], lines: Sequence[str]) -> None:
    namespaces.run([*where, "ip", "-batch", "-"], stdin="\n".join(lines) + "\n")


def _entrance(folder: Path, hosts: Sequence[BareHost]) -> str:
    for host in hosts:
        (folder / host.name).write_text(f"{host.pid}\n")
    enter = folder / "enter"
    enter.write_text(f'#!/bin/sh\npid=$(cat {folder}/"$1") && shift && exec nsenter -t "$pid" -n -m -u -p -- "$@"\n')
    enter.chmod(0o755)
    return f"{enter} {{node}}"
