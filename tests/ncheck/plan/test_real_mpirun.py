"""The line that is proposed, run by the mpirun that is installed here: it must take every word of it."""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
from collections.abc import Mapping

import psutil
import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Login
from ncheck.model.fact import Absent
from ncheck.parse.interface_names import Kind
from ncheck.plan.plan import propose
from ncheck.settings import Settings

from tests.skips import cannot


def wire() -> tuple[str, ipaddress.IPv4Interface]:
    """Return the name and address of some interface of this machine other than lo."""
    for name, addresses in psutil.net_if_addrs().items():
        for address in addresses:
            if address.family.name == "AF_INET" and name != "lo":
                return name, ipaddress.IPv4Interface(f"{address.address}/{address.netmask}")
    pytest.skip("this machine has no IPv4 address but 127.0.0.1")


def open_mpi() -> MpiFacts:
    """Return the Open MPI of this machine; skip without one."""
    found = shutil.which("mpirun")
    if found is None:
        cannot("no mpirun here: apt-get install openmpi-bin")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    if "Open MPI" not in said:
        pytest.skip(f"this mpirun is no Open MPI: {said.splitlines()[0]}")
    return MpiFacts("Open MPI", said.split()[3], found)


def facts(mpi: MpiFacts, name: str, ip: str, prefix: int) -> Mapping[type[object], object]:
    """Make a node with one card and a bridge that NCCL would prefer, so that a name must be set."""
    nics = [("br-5b1d7c3e9f20", "172.31.255.1", 24, Kind.CONTAINER_BRIDGE), (name, ip, prefix, Kind.PHYSICAL)]
    made = tuple(
        Interface(label, index, kind, up=True, running=True, mtu=1500, addresses=(Address(own, length),))
        for index, (label, own, length, kind) in enumerate(nics, 2)
    )
    none = Absent("not here")
    return {
        LoginFacts: LoginFacts(Login(reached=True)), NicFacts: NicFacts(made), MpiFacts: mpi, IdentityFacts: none,
        EnvironmentFacts: EnvironmentFacts({}, {}), InfinibandFacts: none, LoadedNcclFacts: none, GpuFacts: none,
        InterpreterFacts: none,
    }  # fmt: skip


@pytest.mark.parametrize("profile", ["slot", "numa"])
def test_a_real_mpirun_takes_every_word_and_the_variable_arrives(profile: str) -> None:
    mpi, (name, own) = open_mpi(), wire()
    other = next(str(ip) for ip in own.network.hosts() if ip != own.ip)
    hosts = {"localhost": str(own.ip), "127.0.0.1": other}
    nodes = {host: facts(mpi, name, ip, own.network.prefixlen) for host, ip in hosts.items()}
    plan = propose(Cluster.of(nodes), Settings(port=2222, profile=profile), user_is_root=os.geteuid() == 0)
    words = ("btl_tcp_if_include", "oob_tcp_if_include", "plm_rsh_args", f"NCCL_SOCKET_IFNAME=={name}", "pml ob1")
    assert [word for word in words if word not in plan.lines["mpirun"]] == []
    line = plan.lines["mpirun"].replace("python train.py", "printenv NCCL_SOCKET_IFNAME")
    environment = {**os.environ, "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "/usr/lib")}
    ran = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=False, timeout=60, env=environment,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"={name}\n={name}\n", "")
