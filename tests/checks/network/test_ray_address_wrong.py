"""NC342: the address by which Ray knows a node."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.ray_address_wrong import ray_address_wrong

from tests.checks.network.servers import server
from tests.logins import line_removed


def test_an_address_that_leads_nowhere_is_named_with_its_process() -> None:
    nodes = {"n1": server(1, ray="10.1.0.1"), "n2": server(2, ray="172.17.0.1")}
    why = "is the address of docker0 (container-bridge), where no other node reaches this one"
    assert judge([ray_address_wrong], nodes).findings == [
        Finding("NC342", "ray-address-wrong", Severity.WARNING, ("n2",),
                f"Ray knows this node by 172.17.0.1, which {why}", ("pid 40 raylet",),
                "ncheck plan nodes.txt --for ray", where="here", kind="look",
                summary="Ray knows it by a wrong address"),
    ]  # fmt: skip


def test_another_network_than_nccls_is_only_said() -> None:
    nodes = {"n1": server(1, ray="10.2.0.1"), "n2": server(2, ray="10.1.0.2")}
    assert [(one.severity, one.nodes, one.message) for one in judge([ray_address_wrong], nodes).findings] == [
        (Severity.INFO, ("n1",), "Ray uses eth1 (10.2.0.1), and NCCL eth0"),
    ]
    follows = server(1, ray="10.2.0.1", NCCL_SOCKET_IFNAME="=eth1")
    contained = server(1, ray="10.2.0.1", contained=True)  # where NCCL may have variables of its own
    for first in (follows, contained):
        assert judge([ray_address_wrong], {"n1": first, "n2": server(2)}).findings == []


def test_a_ray_of_one_node_is_its_own_affair_and_none_at_all_is_well() -> None:
    assert judge([ray_address_wrong], {"n1": server(1, ray="127.0.0.1")}).findings == []
    assert judge([ray_address_wrong], {"n1": server(1), "n2": server(2)}).findings == []


def test_nodes_that_all_look_for_ray_on_themselves_never_meet() -> None:
    own = ("ray://127.0.0.1:10001", "localhost", "[::1]:6379")
    nodes = {f"n{number}": server(number, RAY_ADDRESS=address) for number, address in enumerate(own, 1)}
    assert judge([ray_address_wrong], nodes).findings == [
        Finding("NC342", "ray-address-wrong", Severity.WARNING, ("n1", "n2", "n3"),
                "every login has RAY_ADDRESS at a loopback address: each node looks for a Ray of its own", (),
                line_removed("RAY_ADDRESS"), summary="RAY_ADDRESS is a loopback address"),
    ]  # fmt: skip
    for others in ("10.1.0.1:6379", "ray://[fd00::1]:10001", "auto"):
        nodes["n2"] = server(2, RAY_ADDRESS=others)
        assert judge([ray_address_wrong], nodes).findings == []


def test_the_dashboard_that_ray_job_submit_asks_is_no_address_of_a_ray_to_join() -> None:
    nodes = {f"n{number}": server(number, RAY_ADDRESS="http://127.0.0.1:8265") for number in (1, 2)}
    assert judge([ray_address_wrong], nodes).findings == []
