"""NC414: a GUID or a LID that is not unique."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_address_twice import ib_address_twice

from .fabric import PASSED, Both, messages, node, outcomes, port

A, B, C = "0x946dae0300a1b2c4", "0x946dae0300a1b2c8", "0x946dae0300a1b2d0"


def machine(boot: str, *ports: Both) -> Facts:
    return {**node(*ports), IdentityFacts: IdentityFacts(boot, boot, "net:[1]", 0)}


def test_a_guid_on_two_nodes_is_one_finding() -> None:
    nodes = {
        "n1": machine("a", port(guid=A)),
        "n2": machine("b", port(guid=A)),
        "n3": machine("c", port(guid=B, lid=6)),
    }
    assert judge([ib_address_twice], nodes).findings == [
        Finding("NC414", "ib-address-twice", Severity.ERROR, ("n1", "n2"),
                f"port GUID {A} is used by 2 ports: n1 mlx5_0 port 1, n2 mlx5_0 port 1", (), "sudo ibnetdiscover",
                kind="look", summary="an InfiniBand address is used twice"),
    ]  # fmt: skip


def test_a_lid_on_the_same_port_of_two_nodes_is_named() -> None:
    assert messages(judge, ib_address_twice, machine("a", port(guid=A)), machine("b", port(guid=B))) == [
        ("LID 5 is used by 2 ports: n1 mlx5_0 port 1, n2 mlx5_0 port 1", ("n1", "n2"))
    ]


def test_two_cards_of_one_node_with_the_image_of_one_are_named_even_alone() -> None:
    assert messages(judge, ib_address_twice, machine("a", port(guid=A), port("mlx5_1", guid=A, lid=6))) == [
        (f"port GUID {A} is used by 2 ports: n1 mlx5_0 port 1, n1 mlx5_1 port 1", ("n1",))
    ]


def test_it_is_silent_about_one_machine_virtual_functions_other_subnets_and_ports_without_an_address() -> None:
    same = machine("a", port(guid=A))
    assert outcomes(judge, ib_address_twice, same, same) == [PASSED, PASSED]
    shared = (machine("a", port(guid=A, kind="MT4126")), machine("b", port(guid=B, kind="MT4126")))
    assert outcomes(judge, ib_address_twice, *shared) == [PASSED, PASSED]
    rails = (
        machine("a", port("mlx5_0", guid=A)),
        machine("b", port("mlx5_1", guid=B), port("mlx5_0", guid=C, sm_lid=2)),
    )
    assert outcomes(judge, ib_address_twice, *rails) == [PASSED, PASSED]
    bare = (machine("a", port(lid=0)), machine("b", port(lid=0, guid="0x0000000000000000")))
    assert outcomes(judge, ib_address_twice, *bare) == [PASSED, PASSED]
