"""Nodes without a GPU to measure: torch.distributed with gloo, and TCP sockets without any library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.links import ListenFacts
from ncheck.hostlist import fold, is_v6
from ncheck.model.op import Op
from ncheck.nccl.settings import GLOO as GLOO_SOCKET_IFNAME
from ncheck.probe.methods.driver import KIB, MIB, CannotTakePartError, Driver, NodeTask
from ncheck.probe.node_result import Method, Stage

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue
    from ncheck.probe.methods.context import ProbeContext


_TCP_SECONDS, _GLOO_SECONDS = 2.0, 3.0  # of measuring in one step, for up to _ENOUGH_FOR repeats
_ENOUGH_FOR = 5
_SHARE = 4  # and at most 1/4 of the step's time
_FEW = 2


class Tcp(Driver):
    """The agents send to each other, through the listeners of the mesh; sizes grow until one takes long enough."""

    method = Method.TCP
    stages = frozenset({Stage.PAIR})
    sizes: ClassVar = dict.fromkeys((Stage.PAIR, Stage.BOUNDARY), (MIB, 8 * MIB, 64 * MIB, 512 * MIB))
    least, most = 3.0, 20.0
    ops: ClassVar = frozenset({Op.ALL_REDUCE, Op.SEND_RECV})  # both mean the same: each sends to the other

    def unfit(self, context: ProbeContext) -> str:
        """Return which nodes have no listener."""
        if why := no_network(context):
            return why
        listening = context.cluster.connected_facts(ListenFacts)
        deaf = [node for node in context.nodes if node not in listening or not _listening(context, node)]
        none = "--mesh none was given, and " if context.settings.mesh == "none" else ""
        return f"{none}no agent listens on {fold(deaf)} in the plan's network" if deaf else ""

    def planned(self, context: ProbeContext, task: NodeTask) -> tuple[str, ...]:
        """Return the interface that has the source address."""
        source, _ = _ends(context, task)
        addresses = context.network.members[task.node] if context.network else ()
        return tuple(address.interface.name for address in addresses if address.ip == source)

    def variables(self, context: ProbeContext, node: str, net: str) -> dict[str, str | None]:  # noqa: ARG002
        """Return none: there is no library to read them."""
        return {}

    def own_arguments(self, context: ProbeContext, task: NodeTask) -> Mapping[str, JsonValue]:
        """Return the source and destination addresses, and the run's token, by which the other node recognizes it."""
        source, address = _ends(context, task)
        port = context.cluster.connected_facts(ListenFacts)[_other(task)].ports[address]
        return {
            "source": source, "address": address, "port": port, "token": context.cluster.token,
            "seconds": _seconds(task, _TCP_SECONDS),
        }  # fmt: skip


TCP = Tcp()


def _seconds(task: NodeTask, usual: float) -> float:
    """Return the time for measuring: more where more repeats are wanted, as far as the step has it."""
    return min(usual * max(1.0, (task.step.repeats or 0) / _ENOUGH_FOR), task.seconds / _SHARE)


def no_network(context: ProbeContext) -> str:
    """Return why nodes cannot measure over the plan's network, "" if they can."""
    if len(context.nodes) < _FEW:
        return "a single node has no other node to send to"
    without = [node for node in context.nodes if not context.address(node)]
    return f"{fold(without)} has no address in the plan's network" if without else ""


def _listening(context: ProbeContext, node: str) -> tuple[str, ...]:
    """Return the node's addresses in the plan's network on which its agent listens."""
    addresses = context.network.members.get(node, ()) if context.network else ()
    listeners = context.cluster.connected_facts(ListenFacts).get(node)
    return tuple(address.ip for address in addresses if listeners and address.ip in listeners.ports)


def _ends(context: ProbeContext, task: NodeTask) -> tuple[str, str]:
    """Return the source and destination addresses, of one family. Raises CannotTakePartError."""
    destinations = _listening(context, _other(task))
    for source in _listening(context, task.node):
        for address in destinations:
            if is_v6(source) == is_v6(address):
                return source, address
    raise CannotTakePartError(f"it and {_other(task)} have no addresses of the same IP version in the plan's network")


def _other(task: NodeTask) -> str:
    return task.step.group[1 - task.index]


_LARGE = (MIB, 16 * MIB, 64 * MIB)


class Gloo(Driver):
    """torch.distributed of the job's interpreter, one rank per node. Its all-reduce works in place only.

    It has no reduce-scatter: torch makes one over gloo of an all-reduce (ProcessGroupGloo.cpp).
    """

    method = Method.GLOO
    stages = frozenset({Stage.PAIR, Stage.SCALING, Stage.ALL})
    sizes: ClassVar = {
        **dict.fromkeys((Stage.PAIR, Stage.SCALING, Stage.BOUNDARY), _LARGE),
        Stage.ALL: (8, 64 * KIB, *_LARGE),
    }
    least, most = 3.0, 20.0
    ops: ClassVar = frozenset(Op) - {Op.REDUCE_SCATTER}
    meets = True
    to_meet = 60.0  # torch is imported meanwhile, on every node: the steps begin when all have it

    def unfit(self, context: ProbeContext) -> str:
        """Return which nodes have no torch, or no network."""
        known = context.cluster.connected_facts(InterpreterFacts)
        without = [node for node in context.nodes if node not in known or "torch" not in known[node].frameworks]
        if without:
            return f"the job's interpreter has no torch on {fold(without)}"
        return no_network(context)

    def planned(self, context: ProbeContext, task: NodeTask) -> tuple[str, ...]:
        """Return the interface that GLOO_SOCKET_IFNAME names, otherwise those in the plan's network."""
        addresses = context.network.members.get(task.node, ()) if context.network else ()
        named = context.variables(task.node).get(GLOO_SOCKET_IFNAME)
        names = dict.fromkeys(address.interface.name for address in addresses)
        return tuple(name for name in names if named in (None, name))

    def meeting(self, context: ProbeContext, node: str) -> dict[str, JsonValue]:
        """Return the address at which the node opens its store."""
        return {"address": context.address(node)}

    def own_arguments(self, context: ProbeContext, task: NodeTask) -> Mapping[str, JsonValue]:
        """Return the address of the leader's store, and the node's rank."""
        store = context.meeting(task.leader)
        if store is None or not store.port:
            why = store.why if store else ""
            raise CannotTakePartError(why or f"{task.leader} opened no store where the ranks can meet")
        return {
            "meeting": {"address": context.address(task.leader), "port": store.port}, "first": task.first,
            "seconds": _seconds(task, _GLOO_SECONDS),
        }  # fmt: skip


GLOO = Gloo()
