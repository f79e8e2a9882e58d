"""NC403: a link that is up and gets no address misses its subnet manager."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_port_initializing import ib_port_initializing


def node(state: str, layer: str = "InfiniBand") -> Facts:
    port = HcaPort("mlx5_0", 1, state, "LinkUp", 100.0, layer)
    return {InfinibandFacts: InfinibandFacts((port,), "sysfs"), GpuFacts: Absent("no NVIDIA GPU")}


def test_initializing_and_armed_ports_are_named_even_where_all_nodes_wait() -> None:
    assert judge([ib_port_initializing], {"n1": node("Initializing"), "n2": node("Armed")}).findings == [
        Finding("NC403", "ib-port-initializing", Severity.ERROR, ("n1", "n2"),
                "mlx5_0 port 1: no answer from a subnet manager",
                ("mlx5_0 port 1: Initializing, LinkUp on n1", "mlx5_0 port 1: Armed, LinkUp on n2"),
                "sudo sminfo -C mlx5_0 -P 1", kind="look", summary="mlx5_0 has no subnet manager"),
    ]  # fmt: skip


def test_it_is_silent_about_active_ports_and_about_ethernet() -> None:
    nodes = {"n1": node("Active"), "n2": node("Initializing", "Ethernet"), "n3": node("Down")}
    assert judge([ib_port_initializing], nodes).findings == []
