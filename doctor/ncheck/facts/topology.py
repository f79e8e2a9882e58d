"""How GPUs and NICs are connected to each other: `nvidia-smi topo -m`."""

from __future__ import annotations

import re
from functools import lru_cache

from ncheck.facts.gpus import DEVICES, smi_trouble
from ncheck.facts.reader import Reader
from ncheck.model.evidence import Command, Evidence
from ncheck.model.fact import Read, Unread
from ncheck.parse.topology_matrix import TopologyFacts, parse_topology

_NUMBERED = re.compile(r"(?:NIC|HCA)\d+")  # NIC0, which the legend calls mlx5_0


TOPO = Command(("nvidia-smi", "topo", "-m"))


def topology(evidence: Evidence) -> Read[TopologyFacts]:
    """Read the matrix; other output is Unread, with its first line."""
    if why := smi_trouble(evidence, TOPO):
        return why
    output = evidence.reply(TOPO).stdout
    try:
        return _matrix(output)
    except ValueError as error:
        return Unread(f"{error}; first line: {output.strip().splitlines()[0][:80]}", fix="nvidia-smi topo -m")


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


READERS = (Reader(TopologyFacts, (TOPO, DEVICES), topology),)
