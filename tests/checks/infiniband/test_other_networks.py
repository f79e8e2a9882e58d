"""Healthy nodes of many kinds: no check of InfiniBand and RoCE has anything to say of them."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module

import ncheck_checks.infiniband
import pytest
from ncheck.facts.hcas import HcaFacts, HcaModuleFacts
from ncheck.facts.infiniband import Gid, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, Kind, NicFacts
from ncheck.facts.pci import INFINIBAND, MELLANOX, PciDevice, PciFacts
from ncheck.model.check import Check
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck.steps.registry import checks_of

from .fabric import Both, node, port, roce

CHECKS = [
    check for found in pkgutil.iter_modules(ncheck_checks.infiniband.__path__)
    for check in checks_of(import_module(f"ncheck_checks.infiniband.{found.name}"))
]  # fmt: skip
ETHERNET = 0x0200
DENIED = "Permission denied"


def whole(
    number: int, *ports: Both, cards: tuple[PciDevice, ...] = (), modules: tuple[str, ...] = ("mlx5_core", "mlx5_ib"),
    opens: str = "", addresses: tuple[str, ...] = (),
) -> Facts:  # fmt: skip
    """Return a node with all facts that the checks read; port and card at the same place belong together."""
    facts = node(*ports)
    held = facts[InfinibandFacts]
    if isinstance(held, InfinibandFacts):
        places = [card.address for card in cards] + [""] * len(held.ports)
        own = [
            replace(one, pci=place, lid=number * 16 + index if one.lid else 0)
            for index, (one, place) in enumerate(zip(held.ports, places, strict=False))
        ]
        held = InfinibandFacts(tuple(own), "sysfs")
    hcas = {one.hca: opens for one, _ in ports}
    nic = Interface("eth2", 2, Kind.PHYSICAL, up=True, running=True, mtu=9000,
                    addresses=tuple(Address(address, 24) for address in addresses))  # fmt: skip
    return {
        **facts,
        InfinibandFacts: held,
        PciFacts: PciFacts(cards) if cards else Absent("no PCI bus"),
        HcaModuleFacts: HcaModuleFacts(dict.fromkeys(modules, "")),
        LibraryFacts: LibraryFacts("" if hcas else NO_HCA, NO_HCA, hcas or NO_HCA, tuple(hcas)),
        IdentityFacts: IdentityFacts(f"n{number}", f"boot{number}", "net:[1]", 1000),
        NicFacts: NicFacts((nic,)),
    }


def card(
    bus: int, kind: int = INFINIBAND, device: int = 0x1021, function: int = 0, driver: str = "mlx5_core"
) -> PciDevice:
    return PciDevice(f"0000:{bus:02x}:00.{function}", kind, MELLANOX, device, driver)


def laptop(number: int) -> Facts:
    return whole(number, modules=())


def efa(number: int) -> Facts:
    """Return a node of AWS: its adapters are of no layer that NCCL itself uses, and this user may not open them."""
    nic = PciDevice("0000:50:00.0", ETHERNET, 0x1D0F, 0xEFA1, "efa")
    ports = tuple(port(f"rdmap{i}s0", "Unspecified", lid=0, sm_lid=0, kind="", firmware="", lanes=1) for i in range(4))
    return whole(number, *ports, cards=(nic,), modules=("ib_core", "ib_uverbs"), opens=DENIED)


def azure(number: int) -> Facts:
    """Return a virtual machine with virtual functions for InfiniBand, and one for Ethernet that others configure."""
    fabric = [
        port(f"mlx5_ib{i}", kind="MT4124", pkeys=(0x800B, 0x7FFF), lid=0, firmware=f"20.3{number}") for i in range(8)
    ]
    wire = port("mlx5_an0", "Ethernet", rate=100, kind="MT4126", lid=0, sm_lid=0)
    cards = tuple(card(16 * number + i, device=0x101C) for i in range(8))
    return whole(number, *fabric, wire, cards=(*cards, card(16 * number + 8, ETHERNET, 0x101E)))


def google(number: int) -> Facts:
    """Return a virtual machine with RoCE in networks of its own."""
    address = f"192.168.{number}.2"
    nic = PciDevice("0000:04:00.0", ETHERNET, 0x8086, 0x1452, "idpf")
    return whole(number, roce(address, hca="irdma0"), cards=(nic,), modules=("ib_core",), addresses=(address,))


def bonded(number: int) -> Facts:
    """Return a node with one RoCE device for the two functions of a card."""
    address = f"10.1.0.{number}"
    cards = (card(59, ETHERNET), card(59, ETHERNET, function=1))
    return whole(number, roce(address, hca="mlx5_bond_0", netdev="bond0"), cards=cards, addresses=(address,))


def tcp_only(number: int) -> Facts:
    """Return a node whose RoCE adapter is an ordinary NIC: nobody may open it, and on one it has no address."""
    gids = () if number == 3 else (f"10.1.0.{number}",)
    return whole(number, roce(*gids), cards=(card(59, ETHERNET),), opens=DENIED, addresses=gids)


def unused_port(number: int) -> Facts:
    """Return a node with a card of two ports, the second without a cable."""
    cards = (card(59), card(59, function=1))
    return whole(
        number, port(), port("mlx5_1", state="Down", rate=10, lanes=4, speed="SDR", lid=0, sm_lid=0), cards=cards
    )


def storage_on_some(number: int) -> Facts:
    """Return a node that, if it is the first one, has one more card, in the network of the storage."""
    more = (port("mlx5_2", rate=200, sm_lid=9, kind="MT4123", board="MT_0000000223", firmware="20.31.1014"),)
    cards = (card(59), card(60), card(200, device=0x101B))
    extra = number == 1
    return whole(number, port(), port("mlx5_1"), *(more if extra else ()), cards=cards if extra else cards[:2])


def server(number: int) -> Facts:
    """Return an ordinary server with TCP alone: the driver of its NIC makes RoCE devices, and no job can use them.

    They differ as NICs do: another cable, another speed, on the third another card that has no RoCE at all. Root can
    open the device where its module is loaded; libibverbs is on no node.
    """
    if number == 3:
        nic = PciDevice("0000:3b:00.0", ETHERNET, 0x8086, 0x1572, "i40e")
        return whole(number, cards=(nic,), modules=())
    nics = tuple(PciDevice(f"0000:3b:00.{i}", ETHERNET, 0x8086, 0x159B, "ice") for i in (0, 1))
    cabled = number - 1
    ports = [
        port(f"irdma{i}", "Ethernet", lid=0, sm_lid=0, kind="", firmware=f"1.{number}", rate=25 if cabled else 10,
             board="", state="Active" if i == cabled else "Down")
        for i in (0, 1)
    ]  # fmt: skip
    facts = whole(number, *ports, cards=nics, modules=("ib_core",))
    opens = "" if cabled else "no uverbs device: ib_uverbs is not loaded"
    missing = "libibverbs.so.1: cannot open shared object file: No such file or directory"
    return {**facts, LibraryFacts: LibraryFacts(missing, NO_HCA, {"irdma0": opens, "irdma1": opens})}


def two_networks_without_verbs(number: int) -> Facts:
    """Return a server with TCP alone whose NIC has addresses of two networks, in another order on each."""
    addresses = (f"10.1.0.{number}", f"10.2.0.{number}")[:: 1 if number == 3 else -1]
    facts = whole(number, roce(*addresses), cards=(card(59, ETHERNET),), addresses=addresses)
    return {**facts, LibraryFacts: LibraryFacts("libibverbs.so.1: no such file", NO_HCA)}


def kernels(number: int) -> Facts:
    """Return a server with TCP alone that runs with the RDMA driver or, as the third, without it."""
    if number == 3:
        return whole(number, cards=(card(59, ETHERNET),), modules=("mlx5_core",))
    facts = whole(number, roce(f"10.1.0.{number}"), cards=(card(59, ETHERNET),))
    return {**facts, LibraryFacts: LibraryFacts("libibverbs.so.1: no such file", NO_HCA)}


def generations(number: int) -> Facts:
    """Return a node of a cluster that was extended: the third has the next adapters in its slots."""
    device, kind = (0xA2DC, "MT41692") if number == 3 else (0x1021, "MT4129")
    ports = tuple(port(f"mlx5_{i}", kind=kind, board=kind, firmware=kind) for i in range(2))
    return whole(number, *ports, cards=tuple(card(number + 16 * i, device=device) for i in range(2)))


def rails_of_their_own(number: int) -> Facts:
    """Return a node whose rails are fabrics of their own: each has its subnet manager, which numbers from 1."""
    ports = tuple(port(f"mlx5_{i}", sm_lid=1) for i in range(4))
    facts = whole(number, *ports, cards=tuple(card(16 * i) for i in range(4)))
    held = facts[InfinibandFacts]
    assert isinstance(held, InfinibandFacts)
    return {**facts, InfinibandFacts: InfinibandFacts(tuple(replace(one, lid=number) for one in held.ports), "sysfs")}


def named_otherwise(number: int) -> Facts:
    """Return a node of such a cluster that names its rails in another order than the others."""
    facts = rails_of_their_own(number)
    names = ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3") if number != 2 else ("mlx5_2", "mlx5_3", "mlx5_0", "mlx5_4")
    held = facts[InfinibandFacts]
    assert isinstance(held, InfinibandFacts)
    ports = tuple(
        replace(one, hca=name, port_guid=f"0xa088c20300{number:02x}000{rail}", lid=(number + rail) % 3 + 1)
        for rail, (one, name) in enumerate(zip(held.ports, names, strict=True))
    )
    return {
        **facts,
        InfinibandFacts: InfinibandFacts(ports, "sysfs"),
        HcaFacts: HcaFacts(tuple(port(name)[1] for name in names)),
        LibraryFacts: LibraryFacts("", NO_HCA, dict.fromkeys(names, ""), names),
    }


def routed(number: int) -> Facts:
    """Return a node of a fabric whose subnets are joined by routers: its second GID is for that, as NCCL reads it."""
    prefix, routable = f"fe80:0000:0000:000{number}", f"fe80:0000:0{number}00:0001:0000:0000:0000:0001"
    gids = (Gid(0, prefix + ":0000:0000:0000:0001", "IB/RoCE v1"), Gid(1, routable, "IB/RoCE v1"))
    return whole(number, port(sm_lid=number, gids=gids), cards=(card(59),))


KINDS = [
    laptop, efa, azure, google, bonded, tcp_only, unused_port, storage_on_some, server, two_networks_without_verbs,
    kernels, generations, rails_of_their_own, named_otherwise, routed,
]  # fmt: skip


def _checks_of(nodes: Mapping[str, Facts]) -> list[Check]:
    """Return the checks whose facts these nodes have; counters and PCIe paths have tests of their own."""
    return [check for check in CHECKS if all(set(check.reads) <= set(facts) for facts in nodes.values())]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_said_of_healthy_nodes(kind: Callable[[int], Facts]) -> None:
    nodes = {f"n{number}": kind(number) for number in (1, 2, 3)}
    judgement = judge(_checks_of(nodes), nodes)
    assert judgement.findings == []
    assert {one.reason for one in judgement.verdicts if one.outcome in (Outcome.UNKNOWN, Outcome.CRASHED)} == set()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_said_of_one_healthy_node(kind: Callable[[int], Facts]) -> None:
    nodes = {"n1": kind(1)}
    judgement = judge(_checks_of(nodes), nodes)
    assert judgement.findings == []
    assert {one.reason for one in judgement.verdicts if one.outcome in (Outcome.UNKNOWN, Outcome.CRASHED)} == set()
