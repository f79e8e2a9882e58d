"""NC418: cards of one product with different firmware."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.hca_firmware_differs import hca_firmware_differs

from .fabric import PASSED, SKIPPED, messages, node, outcomes, port

OLD = "28.36.1010"


def test_a_node_with_other_firmware_is_named() -> None:
    nodes = {"n1": node(port()), "n2": node(port()), "n3": node(port(firmware=OLD))}
    assert judge([hca_firmware_differs], nodes).findings == [
        Finding("NC418", "hca-firmware-differs", Severity.WARNING, ("n3",),
                "firmware of MT4129 (MT_0000000838) differs: 28.39.1002 on n[1-2], 28.36.1010 on n3 (2 to 1)", (),
                "sudo mlxfwmanager", kind="look", summary="the firmware of HCAs differs"),
    ]  # fmt: skip


def test_one_card_of_a_node_is_named_even_alone() -> None:
    assert messages(judge, hca_firmware_differs, node(port(), port("mlx5_1", firmware=OLD))) == [
        ("firmware of MT4129 (MT_0000000838) differs: 28.36.1010 and 28.39.1002 in one node", ("n1",))
    ]


def test_it_is_silent_about_other_products_virtual_functions_and_what_shows_no_firmware() -> None:
    storage = port("mlx5_9", kind="MT4123", firmware="20.31.1014", board="MT_0000000223")
    assert outcomes(judge, hca_firmware_differs, node(port(), storage), node(port())) == [PASSED, PASSED]
    virtual = node(port(kind="MT4126", firmware=OLD))
    assert outcomes(judge, hca_firmware_differs, node(port(kind="MT4126")), virtual) == [SKIPPED, SKIPPED]
    assert outcomes(judge, hca_firmware_differs, node(port(firmware=""))) == [SKIPPED]
