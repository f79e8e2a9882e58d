"""Small clusters of a few words per node, and the variables that a plan would set on them."""

from __future__ import annotations

from collections.abc import Sequence

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Login
from ncheck.model.fact import Absent
from ncheck.plan.advice import Advice
from ncheck.plan.variables import advise

from .links import linked
from .planned import LOOPBACK, nic

IFNAME = "NCCL_SOCKET_IFNAME"
RULE = "the first in the kernel's order except docker*, lo and virbr*"
DOCKER = "docker0 172.17.0.1 container-bridge"
COMPOSE = "br-5b1d7c3e9f20 172.18.0.1 container-bridge"
MANAGEMENT, FAST = "eth0 10.1.0.# 1000 default", "eth1 10.2.0.# 10000"
ACTIVE = InfinibandFacts((HcaPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand"),), "sysfs")
UNTESTED = Absent("--mesh none")


def node(*nics: str, **changed: object) -> Facts:
    """Make a node of "eth0 10.1.0.7"; kind, speed and "default" may follow."""
    facts: dict[type[object], object] = {
        LoginFacts: LoginFacts(Login(reached=True)),
        NicFacts: NicFacts((LOOPBACK, *(nic(index, words) for index, words in enumerate(nics, 2)))),
        InfinibandFacts: Absent("no HCA"),
        LoadedNcclFacts: LoadedNcclFacts("2.32.3", "/opt/libnccl.so.2"),
        JobFacts: JobFacts(),
    }
    return {**facts, **{type(value): value for value in changed.values()}}


def two(*words: str) -> list[Facts]:
    """Make two nodes of words in which # is the node's own number."""
    return [node(*(word.replace("#", str(number)) for word in words)) for number in (1, 2)]


def advised(*facts: Facts, dead: Sequence[str] = (), tested: bool = True) -> Advice:
    nodes = {f"n{number}": known for number, known in enumerate(facts, 1)}
    untested = {name: {**known, LinkFacts: UNTESTED} for name, known in nodes.items()}
    return advise(Cluster.of(linked(nodes, dead) if tested else untested))


def chosen(advice: Advice) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return the value for all nodes, the network, and the notes."""
    return advice.env[IFNAME].value, advice.network.subnet if advice.network else None, advice.notes
