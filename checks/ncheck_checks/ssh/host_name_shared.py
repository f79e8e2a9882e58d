"""Two machines have one host name

## What it finds
Nodes that call themselves by the same host name (`uname -n`) and are different machines, or containers with networks
of their own. Two names of one machine are another finding: one-machine-twice.

## Why it matters
Launchers and libraries count who is local by the host name. Horovod and nccl-tests then number the ranks of both
machines as one host's and reach for GPUs that are not there; Open MPI takes one daemon for the other. NCCL hashes the
host name with the boot id: on containers of one host, which share the boot id, that hash is one too, and NCCL sends
data through shared memory that the two do not share. NCCL_HOSTID mends that for NCCL alone.

## What to type
Give each machine its own name, `sudo hostnamectl set-hostname NAME` on it, or `docker run --hostname NAME` for a
container, and look again: `ncheck --select host-name-shared nodes.txt`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.hostlist import fold, is_name


@cluster_check("NC103", Severity.ERROR, IdentityFacts, blocks_plan=True)
def host_name_shared(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    named: dict[str, dict[str, IdentityFacts]] = defaultdict(dict)
    for node, who in cluster.facts(IdentityFacts).items():
        named[who.host_name][node] = who
    for host_name, nodes in named.items():
        if len(nodes) == 1 and host_name:
            continue
        if not host_name:
            yield Inconclusive("its host name could not be read", nodes=tuple(nodes))
        elif not all(who.machine for who in nodes.values()):
            yield Inconclusive(
                f"{fold(nodes)} share a host name, and may be one machine or several", nodes=tuple(nodes)
            )
        elif len({who.machine for who in nodes.values()}) > 1:
            yield _shared(host_name, nodes)


def _shared(host_name: str, nodes: Mapping[str, IdentityFacts]) -> Problem:
    one_kernel = len({who.boot_id for who in nodes.values()}) < len(nodes)
    return Problem(
        message=f"{fold(nodes)} all call themselves {host_name}" + (", on one kernel: one NCCL host hash" * one_kernel),
        fix=_renamed(host_name, next((node for node in nodes if node != host_name), host_name)),
        evidence=tuple(f"{node}: {who.host_name}, boot id {who.boot_id}" for node, who in nodes.items()),
        nodes=tuple(nodes),
    )


def _renamed(host_name: str, node: str) -> str:
    """Return the line that gives one node a name of its own: the listed one, unless that is an address."""
    is_address = not is_name(node) or node.replace(".", "").isdigit()
    name = f"{host_name}-2" if is_address and is_name(host_name) else node
    return f"ssh {quote(node)} sudo hostnamectl set-hostname {quote(name)}"
