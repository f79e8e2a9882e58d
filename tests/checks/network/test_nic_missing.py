"""NC326: a node that has lost a network card."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.facts.pci import INFINIBAND, MELLANOX, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.adapter_not_on_bus import adapter_not_on_bus
from ncheck_checks.network.nic_missing import nic_missing

FIX = "lspci | grep -Ei 'ethernet|infiniband'"


def nic(number: int, node: int, **given: object) -> Interface:
    """Return eth0, eth1 ... with an address in 10.0.0.0/24, 10.1.0.0/24 ..., all of one speed."""
    made = Interface(
        f"eth{number}", number + 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, speed=100000,
        addresses=(Address(f"10.{number}.0.{node}", 24),),
    )  # fmt: skip
    return replace(made, **given)  # type: ignore[arg-type]


def known(*nics: Interface, gpu: str = "") -> Facts:
    gpus = (
        GpuFacts((Gpu(0, gpu, "GPU-1", "0000:01:00.0"),), "550.127.08", "12.4", "nvml")
        if gpu
        else Absent("no NVIDIA device")
    )
    return {NicFacts: NicFacts(nics), IdentityFacts: Absent("not asked here"), GpuFacts: gpus}


def with_cards(node: int, count: int, gpu: str = "") -> Facts:
    return known(*(nic(number, node) for number in range(count)), gpu=gpu)


def findings(*nodes: Facts) -> list[Finding]:
    return judge([nic_missing], {f"n{number}": facts for number, facts in enumerate(nodes, 1)}).findings


def test_a_node_that_has_lost_a_card_is_named() -> None:
    assert findings(with_cards(1, 3), with_cards(2, 2), with_cards(3, 3)) == [
        Finding("NC326", "nic-missing", Severity.ERROR, ("n2",),
                "n2 has fewer network cards in use than the others: 2 (eth0, eth1)",
                ("3 (eth0, eth1, eth2) on n[1,3]",), FIX, kind="look"),
    ]  # fmt: skip


def test_it_names_the_card_that_is_gone_from_the_bus_as_its_cause() -> None:
    nodes = {f"n{number}": with_cards(number, count) for number, count in enumerate((3, 2, 3), 1)}
    judgement = judge(
        [nic_missing, adapter_not_on_bus], {name: {**facts, **on_bus(facts)} for name, facts in nodes.items()}
    )
    assert [(found.code, found.nodes, found.see) for found in judgement.findings] == [
        ("NC326", ("n2",), ("NC409",)), ("NC409", ("n2",), ()),
    ]  # fmt: skip


def on_bus(facts: Facts) -> Facts:
    """Return the InfiniBand adapters of a node's interfaces, without ports."""
    nics = facts[NicFacts]
    assert isinstance(nics, NicFacts)
    cards = tuple(PciDevice(f"0000:{one.index:02x}:00.0", INFINIBAND, MELLANOX, 0x1021) for one in nics.interfaces)
    return {
        PciFacts: PciFacts(cards),
        InfinibandFacts: Absent("no InfiniBand or RoCE device"),
        LibraryFacts: LibraryFacts(NO_HCA, NO_HCA),
    }


def test_a_bond_that_has_lost_one_of_its_cards_altogether_is_named() -> None:
    slaves = tuple(nic(number, 0, addresses=(), kind=Kind.BOND_SLAVE, master="bond0") for number in (1, 2))
    (found,) = findings(*(known(nic(0, node), *slaves) for node in (1, 2)), known(nic(0, 3), slaves[0]))
    assert (found.nodes, found.message) == (
        ("n3",), "n3 has fewer network cards in use than the others: 2 (eth0, eth1)",
    )  # fmt: skip


def test_of_two_nodes_with_the_same_gpus_the_one_with_fewer_is_named() -> None:
    assert [found.nodes for found in findings(with_cards(1, 2, "H100"), with_cards(2, 1, "H100"))] == [("n2",)]


def test_cards_that_report_no_speed_are_counted() -> None:
    cloud = [known(*(nic(number, node, kind=Kind.CLOUD, speed=None) for number in (0, 1))) for node in (1, 2)]
    assert [found.nodes for found in findings(*cloud, known(nic(0, 3, kind=Kind.CLOUD, speed=None)))] == [("n3",)]


def test_it_is_silent_about_two_nodes_of_which_nothing_says_that_they_are_alike() -> None:
    assert findings(with_cards(1, 2), with_cards(2, 1)) == []
    assert findings(with_cards(1, 2, "H100"), with_cards(2, 1, "A100")) == []


def test_it_is_silent_where_all_have_as_many_whatever_their_names() -> None:
    named = known(nic(0, 3, name="eno1"), nic(1, 3, name="enp3s0"))
    assert findings(with_cards(1, 2), with_cards(2, 2), named) == []


def test_it_is_silent_about_spare_cards_and_slow_ones() -> None:
    slow = nic(9, 0, speed=1000)
    assert findings(known(nic(0, 1), slow), known(nic(0, 2), slow), known(nic(0, 3))) == []
    spare = nic(9, 0, addresses=(), running=False)
    assert findings(known(nic(0, 1), spare), known(nic(0, 2), spare), known(nic(0, 3))) == []


def test_it_leaves_a_card_that_is_there_and_has_no_link_to_others() -> None:
    dark = known(nic(0, 3), nic(1, 3, running=False))
    assert findings(with_cards(1, 2), with_cards(2, 2), dark) == []


def test_it_leaves_a_node_that_lacks_the_fastest_network_to_others() -> None:
    fast = [known(nic(0, node, speed=1000), nic(1, node)) for node in (1, 2)]
    assert findings(*fast, known(nic(0, 3, speed=1000))) == []


def test_it_is_silent_about_a_node_with_more_and_about_management_controllers() -> None:
    bmc = nic(9, 0, driver="cdc_ether")
    assert findings(*(known(nic(0, node), bmc) for node in (1, 2)), known(nic(0, 3))) == []
    assert findings(with_cards(1, 2), with_cards(2, 2), with_cards(3, 3)) == []
