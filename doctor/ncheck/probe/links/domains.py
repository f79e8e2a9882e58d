"""NVLink domains of several nodes: nodes of one fabric cluster and clique reach each other by NVLink, not by NICs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.nccl.settings import is_on, release_of
from ncheck.probe.links.algorithms import settings_on
from ncheck.probe.links.ceiling import Ceiling, Component, unknown
from ncheck.probe.links.gpu_links import generation_of, of_op
from ncheck.probe.links.hardware import NodeHardware

_SINCE = (2, 21)
_NEEDED = ("NCCL_MNNVL_ENABLE", "NCCL_CUMEM_ENABLE")  # each is on where it is not set
_STARTED = 3  # the state of a fabric that came up


@dataclass(frozen=True)
class Domains:
    """How many NVLink domains a group of nodes has, each with two of its nodes or more; 0 where the network carries all
    data. `without` tells why NCCL does not use NVLink between nodes that have it.
    """

    count: int = 0
    without: str = ""


def domains_of(nodes: Sequence[tuple[str, NodeHardware, str]]) -> Domains:
    """Return the domains of these nodes, each with its hardware and the version of NCCL there ("" if unknown)."""
    sizes = Counter(domain_of(hardware) for _, hardware, _ in nodes)
    if None in sizes or min(sizes.values()) < 2:  # noqa: PLR2004  a domain of one node is its own NVLink
        return Domains()
    without = next((why for node in nodes if (why := _without(*node))), "")
    return Domains(0, without) if without else Domains(len(sizes))


def across(node: str, hardware: NodeHardware, op: Op = Op.ALL_REDUCE) -> Ceiling:
    """Return what a ring through all GPUs of a domain carries: the NVLinks of the GPU with the fewest."""
    generation = generation_of(hardware.gpus.models[0]) if hardware.gpus and len(hardware.gpus.models) == 1 else None
    links = {gpu.called: gpu.active_links for gpu in hardware.health.gpus} if hardware.health else {}
    fewest, most = min(links.values(), default=0), max(links.values(), default=0)
    if generation is None or not fewest:
        return unknown(f"the NVLinks between {node} and the nodes of its domain")
    lowered = tuple(f"{fewest} of {most} NVLinks at {gpu} of {node}" for gpu, own in links.items() if own < most)
    term = f"ring over the NVLink domain: {fewest} NVLinks x {generation.each:g} GB/s"
    return of_op(op, Ceiling(fewest * generation.each, term, lowered, component=Component.DOMAIN))


def domain_of(hardware: NodeHardware) -> tuple[str, int] | None:
    """Return the domain of all GPUs of a node, None where it has none or they are not in the same."""
    fabrics = [gpu.fabric for gpu in hardware.health.gpus] if hardware.health else []
    found = {
        (one.cluster, one.clique) if one and one.cluster and (one.state, one.status) == (_STARTED, 0) else None
        for one in fabrics
    }
    return found.pop() if len(found) == 1 else None


def _without(node: str, hardware: NodeHardware, version: str) -> str:
    settings, release = settings_on(hardware), release_of(version)
    if release and release[:2] < _SINCE:
        return f"NCCL {version} uses no NVLink between nodes (2.21 does)"
    off = (settings[name] for name in _NEEDED if name in settings and not is_on(settings, name))
    return next((f"no NVLink between nodes: {one.described} on {node}" for one in off), "")
