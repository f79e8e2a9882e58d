"""Two machines have the same hostname

## What it finds
Nodes with the same hostname (`uname -n`) that are different machines, or containers with separate networks.
one-machine-twice reports two names of one machine.

## Why it matters
Launchers and libraries use the hostname to find local ranks. Horovod and nccl-tests then number the ranks of both
machines as one host's and use GPUs that do not exist; Open MPI confuses the two daemons. NCCL hashes the hostname with
the boot id: containers of one host have the same boot id, so the hash is the same too, and NCCL sends data through
shared memory that they do not share. NCCL_HOSTID fixes that for NCCL only. Inside a job that MPI and Horovod did not
start, only containers of one host are reported.

## What to type
Give each machine its own name, `sudo hostnamectl set-hostname NAME` on it, or `docker run --hostname NAME` for a
container, and run again: `ncheck --select host-name-shared nodes.txt`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check, fold, is_name
from ncheck.facts.login import IdentityFacts
from ncheck.facts.run import JobFacts


@cluster_check("NC103", Severity.ERROR, IdentityFacts, also=(JobFacts,), blocks_plan=True)
def host_name_shared(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    named: dict[str, dict[str, IdentityFacts]] = defaultdict(dict)
    for node, identity in cluster.facts(IdentityFacts).items():
        named[identity.host_name][node] = identity
    for host_name, nodes in named.items():
        if len(nodes) == 1 and host_name:
            continue
        if not host_name:
            yield Inconclusive("its hostname could not be read", nodes=tuple(nodes))
        elif not all(identity.machine for identity in nodes.values()):
            yield Inconclusive(
                f"{fold(nodes)} have the same hostname and may be one machine or several", nodes=tuple(nodes)
            )
        elif len({identity.machine for identity in nodes.values()}) > 1 and not _harmless(cluster, nodes):
            yield _shared(host_name, nodes)


def _harmless(cluster: Cluster, nodes: Mapping[str, IdentityFacts]) -> bool:
    """Whether a job that runs does not mind: it was not started by host names, and NCCL tells the kernels apart."""
    jobs = cluster.facts(JobFacts).values()
    by_name = any(not job.running or job.launcher in ("mpirun", "horovodrun") for job in jobs) or not jobs
    return not by_name and len({identity.boot_id for identity in nodes.values()}) == len(nodes)


def _shared(host_name: str, nodes: Mapping[str, IdentityFacts]) -> Problem:
    one_kernel = len({identity.boot_id for identity in nodes.values()}) < len(nodes)
    renamed = next((node for node in nodes if node != host_name), host_name)
    return Problem(
        message=f"{fold(nodes)} all have the hostname {host_name}"
        + (", on one kernel: the same NCCL host hash" * one_kernel),
        fix=_renamed(host_name, renamed),
        evidence=tuple(f"{node}: {identity.host_name}, boot id {identity.boot_id}" for node, identity in nodes.items()),
        nodes=tuple(nodes),
        where=renamed,
        summary=f"hostname {host_name} is shared",
    )


def _renamed(host_name: str, node: str) -> str:
    """Return the command that gives one node its own hostname: the listed name, unless that is an address."""
    is_address = not is_name(node) or node.replace(".", "").isdigit()
    name = f"{host_name}-2" if is_address and is_name(host_name) else node
    return f"sudo hostnamectl set-hostname {quote(name)}"
