"""An InfiniBand or RoCE adapter has no driver

## What it finds
NVIDIA's (Mellanox's) InfiniBand adapters on the PCI bus without a driver, or with the driver of the card (mlx5_core)
but not the one of RDMA (mlx5_ib); AWS's EFA adapters without a driver. NVIDIA's Ethernet adapters count only where the
same model is an RDMA device on most nodes that have it, and some job can use RoCE. Not reported are virtual functions,
and cards that are handed to virtual machines (vfio-pci).

## Why it matters
The card is there, and no program can use it: ibstat does not list it, NCCL prints "NET/IB : No device found." in its
INFO lines only and uses TCP. The job is many times slower, or hangs because the other nodes use InfiniBand.

## What to type
`sudo modprobe mlx5_ib`. If the module is not found, the kernel was updated and the driver was not built for it, or the
package with the module is missing (linux-modules-extra on Ubuntu's cloud kernels). `sudo dmesg` shows why a driver that
is loaded did not take the card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, Unread, cluster_check, nodes_by_value
from ncheck.facts.hcas import HcaModuleFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.pci import AMAZON, INFINIBAND, MELLANOX, PciDevice, PciFacts
from ncheck.nccl.hca_ports import MISSING_ADAPTER, usable_ports

RDMA = {"mlx5_core": "mlx5_ib", "mlx4_core": "mlx4_ib"}  # a card's driver, and the module that makes it an HCA


@cluster_check(
    "NC410", Severity.ERROR, PciFacts, HcaModuleFacts,
    also=(InfinibandFacts, LibraryFacts), alone=True, explains=MISSING_ADAPTER, hardware=True,
)  # fmt: skip
def adapter_without_driver(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    cards = {node: _cards(pci) for node, pci in cluster.facts(PciFacts).items()}
    hcas = {(node, port.pci) for node, facts in usable_ports(cluster).items() for port in facts.ports}
    having = Counter(model for own in cards.values() for model in {card.device for card in own})
    using = Counter(
        model for node, own in cards.items() for model in {card.device for card in own if (node, card.address) in hcas}
    )
    for node, own in cards.items():
        ports, modules = cluster[node].maybe(InfinibandFacts), cluster[node][HcaModuleFacts].modules
        if not own:
            yield NotApplicable("no InfiniBand or EFA adapter, and none of NVIDIA's for Ethernet", (node,))
        if own and isinstance(ports, Unread):
            yield Inconclusive(ports.reason, (node,))
            continue
        faults = {
            card.address: (_fault(card, modules), _module(card)) for card in own
            if (node, card.address) not in hcas
            and (card.kind == INFINIBAND or card.vendor == AMAZON or 2 * using[card.device] > having[card.device])
        }  # fmt: skip
        found = nodes_by_value({address: fault for address, fault in faults.items() if fault[0]})
        for (fault, module), addresses in found.items():
            message = f"{', '.join(addresses)}: {fault}"
            yield Problem(message, f"sudo modprobe {module}", nodes=(node,), summary=f"an adapter has {fault}")


def _cards(pci: PciFacts) -> tuple[PciDevice, ...]:
    return (*(one for one in pci.adapters if one.vendor == MELLANOX and not one.virtual), *pci.efa)


def _fault(card: PciDevice, modules: Mapping[str, str]) -> str:
    if not card.driver:
        return "no driver"
    if card.driver not in RDMA or _module(card) in modules:
        return ""  # vfio-pci and the like; or the HCA is there and hidden from this container
    return f"no RDMA driver: {card.driver} is loaded, {_module(card)} is not"


def _module(card: PciDevice) -> str:
    """Return the module that makes an HCA of a card: mlx5 is for Connect-IB, ConnectX-4 and later, and BlueField."""
    if card.vendor == AMAZON:
        return "efa"
    modern = 0x1011 <= card.device < 0x2000 or card.device >= 0xA2D0  # noqa: PLR2004  mlx5_core's table of PCI IDs
    return RDMA.get(card.driver) or ("mlx5_ib" if modern else "mlx4_ib")
