"""NCCL_IB_HCA and NCCL_IB_GID_INDEX, in tables of small clusters: nothing where all Active ports are the job's."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import Gid, HcaPort, InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Login
from ncheck.model.plan import Setting
from ncheck.parse.interface_names import Kind
from ncheck.plan.hca import advise_hcas

HCA, GID = "NCCL_IB_HCA", "NCCL_IB_GID_INDEX"


def port(words: str) -> HcaPort:
    """Make a port of "mlx5_0 400"; "roce", "down", "gid3" and "on:eno1" say what is otherwise."""
    name, rate, *rest = words.split()
    active = "down" not in rest
    found = [word.removeprefix("gid") for word in rest if word.startswith("gid")]
    return HcaPort(
        name,
        1,
        "Active" if active else "Down",
        "LinkUp" if active else "Polling",
        float(rate),
        "Ethernet" if "roce" in rest else "InfiniBand",
        netdev=next((word.removeprefix("on:") for word in rest if word.startswith("on:")), ""),
        gids=tuple(Gid(int(index), "0000:0000:0000:0000:0000:ffff:0a01:0007", "RoCE v2") for index in found),
    )


def node(*ports: str, nccl: str = "2.32.3", **variables: str) -> Facts:
    wire = Interface("eno1", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, default_route=True)
    return {
        LoginFacts: LoginFacts(Login(reached=True)),
        NicFacts: NicFacts((wire,)),
        InfinibandFacts: InfinibandFacts(tuple(map(port, ports)), "sysfs"),
        EnvironmentFacts: EnvironmentFacts(variables, {}),
        LoadedNcclFacts: LoadedNcclFacts(nccl, "/opt/libnccl.so.2"),
    }


Values = dict[str, str | None]
Advised = tuple[Values, dict[str, Values], tuple[str, ...]]
NOTHING: Advised = ({}, {}, ())


def advised(*facts: Facts) -> Advised:
    """Return the values for all nodes, those of each, and the notes."""
    nodes = {f"n{number}": held for number, held in enumerate(facts, 1)}
    made = advise_hcas(Cluster.of(nodes))
    own = {name: {variable: one.value for variable, one in held.items()} for name, held in made.per_node.items()}
    return {name: one.value for name, one in made.env.items()}, own, made.notes


@pytest.mark.parametrize("ports", [
    ("mlx5_0 400", "mlx5_1 400"),
    ("mlx5_0 400", "mlx5_1 10 down"),
    ("mlx5_0 200 roce",),
    ("mlx5_0 25 roce on:eno1",),
])  # fmt: skip
def test_where_all_active_ports_are_the_jobs_nothing_is_set(ports: tuple[str, ...]) -> None:
    assert advised(node(*ports), node(*ports)) == NOTHING


def test_a_port_that_is_down_or_slow_on_one_node_is_to_be_mended_and_not_left_out() -> None:
    well, down, slow = node("mlx5_0 400", "mlx5_1 400"), node("mlx5_0 400", "mlx5_1 10 down"), node(
        "mlx5_0 400", "mlx5_1 100"
    )  # fmt: skip
    assert advised(well, down, well) == NOTHING
    assert advised(well, slow, well) == NOTHING


@pytest.mark.parametrize(("ports", "value", "why"), [
    (("mlx5_0 400", "mlx5_1 400", "mlx5_2 100"), "=mlx5_0:1,mlx5_1:1",
     "mlx5_2:1 not used on n[1-2]: 100 Gb/s, the others 400: probably a separate network, such as storage"),
    (("mlx5_9 400", "mlx5_10 400", "mlx5_2 100 down", "mlx5_3 200", "mlx5_4 200"), "=mlx5_9:1,mlx5_10:1",
     "mlx5_3:1, mlx5_4:1 not used on n[1-2]: 200 Gb/s, the others 400: probably a separate network, such as storage"),
    (("mlx5_0 400", "mlx5_1 400", "mlx5_2 100 roce"), "=mlx5_0:1,mlx5_1:1",
     "mlx5_2:1 not used on n[1-2]: its link layer is Ethernet, the others use InfiniBand"),
    (("mlx5_0 200 roce", "mlx5_1 200 roce", "mlx5_2 25 roce on:eno1"), "=mlx5_0:1,mlx5_1:1",
     "mlx5_2:1 not used on n[1-2]: logins arrive on eno1, and other ports are faster"),
])  # fmt: skip
def test_ports_of_other_networks_are_left_out_with_the_reason(ports: tuple[str, ...], value: str, why: str) -> None:
    assert advised(node(*ports), node(*ports)) == ({HCA: value}, {}, (why,))


def test_the_whole_setting_says_who_would_be_wrong_and_why() -> None:
    facts = {"n1": node("mlx5_0 400", "mlx5_1 100"), "n2": node("mlx5_0 400")}
    made = advise_hcas(Cluster.of(facts))
    why = "mlx5_1:1 not used on n1: 100 Gb/s, the others 400: probably a separate network, such as storage"
    reason = "NCCL would use all Active ports on n1, and not all are for the job"
    assert made.env == {HCA: Setting("=mlx5_0:1", reason, (why,))}


def test_a_port_that_most_nodes_do_not_have_is_left_out() -> None:
    usual = node("mlx5_0 400")
    why = "mlx5_8:1 not used on n3: most nodes have no such port"
    assert advised(usual, usual, node("mlx5_0 400", "mlx5_8 400")) == ({HCA: "=mlx5_0:1"}, {}, (why,))


def test_names_that_differ_are_one_list_where_it_is_exact_on_all_nodes() -> None:
    made = advised(node("ibp1s0 400", "roce9 25 roce on:eno1"), node("mlx5_0 400", "roce9 25 roce on:eno1"))
    assert made[:2] == ({HCA: "=ibp1s0:1,mlx5_0:1"}, {})


def test_where_a_name_means_another_port_elsewhere_each_node_gets_its_own() -> None:
    shifted = node("mlx5_0 25 roce on:eno1", "mlx5_1 400")
    made = advised(node("mlx5_0 400", "mlx5_1 25 roce on:eno1"), shifted)
    assert made[:2] == ({HCA: None}, {"n1": {HCA: "=mlx5_0:1"}, "n2": {HCA: "=mlx5_1:1"}})
    assert made[2][-2:] == (
        "NCCL_IB_HCA on n1: echo NCCL_IB_HCA==mlx5_0:1 | sudo tee -a /etc/nccl.conf",
        "NCCL_IB_HCA on n2: echo NCCL_IB_HCA==mlx5_1:1 | sudo tee -a /etc/nccl.conf",
    )


def test_a_list_that_somebody_set_is_left_alone_unless_it_leads_nowhere() -> None:
    chosen = node("mlx5_0 400", "mlx5_1 100", NCCL_IB_HCA="mlx5")
    assert advised(chosen, chosen) == NOTHING
    astray = node("mlx5_0 400", "mlx5_1 100", NCCL_IB_HCA="=mlx5_7")
    assert advised(astray, astray)[0] == {HCA: "=mlx5_0:1"}


def test_where_a_node_has_no_active_port_nothing_is_said() -> None:
    assert advised(node("mlx5_0 400", "mlx5_1 100"), node("mlx5_0 400 down")) == NOTHING


OLD = "2.20.5"
AT = f"NCCL {OLD} uses GID index 0 by default; RoCE v2 with the IPv4 address is at index"


@pytest.mark.parametrize(("ports", "nccl", "value"), [
    (("mlx5_0 200 roce gid3", "mlx5_1 200 roce gid3"), OLD, {GID: "3"}),
    (("mlx5_0 200 roce gid0",), OLD, {}),
    (("mlx5_0 200 roce gid3",), "2.21.5", {}),
    (("mlx5_0 400",), OLD, {}),
    (("mlx5_0 200 roce gid3", "mlx5_1 200 roce gid5"), OLD, {GID: None}),
    (("mlx5_0 200 roce",), OLD, {GID: None}),
])  # fmt: skip
def test_only_old_nccl_on_roce_is_told_the_index(ports: tuple[str, ...], nccl: str, value: dict[str, str]) -> None:
    assert advised(node(*ports, nccl=nccl), node(*ports, nccl=nccl))[0] == value


def test_an_index_that_differs_is_each_nodes_own_and_one_that_is_set_is_left() -> None:
    first, second = node("mlx5_0 200 roce gid3", nccl=OLD), node("mlx5_0 200 roce gid5", nccl=OLD)
    assert advised(first, second) == (
        {GID: None},
        {"n1": {GID: "3"}, "n2": {GID: "5"}},
        (
            "NCCL_IB_GID_INDEX on n1: echo NCCL_IB_GID_INDEX=3 | sudo tee -a /etc/nccl.conf",
            "NCCL_IB_GID_INDEX on n2: echo NCCL_IB_GID_INDEX=5 | sudo tee -a /etc/nccl.conf",
        ),
    )
    told = {**first, EnvironmentFacts: EnvironmentFacts({GID: "3"}, {})}
    assert advised(told, told) == NOTHING
