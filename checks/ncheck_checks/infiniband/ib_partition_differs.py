"""InfiniBand ports are in partitions that cannot talk to each other

## What it finds
InfiniBand ports whose P_Key, at the index that NCCL uses (0, or NCCL_IB_PKEY), names another partition than on other
nodes, or that have none there; and two or more nodes that are limited members of a partition (P_Keys below 0x8000, such
as 0x7fff): a limited member talks to full members only. Any partition is fine if all nodes are full members of it: in
clouds it is not 0xffff.

## Why it matters
Switches and adapters drop packets between partitions without a word. NCCL connects over TCP, then ends with "Got
completion with error 12" or "ibv_modify_qp failed with Connection timed out". Clouds put groups of virtual machines
into partitions of their own: machines of different groups then cannot talk over InfiniBand.

## What to type
`grep . /sys/class/infiniband/*/ports/*/pkeys/[0-3]` on two nodes. If they share another index with a P_Key of 0x8000 or
more, `export NCCL_IB_PKEY=INDEX` for the job. Partitions are set up in the subnet manager (partitions.conf of opensm).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.hcas import HcaFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.hca import nccl_value, ports_of_job
from ncheck.nccl.hca_ports import Place, differing, only_one

FULL = 0x8000  # the bit of a full member; the other bits name the partition
FIX = "grep . /sys/class/infiniband/*/ports/*/pkeys/[0-3]"


@cluster_check(
    "NC415", Severity.ERROR, InfinibandFacts, HcaFacts, also=(EnvironmentFacts, LoadedNcclFacts), next_step="ticket"
)
def ib_partition_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    keys = _keys(cluster)
    for node, own in keys.items():
        if not own:
            yield NotApplicable("no Active InfiniBand port whose P_Keys can be read", (node,))
    keys = {node: own for node, own in keys.items() if own}
    partitions = {node: {place: _partition(key) for place, key in own.items()} for node, own in keys.items()}
    ports = {node: cluster[node][InfinibandFacts] for node in keys}
    for parted, places in differing(ports, partitions, only_one).items():
        message = f"{', '.join(places)}: in different partitions: {parted.summary()}"
        yield Problem(message, FIX, nodes=parted.odd, look=True, summary="InfiniBand partitions differ")
    limited = {node: _limited(own) for node, own in keys.items()}
    for found, nodes in nodes_by_value({node: own for node, own in limited.items() if own}).items():
        if len(nodes) > 1:
            message = f"{found}: limited members of their partition, which cannot talk to each other"
            yield Problem(message, FIX, nodes=nodes, look=True, summary="limited members of a partition")


def _keys(cluster: Cluster) -> dict[str, dict[Place, int]]:
    """Return the P_Key that NCCL uses of each InfiniBand port, by node; 0 where there is none at that index."""
    keys: dict[str, dict[Place, int]] = {}
    for name, ports in ports_of_job(cluster).items():
        details, setting = cluster[name][HcaFacts], nccl_value(cluster[name], "NCCL_IB_PKEY")
        index = int(setting) if setting.isdecimal() else 0
        tables = {port.place: details.of(*port.place).pkeys for port in ports if port.link_layer == "InfiniBand"}
        keys[name] = {place: table[index] if index < len(table) else 0 for place, table in tables.items() if table}
    return keys


def _partition(key: int) -> str:
    return f"partition {key & ~FULL:#06x}" if key & ~FULL else "no partition"


def _limited(keys: Mapping[Place, int]) -> str:
    """Return the limited member ports of a node, such as "mlx5_0 port 1 (0x7fff)"."""
    own = [f"{hca} port {number} ({key:#06x})" for (hca, number), key in keys.items() if key and not key & FULL]
    return ", ".join(own)
