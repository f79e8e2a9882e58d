"""NC406: a card that no node has a link on may be idle, or its switch is off."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.hca_dark_everywhere import hca_dark_everywhere


def node(*states: str, layer: str = "InfiniBand", card: str = "") -> Facts:
    ports = tuple(
        HcaPort(
            f"mlx5_{i}",
            1,
            state,
            "LinkUp" if state == "Active" else "Polling",
            400.0,
            layer,
            pci=card and f"{card}.{i}",
        )
        for i, state in enumerate(states)
    )
    return {InfinibandFacts: InfinibandFacts(ports, "sysfs"), GpuFacts: Absent("no NVIDIA GPU")}


def test_a_card_without_a_link_on_any_node_is_a_warning() -> None:
    nodes = {"n1": node("Active", "Down"), "n2": node("Active", "Down")}
    assert judge([hca_dark_everywhere], nodes).findings == [
        Finding("NC406", "hca-dark-everywhere", Severity.WARNING, ("n1", "n2"), "mlx5_1 port 1: no link on any node",
                ("mlx5_1 port 1: Down, Polling on n[1-2]",), "sudo iblinkinfo",
                kind="look", summary="mlx5_1 has no link on any node"),
    ]  # fmt: skip


def test_it_is_silent_where_another_check_names_the_node() -> None:
    nodes = {"n1": node("Active", "Active"), "n2": node("Active", "Down")}
    assert judge([hca_dark_everywhere], nodes).findings == []


def test_it_is_silent_about_spare_ports_and_ethernet() -> None:
    spare = {name: node("Active", "Down", card="0000:3b:00") for name in ("n1", "n2")}
    ethernet = {name: node("Active", "Down", layer="Ethernet") for name in ("n1", "n2")}
    assert [judge([hca_dark_everywhere], nodes).findings for nodes in (spare, ethernet)] == [[], []]
