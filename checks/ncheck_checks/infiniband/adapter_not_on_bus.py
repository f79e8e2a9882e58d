"""A network adapter is missing from the PCI bus

## What it finds
Nodes with fewer adapters of one model on the PCI bus than most nodes with the same GPUs. Counted are InfiniBand
adapters, and models of which some node has an Active port that jobs can use; which slots they should be in is read
from the other nodes. ncheck compares model numbers (PCI IDs), not names, and counts no virtual functions of a card that
is there itself. A node with as many adapters of another model instead is another generation of hardware, and is not
reported.

## Why it matters
A card that fell off the bus is missing from ibstat and from `ip link` as if it had never been there: every port that is
left looks healthy. NCCL finds another number of devices on that node. The job runs at the speed of the remaining rails,
falls back to TCP, or stops with "Detected mixed local Net device counts".

## What to type
`lspci -nn | grep -Ei 'ethernet|infiniband'` on the named node and on a good one; `sudo dmesg | grep -Ei 'pciehp|AER'`
may show when the card was lost. `echo 1 | sudo tee /sys/bus/pci/rescan` brings some cards back. If not, power the node
off and on, then reseat the card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.pci import INFINIBAND, PciDevice, PciFacts
from ncheck.nccl.hca_ports import MISSING_ADAPTER, usable_ports

Model = tuple[int, int]


@cluster_check(
    "NC409",
    Severity.ERROR,
    PciFacts,
    also=(InfinibandFacts, LibraryFacts),
    by_kind=True,
    explains=MISSING_ADAPTER,
    hardware=True,
)
def adapter_not_on_bus(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    nodes = cluster.facts(PciFacts)
    cards = {node: [one for one in pci.adapters if not one.virtual] for node, pci in nodes.items()}
    models = sorted(_models_of_jobs(cluster, cards))
    if not models:
        yield NotApplicable("no InfiniBand or RoCE adapter on any node")
    counts = {node: Counter(map(_model, own)) for node, own in cards.items()}
    usually = {model: _usual([own[model] for own in counts.values()]) for model in models}
    for model, usual in usually.items():
        held = {node: {one.address for one in own if _model(one) == model} for node, own in cards.items()}
        for node, addresses in held.items():
            more = sum(max(0, counts[node][other] - count) for other, count in usually.items())
            if not addresses and more >= usual:  # another generation of hardware: the cards are another model
                continue
            if len(addresses) < usual and nodes[node].left_out:
                yield Inconclusive(f"{nodes[node].left_out} PCI devices were too many for one answer", (node,))
            elif len(addresses) < usual:
                yield _problem(model, node, held, usual)


def _models_of_jobs(cluster: Cluster, cards: Mapping[str, list[PciDevice]]) -> set[Model]:
    ports = usable_ports(cluster)
    used = {(node, port.pci) for node, facts in ports.items() for port in facts.ports if port.state == "Active"}
    return {
        _model(one) for node, own in cards.items() for one in own
        if one.kind == INFINIBAND or (node, one.address) in used
    }  # fmt: skip


def _problem(model: Model, node: str, held: Mapping[str, set[str]], usual: int) -> Problem:
    """Name the slots that are empty, where the other nodes have their cards in the same ones."""
    own, full = held[node], [addresses for addresses in held.values() if len(addresses) == usual]
    common = Counter(address for addresses in full for address in addresses)
    empty = sorted(address for address, nodes in common.items() if 2 * nodes > len(full) and address not in own)
    slots = f": nothing at {', '.join(empty)}" if len(empty) == usual - len(own) else ""
    name = f"{model[0]:04x}:{model[1]:04x}"
    others = fold([other for other, addresses in held.items() if len(addresses) == usual])
    return Problem(
        f"{len(own)} of {usual} adapters {name} are on the PCI bus{slots}",
        "lspci -nn | grep -Ei 'ethernet|infiniband'",
        (f"{usual} x {name} on {others}",),
        (node,),
        look=True,
        summary=f"{usual - len(own)} network adapter{'s are' if usual - len(own) > 1 else ' is'} missing from the bus",
    )


def _model(device: PciDevice) -> Model:
    return device.vendor, device.device


def _usual(counts: Collection[int]) -> int:
    """Return the count of more than half of the nodes; 0 if there is none."""
    return next((count for count, nodes in Counter(counts).items() if 2 * nodes > len(counts)), 0)
