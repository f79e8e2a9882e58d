"""Jobs over two nodes or more, and their lines as every shell here has read them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import Any

from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nics import Address, Interface, SubnetAddress
from ncheck.launchers import MEETING_PORTS
from ncheck.parse.interface_names import Kind
from ncheck.plan.launch import Launch, LaunchHost, LaunchLine, OutOfBand, SshOptions
from ncheck.plan.launchers import LINES, MPI_LINES
from ncheck.plan.networks import Network

SUBNET = "10.1.0.0/24"


def addresses(name: str, ip: str) -> tuple[SubnetAddress, ...]:
    nic = Interface(name, 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address(ip, 24),))
    return (SubnetAddress(nic, ip, SUBNET),)


def launch(*names: str, slots: int = 2, cards: tuple[str, ...] = (), **changed: Any) -> Launch:
    """Make a job over n1 and n2 or the named hosts, each on eth0 or on its own card."""
    hosts = names or ("n1", "n2")
    cards = cards or tuple("eth0" for _ in hosts)
    own = [f"10.1.0.{index}" for index in range(1, len(hosts) + 1)]
    members = {host: addresses(card, ip) for host, card, ip in zip(hosts, cards, own, strict=True)}
    made = Launch(
        tuple(LaunchHost(host, slots, slots, ip) for host, ip in zip(hosts, own, strict=True)),
        Network(SUBNET, members),
        {"NCCL_SOCKET_IFNAME": "=" + ",".join(dict.fromkeys(cards)), "GLOO_SOCKET_IFNAME": "eth0"},
        SshOptions(),
        interfaces=tuple(frozenset({"lo", card}) for card in cards),
        out_of_band=OutOfBand(SUBNET, tuple(dict.fromkeys(cards))),
        pass_library_path=True,
    )
    return replace(made, **changed)


def line(launcher: str, job: Launch) -> str:
    """Return the line, which every shell that is here has read without complaint."""
    made = LINES[launcher](replace(job, meeting_port=job.meeting_port or MEETING_PORTS.get(launcher, 0)))
    return read_by_shells(made)


def mpi_line(implementation: str, version: str, job: Launch) -> str:
    return read_by_shells(MPI_LINES[implementation][1](replace(job, mpi=MpiFacts(implementation, version))))


def read_by_shells(made: LaunchLine) -> str:
    for shell in ("bash", "dash", "sh"):
        if shutil.which(shell):
            read = subprocess.run(
                [shell, "-n", "-c", made.text], capture_output=True, text=True, check=False, timeout=60
            )
            assert (read.returncode, read.stderr) == (0, ""), made.text
    return made.text
