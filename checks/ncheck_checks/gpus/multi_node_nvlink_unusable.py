"""NVLink between nodes cannot be used

## What it finds
Only where nodes share an NVLink domain (GB200 NVL72 and its kind: the GPUs of several nodes report one cluster UUID):
nodes whose nvidia-imex.service does not run, nodes with no IMEX channel that this user can open, and nodes whose GPUs
are in another clique of the domain than those of most nodes.

## Why it matters
NCCL then uses the network instead of NVLink between nodes, without a word: a tenth of the bandwidth or less. In another
clique a GPU cannot be reached by NVLink at all.

## What to type
`sudo systemctl status nvidia-imex` and `nvidia-imex-ctl -N` show the domain; `ls -l /dev/nvidia-caps-imex-channels` the
channels: `sudo modprobe nvidia NVreg_CreateImexChannel0=1`, or those that Slurm or Kubernetes gives to a job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check, nodes_by_value, split
from ncheck.facts.fabric_manager import FabricManagerFacts
from ncheck.facts.gpu_health import GpuHealthFacts, NvidiaDriverFacts

_MEMBERS = 2  # nodes that make a domain across nodes


@cluster_check("NC537", Severity.WARNING, GpuHealthFacts, NvidiaDriverFacts, also=(FabricManagerFacts,))
def multi_node_nvlink_unusable(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    health, drivers = cluster.facts(GpuHealthFacts), cluster.facts(NvidiaDriverFacts)
    services = cluster.facts(FabricManagerFacts)
    domains = nodes_by_value({node: cluster_id for node, facts in health.items() if (cluster_id := _domain(facts))})
    for members in (nodes for nodes in domains.values() if len(nodes) >= _MEMBERS):
        stopped = [node for node in members if node in services and services[node].imex != "active"]
        closed = [node for node in members if not drivers[node].usable_channels and node not in stopped]
        for node in stopped:
            message = f"nvidia-imex.service is {services[node].imex}: NVLink between nodes is not used"
            fix = "sudo systemctl enable --now nvidia-imex"
            yield Problem(message, fix, nodes=(node,), summary="IMEX does not run")
        for node in closed:
            there = drivers[node].channels
            what = f"none of the {there} IMEX channels can be opened" if there else "there is no IMEX channel"
            message = f"{what}: NVLink between nodes is not used"
            fix = "ls -l /dev/nvidia-caps-imex-channels"
            yield Problem(message, fix, nodes=(node,), look=True, summary="no usable IMEX channel")
        yield from _cliques({node: health[node] for node in members})


def _domain(facts: GpuHealthFacts) -> str:
    return next((gpu.fabric.cluster for gpu in facts.gpus if gpu.fabric and gpu.fabric.cluster), "")


def _cliques(health: Mapping[str, GpuHealthFacts]) -> Iterator[Problem]:
    cliques = {
        node: ", ".join(sorted({str(gpu.fabric.clique) for gpu in facts.gpus if gpu.fabric}))
        for node, facts in health.items()
    }
    if parted := split(cliques):
        message = f"the clique of the NVLink domain differs: {parted.summary()}"
        fix = "nvidia-smi -q"
        yield Problem(message, fix, nodes=parted.odd, look=True, summary="the NVLink clique differs")
