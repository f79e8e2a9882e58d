"""How GPUs and NICs are connected to each other: `nvidia-smi topo -m`, or `amd-smi topology`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ncheck.facts.amd import LINKS
from ncheck.facts.definition import Fact
from ncheck.facts.gpus import DEVICES, amd_says, smi_trouble
from ncheck.model.evidence import Command, Evidence
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.topology_matrix import parse_topology


@dataclass(frozen=True)
class TopologyFacts:
    """`nvidia-smi topo -m`: `pairs` maps (row, column) to X, NV12, PIX, PXB, PHB, NODE or SYS, in both directions.

    Of AMD's GPUs it is XGMI or PCIE, and there are no NICs.

    `nics` are the names of the columns or rows as printed (NIC0 or mlx5_0), `legend` maps NIC0 to mlx5_0.
    `cpu_affinity` and `numa_affinity` map GPU0 to "0-31,64-95" and "0".
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    pairs: Mapping[tuple[str, str], str]
    legend: Mapping[str, str]
    cpu_affinity: Mapping[str, str]
    numa_affinity: Mapping[str, str]
    gpu_numa_id: Mapping[str, str] | None = None  # None: the driver prints no such column


_NUMBERED = re.compile(r"(?:NIC|HCA)\d+")  # NIC0, which the legend calls mlx5_0


TOPO = Command(("nvidia-smi", "topo", "-m"))


def topology(evidence: Evidence) -> Read[TopologyFacts]:
    """Read the matrix; other output is Unread, with its first line."""
    if why := smi_trouble(evidence, TOPO):
        return _of_amd(evidence, why) if isinstance(why, Absent) else why
    output = evidence.reply(TOPO).stdout
    try:
        return _matrix(output)
    except ValueError as error:
        return Unread(f"{error}; first line: {output.strip().splitlines()[0][:80]}", fix="nvidia-smi topo -m")


def _of_amd(evidence: Evidence, none_of_nvidia: Absent) -> Read[TopologyFacts]:
    """Read `amd-smi topology`: XGMI and PCIE between GPUs; it shows no NICs."""
    found = amd_says(LINKS, evidence)
    if isinstance(found, Absent):
        return none_of_nvidia
    if isinstance(found, Unread):
        return found
    names = {f"GPU{device['index']}" for device in found.devices} | {gpu for pair in found.links for gpu in pair}
    gpus = tuple(sorted(names, key=lambda name: int(name.removeprefix("GPU"))))
    return _complete(TopologyFacts(gpus, (), found.links, {}, {}, {}), ())


@lru_cache(maxsize=16)  # nodes of one type print the same long text
def _matrix(text: str) -> TopologyFacts:
    return _complete(*parse_topology(text))


def _complete(matrix: TopologyFacts, nameless: tuple[str, ...]) -> TopologyFacts:
    """Return a complete matrix. Raises ValueError for a truncated one: a missing path must not count as equal.

    `nameless` are the NICs for which the driver prints no name in the legend.
    """
    for gpu in matrix.gpus:
        for other in (*matrix.gpus, *matrix.nics):
            if gpu != other and (gpu, other) not in matrix.pairs:
                raise ValueError(f"the matrix is truncated: no path from {gpu} to {other}")
    for nic in matrix.nics:
        if _NUMBERED.fullmatch(nic) and nic not in matrix.legend and nic not in nameless:
            raise ValueError(f"the matrix is truncated: the legend does not name {nic}")
    return matrix


FACTS = (Fact(TopologyFacts, (TOPO, DEVICES, LINKS), topology),)
