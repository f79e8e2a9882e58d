"""NC653: hardware that differs between nodes with the same GPUs."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_load import HostLoadFacts, Use
from ncheck.facts.machine import MachineFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.machine_differs import machine_differs

GIB = 2**30
MACHINE = MachineFacts(
    "6.8.0", "x86_64", "Intel(R) Xeon(R) Platinum 8468", 2, 96, 192, 2, 2015 * GIB, "Supermicro SYS-821GE", "",
    "2.1", 8,
)  # fmt: skip


def node(swap: int = 0, **other: object) -> Facts:
    load = HostLoadFacts(192, 2015 * GIB, swap=Use(0, swap) if swap else None)
    return {
        MachineFacts: replace(MACHINE, **other), HostLoadFacts: load, GpuFacts: Absent("no GPU"),  # type: ignore[arg-type]
    }  # fmt: skip


def messages(*nodes: Facts) -> list[str]:
    return [one.message for one in judge([machine_differs], {f"n{at}": own for at, own in enumerate(nodes)}).findings]


def test_a_node_that_lost_a_memory_module_is_named() -> None:
    nodes = {"a": node(), "b": node(memory=2014 * GIB), "c": node(memory=1951 * GIB)}
    assert judge([machine_differs], nodes).findings == [
        Finding("NC653", "machine-differs", Severity.WARNING, ("c",),
                "the installed memory differs: 2014.0 GiB on a,b, 1951.0 GiB on c (2 to 1)", (),
                "free -g; sudo dmidecode -t memory | grep -E 'Locator|Size'", kind="look",
                summary="the installed memory differs"),
    ]  # fmt: skip


def test_processors_drives_the_bios_of_one_product_and_swap_count() -> None:
    usual, xeon = (node(), node()), "Intel(R) Xeon(R) Platinum 8468"
    assert messages(*usual, node(sockets=1, cores=48)) == [
        f"the set of processors differs: 2 x {xeon}, 96 cores on n[0-1], 1 x {xeon}, 48 cores on n2 (2 to 1)"
    ]
    assert messages(*usual, node(nvme_drives=7)) == ["the number of NVMe drives differs: 8 on n[0-1], 7 on n2 (2 to 1)"]
    assert messages(*usual, node(bios="2.3")) == ["the version of the BIOS differs: 2.1 on n[0-1], 2.3 on n2 (2 to 1)"]
    assert messages(*usual, node(8 * GIB)) == [
        "the size of the swap space differs: 0.0 GiB on n[0-1], 8.0 GiB on n2 (2 to 1)"
    ]


def test_equal_machines_other_products_and_what_is_not_shown_are_healthy() -> None:
    hidden = node(cpu=None, sockets=None, cores=None, memory=None, product="", bios="", nvme_drives=None)
    assert messages(node(), node(memory=1980 * GIB), hidden, node(product="Dell XE9680", bios="1.7")) == []
    verdicts = judge([machine_differs], {"a": node(), "b": node()}).verdicts
    assert {one.outcome for one in verdicts} == {Outcome.PASSED}
