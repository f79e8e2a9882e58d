"""vLLM would ask Ray for a node by an address that Ray does not know

## What it finds
Nodes on which Ray runs as this user, and vLLM would call the node by another address than Ray: VLLM_HOST_IP of the
login or of Ray's own processes is another address, or it is unset, vLLM is installed, and Ray's address is not the one
on the default route, which vLLM then takes.

Where Ray runs in a container that shares the node's network, vLLM runs there, too: only the variables of Ray's own
processes count. With `--enter`, ncheck looks from inside the container.

## Why it matters
vLLM asks for a GPU on the resource node:ADDRESS, with the address that it found for itself. Ray has a resource of that
name only for the address by which it knows the node, so vLLM waits: "Waiting for creating a placement group", and "No
available node types can fulfill resource request {'node:192.168.50.192': 0.001, 'GPU': 1.0}". `ray status` shows that
all GPUs are free. It is usual on machines with two networks (vllm-project/vllm#7815, #13521, #14186).

## What to type
Set VLLM_HOST_IP to the address of `ray start --node-ip-address`, each node's own, before `ray start` and before `vllm
serve`: `ncheck plan nodes.txt --for vllm` prints these lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, PLAN, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.host_load import HostLoadFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.own_address import shown

HOST_IP = "VLLM_HOST_IP"


@node_check("NC343", Severity.WARNING, HostLoadFacts, EnvironmentFacts, NicFacts, also=(InterpreterFacts,))
def vllm_and_ray_disagree(node: NodeView) -> Iterator[Problem | NotApplicable]:
    raylets = node[HostLoadFacts].raylets
    if len({shown(raylet.address) for raylet in raylets}) != 1:
        return  # there is none, or it is unknown which one vLLM would join
    ray, login = shown(raylets[0].address), node[EnvironmentFacts].variables.get(HOST_IP, "")
    sources = [("its own processes have", raylet.host_ip) for raylet in raylets]
    contained = any(raylet.contained for raylet in raylets)
    if not contained:
        sources.insert(0, ("every login has", login))
    wrong = [f"{who} {HOST_IP}={shown(address)}" for who, address in sources if address and shown(address) != ray]
    unset = not any(address for _, address in sources)
    if unset and not contained and _has_vllm(node) and (by_itself := _on_default_route(node)) not in ("", ray):
        wrong = [f"{HOST_IP} is unset, and vLLM would call this node {by_itself}"]
    if wrong:
        yield Problem(
            f"Ray knows this node by {ray}, but {' and '.join(dict.fromkeys(wrong))}", f"{PLAN} --for vllm",
            tuple(f"pid {raylet.pid} raylet" for raylet in raylets), where=HERE, look=True,
            summary="vLLM and Ray call it by different addresses",
        )  # fmt: skip
    elif unset and contained:
        yield NotApplicable(f"Ray runs in a container, without {HOST_IP}: which address vLLM takes there was not read")


def _has_vllm(node: NodeView) -> bool:
    python = node.maybe(InterpreterFacts)
    return isinstance(python, InterpreterFacts) and "vllm" in python.frameworks


def _on_default_route(node: NodeView) -> str:
    """Return the one IPv4 address on the default route; "" if there is none, or a choice."""
    nics = [nic for nic in node[NicFacts].interfaces if nic.default_route]
    found = [one.ip for nic in nics for one in nic.addresses if ":" not in one.ip and one.scope == "global"]
    return found[0] if len(found) == 1 else ""
