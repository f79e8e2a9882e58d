"""Nodes with variables and lines of nccl.conf, for the checks of what was left behind."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.parse.nvidia_smi import Gpu

from tests.logins import logins

CONF = "/etc/nccl.conf"
INFINIBAND = HcaPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand")
DARK = HcaPort("mlx5_0", 1, "Down", "Polling", 10.0, "InfiniBand")


def node(
    *lines: str, ports: tuple[HcaPort, ...] = (), gpus: int = 8, nccl: str = "2.32.3", boot: str = "", **variables: str
) -> Facts:
    return {
        EnvironmentFacts: logins(variables, {CONF: lines} if lines else {CONF: Absent("not there")}),
        InfinibandFacts: InfinibandFacts(ports, "sysfs") if ports else Absent("no InfiniBand or RoCE device"),
        GpuFacts: GpuFacts(tuple(Gpu(i, "NVIDIA H100 80GB HBM3") for i in range(gpus)), "550.54", "12.4", "nvml"),
        IdentityFacts: IdentityFacts("n", boot, "net:[1]", 1000) if boot else Absent("not told"),
        LoadedNcclFacts: LoadedNcclFacts(nccl, "/opt/venv/libnccl.so.2"),
    }
