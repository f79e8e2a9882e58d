"""NC402: a port that looks for a partner in vain is named, unless it is a spare one."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_port_polling import ib_port_polling


def node(*states: str) -> Facts:
    """Make one port a card, or of one card where the state begins with "+"."""
    ports = tuple(
        HcaPort(f"mlx5_{i}", 1, "Active" if "LinkUp" in state else "Down", state.lstrip("+"), 200.0, "InfiniBand",
                pci=f"0000:{i - state.count('+')}b:00.{state.count('+')}")
        for i, state in enumerate(states)
    )  # fmt: skip
    return {
        InfinibandFacts: InfinibandFacts(ports, "ibstat"),
        GpuFacts: Absent("no NVIDIA GPU"),
        LibraryFacts: LibraryFacts("", NO_HCA),
    }


def test_a_polling_port_of_one_node_is_named() -> None:
    nodes = {"n1": node("LinkUp", "LinkUp"), "n2": node("LinkUp", "LinkUp"), "n3": node("LinkUp", "Polling")}
    assert judge([ib_port_polling], nodes).findings == [
        Finding("NC402", "ib-port-polling", Severity.ERROR, ("n3",),
                "mlx5_1 port 1: nothing answers at the other end of the cable (Polling): "
                "compare its module with that of a healthy node",
                ("mlx5_1 port 1: Down, Polling on n3",), "sudo mlxlink -d mlx5_1 -p 1 -m -c",
                kind="look", summary="mlx5_1 has no link"),
    ]  # fmt: skip


def test_a_polling_card_of_one_node_alone_is_named() -> None:
    assert [found.nodes for found in judge([ib_port_polling], {"n1": node("LinkUp", "Polling")}).findings] == [("n1",)]


def test_it_is_silent_about_the_second_port_of_cards_in_use() -> None:
    nodes = {name: node("LinkUp", "+Polling") for name in ("n1", "n2")}
    assert judge([ib_port_polling], nodes).findings == []


def test_it_is_silent_about_a_card_that_no_node_uses() -> None:
    nodes = {name: node("LinkUp", "Polling") for name in ("n1", "n2")}
    assert judge([ib_port_polling], nodes).findings == []
