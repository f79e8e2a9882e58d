"""Collectives by NCCL (AMD: RCCL), one rank per GPU, started by the agents with the plan's variables; diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import OF_INFINIBAND, NetPluginFacts
from ncheck.facts.nics import Address, NicFacts
from ncheck.hostlist import fold
from ncheck.model.fact import Absent, Unread
from ncheck.model.op import Op
from ncheck.nccl.settings import release_of
from ncheck.parity import nodes_by_value
from ncheck.probe.methods.context import nccl_variables
from ncheck.probe.methods.driver import GIB, KIB, MIB, Driver, NodeTask
from ncheck.probe.node_result import Method, Stage, Step
from ncheck.probe.parse.nccl_diagnostics import SINCE, VARIABLES

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue
    from ncheck.probe.methods.context import ProbeContext


_KEPT_FREE = 2 * GIB  # of a GPU's memory, for NCCL's own buffers and the driver's context
_BUFFERS = 2  # one for sending, one for receiving
_UNKNOWN_MEMORY = GIB  # the largest size, where the GPU driver does not report its memory
_ONE = 0.1  # seconds that one operation of the largest default size may take
_UNKNOWN_RATE = 1e9  # bytes per second, where no interface reports its speed
_SWEEP = (8, 64 * KIB, MIB, 16 * MIB, 256 * MIB, GIB)
_LARGE = (MIB, 64 * MIB, GIB)
_SEND_SINCE = (2, 7)  # ncclSend and ncclRecv
_OTHER_PLUGIN = "NCCL_NET_PLUGIN"


class Nccl(Driver):
    """The NCCL library that the job would load, called through ctypes."""

    method = Method.NCCL
    sizes: ClassVar = {
        **dict.fromkeys((Stage.INSIDE, Stage.ALL), _SWEEP),
        **dict.fromkeys((Stage.PAIR, Stage.SCALING, Stage.BOUNDARY), _LARGE),
    }
    least, most = 4.0, 20.0
    meets = ids = True
    ops: ClassVar = frozenset(Op)

    def unfit(self, context: ProbeContext) -> str:
        """Return what is missing on which nodes."""
        return unfit_for_nccl(context)

    def lacks(self, context: ProbeContext, op: Op) -> str:
        """Return which nodes have an NCCL without ncclSend and ncclRecv, where the operation is made of those."""
        loaded = context.cluster.connected_facts(LoadedNcclFacts)
        releases = {node: release_of(loaded[node].version) for node in context.nodes if node in loaded}
        old = [node for node, release in releases.items() if () < release < _SEND_SINCE]
        if old and op in (Op.ALL_TO_ALL, Op.SEND_RECV):
            return f"NCCL before {'.'.join(map(str, _SEND_SINCE))} on {fold(old)} has no {op.value}"
        return super().lacks(context, op)

    def ranks(self, context: ProbeContext, stage: Stage, node: str) -> int:
        """Return one rank per node for pairs, which measure the NICs; otherwise the ranks of the job."""
        return 1 if stage is Stage.PAIR else context.slots[node]

    def usual(self, context: ProbeContext, stage: Stage) -> tuple[int, ...]:
        """Return the sizes that the network carries in little time; inside a node all of them."""
        sizes = self.sizes[stage]
        most = GIB if stage is Stage.INSIDE else rate(context) * _ONE
        return tuple(size for size in sizes if size <= most) or sizes[:1]

    def fitting(self, context: ProbeContext, stage: Stage, sizes: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return the sizes that fit twice into the free memory of the fullest GPU."""
        most = min(
            (_room(gpus) for gpus in context.cluster.connected_facts(GpuFacts).values()), default=_UNKNOWN_MEMORY
        )
        return tuple(size for size in sizes if size <= most)

    def net(self, context: ProbeContext, stage: Stage) -> str:
        """Pin the plan's network, so that NCCL fails instead of silently using another one; see `pinned_net`."""
        return "" if stage is Stage.INSIDE else pinned_net(context)

    def variables(self, context: ProbeContext, node: str, net: str) -> dict[str, str | None]:
        """Return the plan's variables and the pinned network."""
        return {**super().variables(context, node, net), **({"NCCL_NET": net} if net else {})}

    def own_arguments(self, context: ProbeContext, task: NodeTask) -> Mapping[str, JsonValue]:  # noqa: ARG002
        """Return the NCCL identifier, the node's first rank, and its GPUs by CUDA's index in the job's environment."""
        return {
            "id": task.id, "first": task.first, "gpus": list(range(task.ranks)), "in_place": also_in_place(task.step)
        }  # fmt: skip


NCCL = Nccl()


def also_in_place(step: Step) -> bool:
    """Return whether each size is measured in place, too: where a curve is shown, and not in what is only compared."""
    return step.stage in (Stage.INSIDE, Stage.ALL)


def unfit_for_nccl(context: ProbeContext) -> str:
    """Return why NCCL cannot run on all of these nodes with one rank per GPU, "" if it can.

    Different NCCL versions are refused without --force: before 2.23 such ranks hang, later ones fail.
    """
    if why := _first_of(_makers(context), _gpus(context), _libraries(context), _slots(context)):
        return why
    loaded = context.cluster.connected_facts(LoadedNcclFacts)
    versions = nodes_by_value({node: loaded[node].version for node in context.nodes})
    if len(versions) > 1 and not context.settings.force:
        listed = ", ".join(f"{version} on {fold(nodes)}" for version, nodes in versions.items())
        return f"the nodes have different NCCL versions, whose ranks hang or fail together: {listed}"
    return ""


def unfit_for_ranks(context: ProbeContext) -> str:
    """Return which nodes lack a GPU for each rank, "" if none does. The version of NCCL does not matter here."""
    return _first_of(_gpus(context), _slots(context))


def _first_of(*problems: Iterator[tuple[str, str]]) -> str:
    """Return the first kind of problem that exists, each reason once with its nodes."""
    texts = (
        "; ".join(f"{why} on {fold(nodes)}" for why, nodes in nodes_by_value(dict(kind)).items()) for kind in problems
    )
    return next(filter(None, texts), "")


def pinned_net(context: ProbeContext) -> str:
    """Return the value for NCCL_NET: "IB" where data goes through HCAs, else "Socket".

    Nothing is pinned where the user has set it, or where a network plug-in (such as EFA's) may carry the data. One
    that is of InfiniBand is measured as NCCL's own.
    """
    if any(nccl_variables(context, node).keys() & {"NCCL_NET", _OTHER_PLUGIN} for node in context.nodes):
        return ""
    found = context.cluster.connected_facts(NetPluginFacts).values()
    if any(facts.plugin and not (context.rdma and facts.plugin.kind == OF_INFINIBAND) for facts in found):
        return ""
    if context.rdma:
        return "IB"
    ports = [port for facts in context.cluster.connected_facts(InfinibandFacts).values() for port in facts.ports]
    return "" if any(port.state == "Active" for port in ports) else "Socket"


def _gpus(context: ProbeContext) -> Iterator[tuple[str, str]]:
    for node in context.nodes:
        if not context.gpus.get(node):
            facts = context.cluster.known[node].get(GpuFacts)
            hidden = isinstance(facts, GpuFacts) and facts.gpus
            why = "CUDA_VISIBLE_DEVICES hides every GPU" if hidden else "no GPU"
            yield node, f"the GPUs could not be read ({facts.reason})" if isinstance(facts, Unread) else why


_LIBRARY = {"NVIDIA": "NCCL", "AMD": "RCCL"}  # of each maker's GPUs


def _makers(context: ProbeContext) -> Iterator[tuple[str, str]]:
    """Yield each node where GPUs of several makers would have to meet, or the job's library is not for its GPUs."""
    gpus = context.cluster.connected_facts(GpuFacts)
    makers = {node: gpus[node].vendor for node in context.nodes if node in gpus and gpus[node].gpus}
    several = len(set(makers.values())) > 1
    loaded = context.cluster.connected_facts(LoadedNcclFacts)
    for node, maker in makers.items():
        library = loaded[node].library if node in loaded else _LIBRARY[maker]
        if several:
            yield node, f"{maker}'s GPUs (ranks of different makers cannot meet)"
        elif library != _LIBRARY[maker]:
            yield node, f"the job's interpreter loads {library}, which drives none of the GPUs of {maker}"


def _libraries(context: ProbeContext) -> Iterator[tuple[str, str]]:
    for node in context.nodes:
        facts = context.cluster.known[node].get(LoadedNcclFacts)
        if isinstance(facts, (Unread, Absent)):
            yield node, f"the job's interpreter loads no NCCL ({facts.reason})"
        elif isinstance(facts, LoadedNcclFacts) and facts.static:
            yield node, f"{facts.library} is linked statically into torch and cannot be called by another program"


def _slots(context: ProbeContext) -> Iterator[tuple[str, str]]:
    for node in context.nodes:
        slots, gpus = context.slots[node], context.gpus[node]
        if slots > gpus:
            yield node, f"{slots} ranks but {gpus} GPU{'' if gpus == 1 else 's'} (each rank needs its own)"


def _room(gpus: GpuFacts) -> int:
    """Return the largest size, in bytes, that fits twice into the free memory of the fullest GPU."""
    free = [gpu.memory_total - (gpu.memory_used or 0) for gpu in gpus.gpus if gpu.memory_total]
    return max(0, min(free) - _KEPT_FREE) // _BUFFERS if len(free) == len(gpus.gpus) and free else _UNKNOWN_MEMORY


def rate(context: ProbeContext) -> float:
    """Return the bytes per second that the links of the slowest node carry."""
    ports = context.cluster.connected_facts(InfinibandFacts)
    return min((_node_rate(context, node, ports.get(node)) for node in context.nodes), default=_UNKNOWN_RATE)


def _node_rate(context: ProbeContext, node: str, ports: InfinibandFacts | None) -> float:
    planned = context.planned.get(node, ())
    if context.rdma and ports:
        rates = [port.rate or 0.0 for port in ports.ports if port.name in planned]
        return max(rates, default=0.0) * 1e9 / 8 or _UNKNOWN_RATE
    interfaces = [address.interface for address in context.network.members.get(node, ())] if context.network else []
    speeds = [nic.speed for nic in interfaces if nic.speed and nic.name in planned]
    return max(speeds, default=0) * 1e6 / 8 or _UNKNOWN_RATE


# What leaves NCCL the network alone between the GPUs of one node; the last one is off by default in RCCL.
_BY_NICS = {
    "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0",
    "NCCL_NET_DISABLE_INTRA": "0",
}  # fmt: skip


class OverNics(Nccl):
    """NCCL inside one node with its data over the node's NICs: no second node takes part."""

    method = Method.NICS
    stages: ClassVar = frozenset({Stage.NICS})
    sizes: ClassVar = {Stage.NICS: _LARGE}
    ops: ClassVar = frozenset()

    def unfit(self, context: ProbeContext) -> str:
        """Return why the NICs are not measured by themselves."""
        if not context.settings.nic_test:
            return "--nic-test was not given"
        if why := unfit_for_nccl(context):
            return why
        return "" if context.rdma else "no HCA port carries the job's data"

    def variables(self, context: ProbeContext, node: str, net: str) -> dict[str, str | None]:
        """Return the plan's variables, and those that leave the network alone."""
        return {**super().variables(context, node, net), **_BY_NICS}


OVER_NICS = OverNics()


class Diagnostics(Nccl):
    """NCCL's own diagnostics (2.31 and later), which it runs and prints when a communicator of all ranks starts."""

    method = Method.DIAGNOSTICS
    stages: ClassVar = frozenset({Stage.ALL})
    sizes: ClassVar = {}
    least, most = 6.0, 30.0
    ops: ClassVar = frozenset()

    def unfit(self, context: ProbeContext) -> str:
        """Return which nodes have an NCCL without diagnostics."""
        if why := unfit_for_nccl(context):
            return why
        loaded = context.cluster.connected_facts(LoadedNcclFacts)
        if any(loaded[node].library != "NCCL" for node in context.nodes):
            return "RCCL has no diagnostics"
        old = [node for node in context.nodes if release_of(loaded[node].version) < SINCE]
        return f"NCCL before {'.'.join(map(str, SINCE))} on {fold(old)}" if old else ""

    def usual(self, context: ProbeContext, stage: Stage) -> tuple[int, ...]:  # noqa: ARG002  nothing is timed
        """Return no size."""
        return ()

    def fitting(self, context: ProbeContext, stage: Stage, sizes: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        """Return no size, whatever --sizes names."""
        return ()

    def net(self, context: ProbeContext, stage: Stage) -> str:  # noqa: ARG002  there is one stage
        """Pin the plan's network, so that this one is diagnosed."""
        return pinned_net(context) if len(context.nodes) > 1 else ""

    def variables(self, context: ProbeContext, node: str, net: str) -> dict[str, str | None]:
        """Return the plan's variables and those that switch the diagnostics on."""
        return {**super().variables(context, node, net), **VARIABLES}


DIAGNOSTICS = Diagnostics()

# An NCCL identifier contains the address to which all ranks connect. A node that gives the address of another machine
# would send the others there. Layout: NCCL source, bootstrap.h (struct ncclBootstrapHandle: a magic number, then the
# address); before 2.16 the address came first.
_V4, _V6 = 2, 10  # AF_INET and AF_INET6 of Linux, as the nodes write it
_AFTER_MAGIC = 8
_SURELY_MAGIC = (2, 18)


def foreign_address(context: ProbeContext, group: Sequence[str], identifier: str) -> str:
    """Return why the group must not use this identifier of its first node, "" if it may.

    The address in it must be the first node's own, in the plan's network or in a subnet of another node of the group.
    An identifier without an address is left to NCCL, which refuses it.
    """
    raw = bytes.fromhex(identifier)
    addresses = [address for offset in _offsets(context, group) if (address := _address(raw[offset:]))]
    foreign = [address for address in addresses if not _own(context, group, address)]
    return f"its NCCL identifier contains the address {foreign[0]}, which is not its own" if foreign else ""


def _offsets(context: ProbeContext, group: Sequence[str]) -> tuple[int, ...]:
    """Return where the address may be in an identifier, by the NCCL versions of the other nodes."""
    loaded = context.cluster.connected_facts(LoadedNcclFacts)
    versions = [_numbers(loaded[node].version) if node in loaded else () for node in group[1:]]
    return (_AFTER_MAGIC,) if versions and min(versions) >= _SURELY_MAGIC else (0, _AFTER_MAGIC)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2] if number.isdecimal())


def _address(raw: bytes) -> str:
    """Return the address of a struct sockaddr_in or sockaddr_in6, "" for anything else."""
    family = int.from_bytes(raw[:2], "little")
    if family == _V4:
        return str(ip_address(raw[4:8]))
    return str(ip_address(raw[8:24])) if family == _V6 else ""


def _own(context: ProbeContext, group: Sequence[str], address: str) -> bool:
    leader, *others = group
    if context.network and address in {member.ip for member in context.network.members.get(leader, ())}:
        return True
    nics = context.cluster.connected_facts(NicFacts)
    own = {each.ip for each in _global(nics.get(leader))}
    subnets = (each.network for node in others for each in _global(nics.get(node)))
    return address in own and any(ip_address(address) in ip_network(subnet) for subnet in subnets)


def _global(nics: NicFacts | None) -> list[Address]:
    interfaces = nics.interfaces if nics else ()
    return [address for nic in interfaces for address in nic.addresses if address.scope == "global"]
