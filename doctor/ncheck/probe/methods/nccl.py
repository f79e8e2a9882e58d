"""NCCL by ncheck's own rank program: one rank a GPU, started by the agents, under the plan's variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.probe import Means, Stage
from ncheck.hostlist import fold
from ncheck.model.fact import Absent, Unread
from ncheck.parity import nodes_by_value
from ncheck.probe.methods.ground import set_there
from ncheck.probe.methods.method import GIB, KIB, MIB, Ground, Part, Way

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue


_KEPT_FREE = 2 * GIB  # of a GPU's memory, for NCCL's own buffers and the driver's context


_BUFFERS = 2  # what is sent and what is received


_UNKNOWN_MEMORY = GIB  # where the driver does not tell how much there is, no size beyond this


_ONE = 0.1  # seconds that one all-reduce of the largest usual size may take


_UNKNOWN_RATE = 1e9  # bytes a second, where no interface says how fast it is


_SWEEP = (8, 64 * KIB, MIB, 16 * MIB, 256 * MIB, GIB)


_LARGE = (MIB, 64 * MIB, GIB)


_OTHER_PLUGIN = "NCCL_NET_PLUGIN"


class Nccl(Way):
    """The library that the job would load, driven by ctypes."""

    means = Means.NCCL
    sizes: ClassVar = {Stage.INSIDE: _SWEEP, Stage.PAIR: _LARGE, Stage.SCALING: _LARGE, Stage.ALL: _SWEEP}
    least, most = 4.0, 20.0
    meets = ids = True

    def unfit(self, ground: Ground) -> str:
        """Say what is missing for it on some node, the same on several told once."""
        return unfit_for_nccl(ground)

    def ranks(self, ground: Ground, stage: Stage, node: str) -> int:
        """Return one rank a node where the NICs are measured, else what the job has there."""
        return 1 if stage is Stage.PAIR else ground.slots[node]

    def usual(self, ground: Ground, stage: Stage) -> tuple[int, ...]:
        """Return sizes that the network between nodes carries in little time; GPUs of one node carry all of them."""
        sizes = self.sizes[stage]
        most = GIB if stage is Stage.INSIDE else _rate(ground) * _ONE
        return tuple(size for size in sizes if size <= most) or sizes[:1]

    def fitting(self, ground: Ground, stage: Stage, sizes: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return the sizes that fit twice into the fullest GPU's free memory."""
        most = min((_room(gpus) for gpus in ground.cluster.connected_facts(GpuFacts).values()), default=_UNKNOWN_MEMORY)
        return tuple(size for size in sizes if size <= most)

    def net(self, ground: Ground, stage: Stage) -> str:
        """Pin what the plan means, so that NCCL fails rather than go another way; see `pinned_net`."""
        return "" if stage is Stage.INSIDE else pinned_net(ground)

    def variables(self, ground: Ground, node: str, net: str) -> dict[str, str | None]:
        """Return the plan's variables, and the network that is pinned."""
        return {**super().variables(ground, node, net), **({"NCCL_NET": net} if net else {})}

    def part(self, ground: Ground, part: Part) -> Mapping[str, JsonValue]:  # noqa: ARG002  it knows all it needs
        """Return the rendezvous, the node's first rank, and its GPUs as CUDA counts them in the job's environment."""
        return {"id": part.id, "first": part.first, "gpus": list(range(part.ranks))}


WAY = Nccl()


def unfit_for_nccl(ground: Ground) -> str:
    """Say why NCCL cannot run on all of these nodes, one rank a GPU; "" where it can.

    Libraries that differ are refused, unless by --force: NCCL before 2.23 hangs with them, and later ones fail.
    """
    if why := _first_of(_gpus(ground), _libraries(ground), _slots(ground)):
        return why
    loaded = ground.cluster.connected_facts(LoadedNcclFacts)
    versions = nodes_by_value({node: loaded[node].version for node in ground.nodes})
    if len(versions) > 1 and not ground.settings.force:
        told = ", ".join(f"{version} on {fold(nodes)}" for version, nodes in versions.items())
        return f"NCCL differs, and such ranks hang or fail together: {told}"
    return ""


def unfit_for_ranks(ground: Ground) -> str:
    """Say which nodes have no GPU for each rank; "" where all have. Which NCCL the ranks bring is their own affair."""
    return _first_of(_gpus(ground), _slots(ground))


def _first_of(*troubles: Iterator[tuple[str, str]]) -> str:
    """Say the first kind of trouble that there is, the same on several nodes once."""
    told = (
        "; ".join(f"{why} on {fold(nodes)}" for why, nodes in nodes_by_value(dict(one)).items()) for one in troubles
    )
    return next(filter(None, told), "")


def pinned_net(ground: Ground) -> str:
    """Return what NCCL_NET is set to: "IB" where data goes by HCAs, else "Socket".

    Nothing is pinned where somebody has chosen, or where a plug-in may carry it (EFA and the like).
    """
    if any(set_there(ground, node).keys() & {"NCCL_NET", _OTHER_PLUGIN} for node in ground.nodes):
        return ""
    if ground.rdma:
        return "IB"
    ports = [port for held in ground.cluster.connected_facts(InfinibandFacts).values() for port in held.ports]
    return "" if any(port.state == "Active" for port in ports) else "Socket"


def _gpus(ground: Ground) -> Iterator[tuple[str, str]]:
    for node in ground.nodes:
        if not ground.gpus.get(node):
            held = ground.cluster.known[node].get(GpuFacts)
            hidden = isinstance(held, GpuFacts) and held.gpus
            why = "CUDA_VISIBLE_DEVICES shows no GPU" if hidden else "no GPU"
            yield node, f"the GPUs could not be read ({held.reason})" if isinstance(held, Unread) else why


def _libraries(ground: Ground) -> Iterator[tuple[str, str]]:
    for node in ground.nodes:
        held = ground.cluster.known[node].get(LoadedNcclFacts)
        if isinstance(held, (Unread, Absent)):
            yield node, f"no NCCL that the job's interpreter loads ({held.reason})"
        elif isinstance(held, LoadedNcclFacts) and held.static:
            yield node, "NCCL is inside torch, and no other program can call it there:"


def _slots(ground: Ground) -> Iterator[tuple[str, str]]:
    for node in ground.nodes:
        slots, gpus = ground.slots[node], ground.gpus[node]
        if slots > gpus:
            yield node, f"{slots} ranks and {gpus} GPU{'' if gpus == 1 else 's'}: each needs one of its own"


def _room(gpus: GpuFacts) -> int:
    """Return the bytes that fit twice into what the fullest of the GPUs has free."""
    free = [gpu.memory_total - (gpu.memory_used or 0) for gpu in gpus.gpus if gpu.memory_total]
    return max(0, min(free) - _KEPT_FREE) // _BUFFERS if len(free) == len(gpus.gpus) and free else _UNKNOWN_MEMORY


def _rate(ground: Ground) -> float:
    """Return the bytes a second that the slowest node's network carries, as its links say."""
    ports = ground.cluster.connected_facts(InfinibandFacts)
    return min((_node_rate(ground, node, ports.get(node)) for node in ground.nodes), default=_UNKNOWN_RATE)


def _node_rate(ground: Ground, node: str, ports: InfinibandFacts | None) -> float:
    planned = ground.planned.get(node, ())
    if ground.rdma and ports:
        rates = [port.rate or 0.0 for port in ports.ports if port.name in planned]
        return max(rates, default=0.0) * 1e9 / 8 or _UNKNOWN_RATE
    held = ground.network.members.get(node, ()) if ground.network else ()
    speeds = [seat.interface.speed for seat in held if seat.interface.speed and seat.interface.name in planned]
    return max(speeds, default=0) * 1e6 / 8 or _UNKNOWN_RATE
