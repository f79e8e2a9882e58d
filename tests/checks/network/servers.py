"""Nodes with a raylet, and with what an environment says of their addresses."""

from __future__ import annotations

from ncheck.facts.host_load import HostLoadFacts, Raylet
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.parse.interface_names import Kind

from tests.logins import logins

LO = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536, addresses=(Address("127.0.0.1", 8, "host"),))


def nic(name: str, index: int, *ips: str, kind: Kind = Kind.PHYSICAL, default: bool = False) -> Interface:
    addresses = tuple(Address(ip, 64 if ":" in ip else 24) for ip in ips)
    return Interface(name, index, kind, up=True, running=True, mtu=1500, addresses=addresses, default_route=default)


def server(
    number: int, ray: str = "", of_ray: str = "", vllm: str = "", *, contained: bool = False, **variables: str
) -> Facts:
    """Make a node with eth0, eth1 and docker0. `ray`: Ray's address; `of_ray`: its VLLM_HOST_IP; `vllm`: a version."""
    nics = (
        nic("docker0", 2, "172.17.0.1", kind=Kind.CONTAINER_BRIDGE),
        nic("eth0", 3, f"10.1.0.{number}", f"fd00::{number}", default=True),
        nic("eth1", 4, f"10.2.0.{number}"),
    )
    return {
        NicFacts: NicFacts((LO, *nics)),
        HostLoadFacts: HostLoadFacts(8, raylets=(Raylet(40, ray, of_ray, contained),) if ray else ()),
        InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "", {"vllm": vllm} if vllm else {}),
        LoadedNcclFacts: LoadedNcclFacts("2.32.3", "/opt/libnccl.so.2"),
        NcclPickFacts: Absent("not asked"),
        type(logins({})): logins(variables),
    }
