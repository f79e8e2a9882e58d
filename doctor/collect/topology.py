"""How GPUs and NICs hang together: `nvidia-smi topo -m`."""

from __future__ import annotations

from doctor.collect.nvidia import DEVICES, smi_trouble
from doctor.collect.reader import Reader
from doctor.model.evidence import Command, Evidence
from doctor.model.fact import Read, Unread
from doctor.model.facts import TopologyFacts
from doctor.parse.topology_matrix import parse_topology

TOPO = Command(("nvidia-smi", "topo", "-m"))


def topology(evidence: Evidence) -> Read[TopologyFacts]:
    """Read the matrix; an answer that is no matrix is Unread, with nvidia-smi's first words."""
    if why := smi_trouble(evidence, TOPO):
        return why
    said = evidence.reply(TOPO).stdout
    try:
        return parse_topology(said)[0]
    except ValueError as error:
        return Unread(f"{error}; it begins: {said.strip().splitlines()[0][:80]}", fix="nvidia-smi topo -m")


READERS = (Reader(TopologyFacts, (TOPO, DEVICES), topology),)
