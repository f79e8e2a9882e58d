"""Nodes of a few words each, and the plan that is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.mpi_settings import MpiSettingsFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Login
from ncheck.model.fact import Absent
from ncheck.model.node import Node
from ncheck.model.plan import LaunchPlan
from ncheck.parse.interface_names import Kind
from ncheck.parse.nvidia_smi import Gpu
from ncheck.plan.plan import propose
from ncheck.settings import Settings

from .links import linked

NODES = (Node("n1"), Node("n2"))
ACTIVE = InfinibandFacts((HcaPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand"),), "sysfs")
DOCKER = "docker0 172.17.0.1 container-bridge"
COMPOSE = "br-5b1d7c3e9f20 172.18.0.1 container-bridge"
AUTOMATIC = "the first in the kernel's order except docker*, lo and virbr*"
LOOPBACK = Interface(
    "lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536, addresses=(Address("127.0.0.1", 8, "host"),)
)


def nic(index: int, words: str) -> Interface:
    """Make an interface of "eth0 10.1.0.7"; kind, speed and "default" may follow."""
    name, ip, *rest = words.split()
    kind = next((Kind(word) for word in rest if word.replace("-", "").isalpha() and word != "default"), Kind.PHYSICAL)
    speed = next((int(word) for word in rest if word.isdecimal()), None)
    made = Interface(name, index, kind, up=True, running=True, mtu=1500, addresses=(Address(ip, 24),), speed=speed)
    return replace(made, default_route="default" in rest, uplink=kind is Kind.VETH)


def node(*nics: str, mpi: object = None, infiniband: object = None, gpus: int = 8, **changed: object) -> Facts:
    facts: dict[type[object], object] = {
        LoginFacts: LoginFacts(Login(reached=True)),
        IdentityFacts: Absent("not asked"),
        NicFacts: NicFacts((LOOPBACK, *(nic(index, words) for index, words in enumerate(nics, 2)))),
        InfinibandFacts: infiniband or Absent("no HCA"),
        EnvironmentFacts: changed.get("environment", EnvironmentFacts({}, {})),
        LoadedNcclFacts: LoadedNcclFacts("2.32.3", "/opt/venv/libnccl.so.2"),
        NcclPickFacts: Absent("not asked"),
        NetPluginFacts: changed.get("plugin", Absent("no network plug-in of NCCL")),
        LinkFacts: Absent("not asked"),
        InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {}),
        GpuFacts: GpuFacts(tuple(Gpu(i, "NVIDIA H100 80GB HBM3") for i in range(gpus)), "550.54", "12.4", "nvml"),
        MpiDaemonFacts: Absent("not asked"),
        MpiSettingsFacts: MpiSettingsFacts({}),
        MpiFacts: mpi or MpiFacts("Open MPI", "4.1.4", "/usr/bin/mpirun"),
    }
    return {**facts, **{fact: changed[fact.__name__] for fact in facts if fact.__name__ in changed}}


def plan(
    *facts: Facts, nodes: tuple[Node, ...] = NODES, port: int | None = None, root: bool = False, **told: Any
) -> LaunchPlan:
    named = linked(dict(zip((listed.name for listed in nodes), facts, strict=True)))
    return propose(Cluster(nodes, named), Settings(port=port, **told), user_is_root=root)
