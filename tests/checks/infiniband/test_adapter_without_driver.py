"""NC410: a card on the bus that no program can use for RDMA."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.hcas import HcaModuleFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.pci import AMAZON, INFINIBAND, MELLANOX, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.adapter_without_driver import adapter_without_driver

ADDRESS = "0000:3b:00.0"
ETHERNET = 0x0200
PASSED, SKIPPED, FAILED = Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED


def node(*modules: str, kind: int = INFINIBAND, driver: str = "", hca: bool = False, virtual: bool = False) -> Facts:
    card = PciDevice(ADDRESS, kind, MELLANOX, 0x1021, driver, virtual=virtual)
    port = HcaPort("mlx5_0", 1, "Active", "LinkUp", 400, "InfiniBand", pci=ADDRESS)
    return {
        PciFacts: PciFacts((card,)),
        HcaModuleFacts: HcaModuleFacts(dict.fromkeys(modules, "")),
        LibraryFacts: LibraryFacts("", NO_HCA),
        InfinibandFacts: InfinibandFacts((port,), "sysfs") if hca else Absent("no InfiniBand or RoCE device"),
    }


def outcomes(*nodes: Facts) -> list[Outcome]:
    verdicts = judge([adapter_without_driver], {f"n{number}": facts for number, facts in enumerate(nodes)}).verdicts
    return [verdict.outcome for verdict in verdicts]


def test_a_card_without_a_driver_is_named_even_alone() -> None:
    assert judge([adapter_without_driver], {"n1": node()}).findings == [
        Finding("NC410", "adapter-without-driver", Severity.ERROR, ("n1",), "0000:3b:00.0: no driver", (),
                "sudo modprobe mlx5_ib", summary="an adapter has no driver"),
    ]  # fmt: skip


def test_a_card_of_efa_without_a_driver_is_named() -> None:
    card = PciDevice(ADDRESS, ETHERNET, AMAZON, 0xEFA2)
    (found,) = judge([adapter_without_driver], {"n1": {**node(), PciFacts: PciFacts((card,))}}).findings
    assert (found.message, found.fix) == ("0000:3b:00.0: no driver", "sudo modprobe efa")
    ena = PciDevice(ADDRESS, ETHERNET, AMAZON, 0xEC20)
    assert outcomes({**node(), PciFacts: PciFacts((replace(card, driver="efa"),))}) == [PASSED]
    assert outcomes({**node(), PciFacts: PciFacts((ena,))}) == [SKIPPED]


def test_a_card_whose_rdma_module_is_not_loaded_is_named() -> None:
    (found,) = judge([adapter_without_driver], {"n1": node("mlx5_core", driver="mlx5_core")}).findings
    assert found.message == "0000:3b:00.0: no RDMA driver: mlx5_core is loaded, mlx5_ib is not"


def test_an_ethernet_card_counts_where_most_others_are_rdma_devices() -> None:
    well = node("mlx5_core", "mlx5_ib", kind=ETHERNET, driver="mlx5_core", hca=True)
    ill = node("mlx5_core", kind=ETHERNET, driver="mlx5_core")
    assert outcomes(well, well, ill) == [PASSED, PASSED, FAILED]
    assert outcomes(ill, ill) == [PASSED, PASSED]


def test_it_is_silent_about_cards_in_use_cards_of_virtual_machines_and_cards_hidden_from_a_container() -> None:
    both = ("mlx5_core", "mlx5_ib")
    assert outcomes(
        node(*both, driver="mlx5_core", hca=True), node(driver="vfio-pci"), node(virtual=True),
        node(*both, driver="mlx5_core"),
    ) == [PASSED, PASSED, SKIPPED, PASSED]  # fmt: skip


def test_an_old_card_gets_the_module_of_its_own() -> None:
    old = PciDevice(ADDRESS, INFINIBAND, MELLANOX, 0x1003, "mlx4_core")
    nodes = {"n1": {**node("mlx4_core"), PciFacts: PciFacts((old,))}}
    assert [found.fix for found in judge([adapter_without_driver], nodes).findings] == ["sudo modprobe mlx4_ib"]


def test_a_node_whose_hcas_could_not_be_read_is_unknown() -> None:
    blind = {**node("mlx5_core", driver="mlx5_core"), InfinibandFacts: Unread("ibstat did not end within 10 s")}
    assert outcomes(blind) == [Outcome.UNKNOWN]
