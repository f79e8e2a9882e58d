"""How GPUs and NICs hang together: `nvidia-smi topo -m`."""

from __future__ import annotations

import re
from functools import lru_cache

from ncheck.facts.gpus import DEVICES, smi_trouble
from ncheck.facts.reader import Reader
from ncheck.model.evidence import Command, Evidence
from ncheck.model.fact import Read, Unread
from ncheck.parse.topology_matrix import TopologyFacts as TopologyFacts  # noqa: PLC0414  the fact of this module
from ncheck.parse.topology_matrix import parse_topology

_NUMBERED = re.compile(r"(?:NIC|HCA)\d+")  # NIC0, which the legend calls mlx5_0


TOPO = Command(("nvidia-smi", "topo", "-m"))


def topology(evidence: Evidence) -> Read[TopologyFacts]:
    """Read the matrix; an answer that is no matrix is Unread, with nvidia-smi's first words."""
    if why := smi_trouble(evidence, TOPO):
        return why
    said = evidence.reply(TOPO).stdout
    try:
        return _matrix(said)
    except ValueError as error:
        return Unread(f"{error}; it begins: {said.strip().splitlines()[0][:80]}", fix="nvidia-smi topo -m")


@lru_cache(maxsize=16)  # nodes of one kind print one text, and it is long
def _matrix(text: str) -> TopologyFacts:
    return _whole(*parse_topology(text))


def _whole(matrix: TopologyFacts, nameless: tuple[str, ...]) -> TopologyFacts:
    """Return a matrix with no path missing. Raises ValueError for one that was cut off: what is not there is not equal.

    `nameless` are the NICs that the driver itself gives no name in the legend.
    """
    for gpu in matrix.gpus:
        for other in (*matrix.gpus, *matrix.nics):
            if gpu != other and (gpu, other) not in matrix.pairs:
                raise ValueError(f"the matrix was cut off: no path from {gpu} to {other}")
    for nic in matrix.nics:
        if _NUMBERED.fullmatch(nic) and nic not in matrix.legend and nic not in nameless:
            raise ValueError(f"the matrix was cut off: the legend does not name {nic}")
    return matrix


READERS = (Reader(TopologyFacts, (TOPO, DEVICES), topology),)
