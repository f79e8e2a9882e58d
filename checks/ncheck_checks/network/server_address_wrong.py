"""VLLM_HOST_IP or SGLANG_HOST_IP is no address at which other nodes reach the node

## What it finds
Logins that set VLLM_HOST_IP or SGLANG_HOST_IP to the address of another node, to one that no interface of the node has,
to a loopback address, to that of a container bridge such as docker0, or to a name.

## Why it matters
vLLM and SGLang give this address to the other nodes. The same value on every node, as a shared start-up file sets it,
makes all workers appear on one node: "Every node should have a unique IP address". With an address that Ray does not
know, or with a name, vLLM waits forever for its placement group: "No available node types can fulfill resource request
{'node:10.1.0.7': 0.001, 'GPU': 1.0}".

## What to type
Remove the line of the start-up file that sets it. `ncheck plan nodes.txt --for vllm` prints the right value for each
node. A start-up file that all nodes share can ask for it: `export VLLM_HOST_IP=$(hostname -I | cut -d" " -f1)` is right
where the first address is in the job's network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nics import NicFacts
from ncheck.login_variables import set_at, to_remove
from ncheck.network.own_address import shown, why_unusable

NAMES = ("VLLM_HOST_IP", "SGLANG_HOST_IP")


@cluster_check("NC341", Severity.WARNING, EnvironmentFacts, NicFacts)
def server_address_wrong(cluster: Cluster) -> Iterator[Problem]:
    nodes = cluster.facts(NicFacts)
    for node in cluster:
        environment = node[EnvironmentFacts]
        for name in NAMES:
            address = environment.variables.get(name, "")
            if address and (why := why_unusable(address, node.name, nodes)):
                fix = to_remove(environment, name)
                yield Problem(
                    f"every login has {name}={shown(address)}, which {why}", fix.line,
                    set_at(environment.start_up.get(name, ())), (node.name,), fix.where, fix.look,
                    f"{name} is wrong",
                )  # fmt: skip
