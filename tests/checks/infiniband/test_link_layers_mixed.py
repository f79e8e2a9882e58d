"""NC420: InfiniBand and RoCE ports for one job."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.link_layers_mixed import link_layers_mixed

from .fabric import PASSED, SKIPPED, node, outcomes, port

ETHERNET = port("mlx5_1", "Ethernet")


def test_an_ethernet_port_that_is_as_fast_is_named() -> None:
    assert judge([link_layers_mixed], {"n1": node(port(), ETHERNET)}).findings == [
        Finding("NC420", "link-layers-mixed", Severity.WARNING, ("n1",),
                "NCCL would use mlx5_1:1 (Ethernet) together with mlx5_0:1 (InfiniBand)", (),
                "ncheck plan nodes.txt", where="here", summary="link layers are mixed"),
    ]  # fmt: skip


def test_it_is_silent_about_slower_ports_ports_that_are_not_selected_and_one_layer() -> None:
    slower = port("mlx5_1", "Ethernet", rate=100)
    down = port("mlx5_1", "Ethernet", state="Down")
    chosen = node(port(), ETHERNET, NCCL_IB_HCA="=mlx5_0")
    assert (
        outcomes(judge, link_layers_mixed, node(port(), slower), node(port(), down), chosen, node(ETHERNET))
        == [PASSED] * 4
    )
    assert outcomes(judge, link_layers_mixed, node(port(state="Down"))) == [SKIPPED]
