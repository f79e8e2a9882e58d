"""Data left through another NIC than the planned one

## What it finds
Nodes whose planned interfaces and HCA ports carried less than half of the data that left the node during an operation,
while others carried the rest, by the kernel's counters before and after. The cards below a planned bond, VLAN or bridge
count as planned.

## Why it matters
The job runs over a management network or a single rail, many times slower than it could, and reports no error.

## What to type
`ncheck plan nodes.txt --for env` prints the variables that select the planned interfaces. On the named node,
`ip route get ADDRESS` shows whether a route prefers another card.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ncheck import HERE, PLAN, SLOW_NETWORK, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.nics import Interface, NicFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.parse.interface_names import Kind
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Carried, Method, NodeResult, Step
from ncheck.text import moved

MIB = 2**20
LEAST = 4 * MIB  # bytes; ssh, monitoring and the start of the ranks send less
_MOST_EVIDENCE = 6

# The least number of runs of each size, including warm-up.
_RUNS: Mapping[Method, int] = {Method.NCCL: 5, Method.NCCL_TESTS: 2, Method.GLOO: 3, Method.TCP: 1}

# Container bridges lead nowhere by themselves, and lo never leaves the node.
_STAYS = frozenset({Kind.LOOPBACK, Kind.CONTAINER_BRIDGE, Kind.OVERLAY})
_ON_TOP = frozenset({Kind.VLAN, Kind.MACVLAN})


@dataclass(frozen=True)
class Strayed:
    """The worst step of a node: which devices its data used instead."""

    message: str
    evidence: tuple[str, ...]


def strayed(facts: ProbeFacts, nics: NicFacts) -> Strayed | None:
    """Return which other devices the data of a step used; None if it used the planned ones."""
    found = [(result, others) for result in _judged(facts) if (others := _others(result, nics))]
    if not found:
        return None
    result, others = max(found, key=lambda one: sum(one[1].values()))
    planned = _data_devices(result)
    sent = ", ".join(f"{moved(count)} through {device}" for device, count in others.items())
    message = f"data left through {' and '.join(others)} instead of {' and '.join(planned)}: {sent}"
    return Strayed(
        f"{message}, {moved(_sent(result, planned))} through the planned devices",
        tuple(_lines(result))[:_MOST_EVIDENCE],
    )


def unjudged(facts: ProbeFacts) -> str:
    """Return why the traffic of the node cannot be judged, "" if it can."""
    judged = tuple(_judged(facts))
    if not judged:
        return "no step with other nodes has counters for all planned devices"
    if any(_seen(result) for result in judged):
        return ""
    return "no device counter shows the data"


def _seen(result: NodeResult) -> bool:
    """Return whether the counters moved as they must: the data leaves the node somewhere."""
    return 2 * sum(counted.sent for counted in result.carried.values()) >= _least(result)


def _judged(facts: ProbeFacts) -> Iterator[NodeResult]:
    """Yield the turns that sent data to other nodes, and whose planned devices all have counters."""
    for result in facts.results:
        planned = _data_devices(result)
        counted = planned and all(device in result.carried for device in planned)
        leaves = len(result.step.group) > 1 and result.step.op is not Op.BROADCAST  # where a node may only receive
        if result.step.method in _RUNS and leaves and result.rows and counted:
            yield result


def _data_devices(result: NodeResult) -> tuple[str, ...]:
    """Return the devices of the plan that the data should take: the HCA ports alone, where NCCL is held to them."""
    ports = tuple(device for device in result.planned if ":" in device)
    return ports if result.step.net == "IB" and ports else result.planned


def _sent(result: NodeResult, devices: Collection[str]) -> int:
    return sum(result.carried.get(device, Carried(0, 0)).sent for device in devices)


def _least(result: NodeResult) -> float:
    """Return the bytes that this node must have sent at least: each size so often."""
    return sum(row.size for row in result.rows) * _RUNS[result.step.method] * _leaving(result.step)


def _leaving(step: Step) -> float:
    """Return the share of the size that each node sends to others at least, whatever the algorithm is."""
    nodes = len(step.group)
    if step.op is Op.SEND_RECV:  # one of its ranks to the next node
        return 1.0
    if step.op is Op.ALL_GATHER:  # its own part, once
        return min(step.ranks) / step.world
    if step.op is Op.ALL_TO_ALL:  # from each rank to each on other nodes
        return min(ranks * (step.world - ranks) for ranks in step.ranks) / step.world
    return (nodes - 1) / nodes  # all but its own share of the result


def _others(result: NodeResult, nics: NicFacts) -> dict[str, int]:
    """Return what left by other devices, where that is most of what left and the plan's share is missing."""
    planned = _data_devices(result)
    own, missing = _sent(result, planned), _least(result)
    others = _left_by(result, _related(planned, nics), nics)
    left = sum(others.values())
    return others if own < missing and left >= max(LEAST, missing / 2) and own < (own + left) / 2 else {}


def _left_by(result: NodeResult, related: Collection[str], nics: NicFacts) -> dict[str, int]:
    """Return the bytes sent by each other device that can leave the node; a card beneath another one counts once."""
    known = {nic.name: nic for nic in nics.interfaces}
    carriers = {
        device: counted.sent
        for device, counted in result.carried.items()
        if device not in related and counted.sent >= MIB and (":" in device or _leaves(known.get(device)))
    }
    beneath = {lower for device in carriers for lower in _beneath(device, nics)}
    return {device: sent for device, sent in carriers.items() if device not in beneath}


def _leaves(nic: Interface | None) -> bool:
    """Tell whether data of the node itself can leave here: it has an address of its own."""
    return nic is not None and nic.kind not in _STAYS and any(one.scope == "global" for one in nic.addresses)


def _related(planned: Collection[str], nics: NicFacts) -> frozenset[str]:
    """Return the plan's devices, what lies beneath them, what lies on top, and an HCA with its interface."""
    hcas = {device.partition(":")[0] for device in planned if ":" in device}
    held = set(planned) | {nic.name for nic in nics.interfaces if nic.hca in hcas}
    lower = {name for device in held for name in _beneath(device, nics)}
    upper = {nic.name for nic in nics.interfaces if held & set(_beneath(nic.name, nics))}
    family = held | lower | upper
    own = {nic.hca for nic in nics.interfaces if nic.name in held | lower and nic.hca}
    return frozenset(family | {f"{hca}:{port}" for hca in own for port in range(1, 5)})


def _beneath(device: str, nics: NicFacts) -> frozenset[str]:
    """Return what a device stands on: the slaves of a bond or bridge, the parent of a VLAN, and theirs."""
    seen: set[str] = set()
    waiting = [device]
    while waiting:
        name = waiting.pop()
        lower = {nic.name for nic in nics.interfaces if nic.master == name} | _parents(name, nics)
        waiting.extend(lower - seen)
        seen |= lower
    return frozenset(seen - {device})


def _parents(name: str, nics: NicFacts) -> set[str]:
    """Return the card that a VLAN or macvlan hangs on; the other end of a veth pair is no such one."""
    indexes = {nic.peer_index for nic in nics.interfaces if nic.name == name and nic.kind in _ON_TOP}
    return {nic.name for nic in nics.interfaces if nic.index in indexes}


def _lines(result: NodeResult) -> Iterator[str]:
    for device, counted in sorted(result.carried.items(), key=lambda one: -one[1].sent):
        plan = " (planned)" if device in result.planned else ""
        yield f"{device}{plan}: {moved(counted.sent)} sent, {moved(counted.received)} received"


@node_check("NC703", Severity.ERROR, ProbeFacts, NicFacts, explains=SLOW_NETWORK)
def data_left_by_other_nic(node: NodeView) -> Iterator[Problem | NotApplicable]:
    found = strayed(node[ProbeFacts], node[NicFacts])
    if found:
        summary = "data left by another interface"
        yield Problem(found.message, PLAN, found.evidence, where=HERE, look=True, summary=summary)
    elif why := unjudged(node[ProbeFacts]):
        yield NotApplicable(why)
