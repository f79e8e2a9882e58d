"""NC409: a card that the others have is gone from the bus."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.pci import INFINIBAND, MELLANOX, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.adapter_not_on_bus import adapter_not_on_bus

FOUR = ("0000:18:00.0", "0000:3b:00.0", "0000:9a:00.0", "0000:db:00.0")
ETHERNET = 0x0200
PASSED, SKIPPED, UNKNOWN = Outcome.PASSED, Outcome.SKIPPED, Outcome.UNKNOWN


def node(*addresses: str, kind: int = INFINIBAND, active: tuple[str, ...] = (), left_out: int = 0) -> Facts:
    """Return a node with NVIDIA's cards at these addresses, of which the `active` ones are HCAs, and Intel's NIC."""
    cards = tuple(PciDevice(address, kind, MELLANOX, 0x1021, "mlx5_core") for address in addresses)
    nic = PciDevice("0000:05:00.0", ETHERNET, 0x8086, 0x1572, "i40e")
    ports = tuple(
        HcaPort(f"mlx5_{number}", 1, "Active", "LinkUp", 400, "Ethernet", pci=address)
        for number, address in enumerate(active)
    )
    return {
        PciFacts: PciFacts((nic, *cards), left_out),
        InfinibandFacts: InfinibandFacts(ports, "sysfs") if ports else Absent("no InfiniBand or RoCE device"),
        GpuFacts: Absent("no NVIDIA GPU"),
        LibraryFacts: LibraryFacts("", NO_HCA),
    }


def outcomes(*nodes: Facts) -> list[Outcome]:
    verdicts = judge([adapter_not_on_bus], {f"n{number}": facts for number, facts in enumerate(nodes)}).verdicts
    return [verdict.outcome for verdict in verdicts]


def test_the_empty_slot_is_named() -> None:
    nodes = {"n1": node(*FOUR), "n2": node(*FOUR), "n3": node(*FOUR[:1], *FOUR[2:])}
    assert judge([adapter_not_on_bus], nodes).findings == [
        Finding("NC409", "adapter-not-on-bus", Severity.ERROR, ("n3",),
                "3 of 4 adapters 15b3:1021 are on the PCI bus: nothing at 0000:3b:00.0", ("4 x 15b3:1021 on n[1-2]",),
                "lspci -nn | grep -Ei 'ethernet|infiniband'", kind="look",
                summary="1 network adapter is missing from the bus"),
    ]  # fmt: skip


def test_slots_that_were_numbered_anew_are_counted_and_not_named() -> None:
    moved = node("0000:18:00.0", "0000:3a:00.0", "0000:99:00.0")
    (found,) = judge([adapter_not_on_bus], {"n1": node(*FOUR), "n2": node(*FOUR), "n3": moved}).findings
    assert found.message == "3 of 4 adapters 15b3:1021 are on the PCI bus"


def test_an_ethernet_card_counts_where_a_node_uses_it_for_roce() -> None:
    roce = node(*FOUR, kind=ETHERNET, active=FOUR)
    assert outcomes(roce, roce, node(*FOUR[:3], kind=ETHERNET, active=FOUR[:3]))[2] is Outcome.FAILED
    plain = node(*FOUR, kind=ETHERNET)
    assert outcomes(plain, plain, node(*FOUR[:3], kind=ETHERNET)) == [SKIPPED, SKIPPED, SKIPPED]


def test_it_is_silent_about_a_storage_card_that_few_nodes_have_and_about_a_tie() -> None:
    storage = node(*FOUR, "0000:f0:00.0")
    assert outcomes(node(*FOUR), node(*FOUR), storage) == [PASSED, PASSED, PASSED]
    assert outcomes(node(*FOUR), node(*FOUR), storage, storage) == [PASSED] * 4
    assert outcomes(node(*FOUR), node(*FOUR[:3])) == [PASSED, PASSED]


def test_it_is_silent_where_slots_differ_and_numbers_do_not() -> None:
    assert outcomes(node(*FOUR), node("0000:19:00.0", "0000:3c:00.0", "0000:9b:00.0", "0000:dc:00.0")) == [PASSED] * 2


def test_a_list_that_was_too_long_is_no_proof() -> None:
    assert outcomes(node(*FOUR), node(*FOUR), node(*FOUR[:3], left_out=7)) == [PASSED, PASSED, UNKNOWN]
