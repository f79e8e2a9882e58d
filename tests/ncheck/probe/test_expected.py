"""The model is held to what others measured and published: each row is a system, what it should give, what it gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.pcie import PcieFacts
from ncheck.model.op import Op
from ncheck.model.report import Standing
from ncheck.probe.expected import Expected, expectation, expected
from ncheck.probe.links.hardware import HARDWARE_FACTS, NodeHardware, hardware_of
from ncheck.probe.node_result import Carried, Method, Stage
from ncheck.probe.standing import of_share

from tests.ncheck.probe.machines import (
    A100,
    A100_PCIE,
    AMD,
    B200,
    CUBE,
    H100,
    H100_NVL,
    H200,
    L40S,
    SAPPHIRE_RAPIDS,
    V100,
    board,
    bus,
    in_domain,
    lanes,
    places,
    rail,
    rails,
    ran,
    settings,
    with_rails,
)

HGX = board(H100, 8)


def alone(hardware: NodeHardware, ranks: int, **told: str) -> Expected:
    return expected(ran(Stage.INSIDE, ["n1"], ranks, **told), {"n1": hardware})  # type: ignore[arg-type]


def together(hardware: NodeHardware, nodes: int, rate: float, ranks: int = 8, rails_: int = 8) -> Expected:
    names = [f"n{number}" for number in range(1, nodes + 1)]
    held = with_rails(hardware, *rails(rails_, rate))
    run = ran(Stage.ALL, names, ranks, planned=places(rails_))
    return expected(run, dict.fromkeys(names, held))


CUBE_OF_V100 = board(V100, 8, "SYS", {pair: f"NV{links}" for pair, links in CUBE.items()})
BRIDGED = board(A100_PCIE, 4, "NODE", {(0, 1): "NV12", (2, 3): "NV12"}, bus(4, 4, AMD))

# System, model, published, published over model as it was found. Sources: acceptance gates of Azure's node health
# checks and of Oracle's, nccl-tests runs of S. Bekman's ml-engineering book and of Oracle's troubleshooting guide.
INSIDE = [
    ("8 x V100 in a cube, gate", alone(CUBE_OF_V100, 8), 120.0, 110.0, 0.92),
    ("8 x A100", alone(board(A100, 8, "NV12"), 8), 240.0, 235.0, 0.98),
    ("8 x A100, another cloud", alone(board(A100, 8, "NV12"), 8), 240.0, 230.2, 0.96),
    ("8 x A100, gate", alone(board(A100, 8, "NV12"), 8), 240.0, 228.0, 0.95),
    ("2 x A100 PCIe, NVLink bridges, gate", alone(board(A100_PCIE, 2, "NV12"), 2), 240.0, 193.0, 0.80),
    ("2 x H100 NVL, 12 links bridged, gate", alone(board(H100_NVL, 2, "NV12"), 2), 247.2, 208.0, 0.84),
    ("4 x A100 PCIe, two bridged pairs, gate", alone(BRIDGED, 4), 24.0, 25.0, 1.04),
    ("8 x H200 without NVLS", alone(replace(board(H200, 8), environment=settings(NCCL_NVLS_ENABLE="0")), 8),
     370.8, 365.6, 0.986),
    ("4 of 8 x H200 without NVLS", alone(replace(board(H200, 8), environment=settings(NCCL_NVLS_ENABLE="0")), 4),
     370.8, 363.3, 0.980),
    ("5 of 8 x H200", alone(board(H200, 8), 5), 420.2, 414.2, 0.986),
    ("6 of 8 x H200", alone(board(H200, 8), 6), 450.3, 435.6, 0.967),
    ("7 of 8 x H200", alone(board(H200, 8), 7), 472.8, 460.0, 0.973),
    ("8 x H200", alone(board(H200, 8), 8), 490.3, 473.1, 0.965),
    ("8 x H100, gate", alone(HGX, 8), 490.3, 460.0, 0.94),
    ("8 x H200, gate", alone(board(H200, 8), 8), 490.3, 431.0, 0.88),
    ("4 of 8 x B200", alone(board(B200, 8), 4), 721.8, 673.2, 0.933),
    ("5 of 8 x B200", alone(board(B200, 8), 5), 721.8, 677.8, 0.939),
    ("8 x B200 without NVLS", alone(replace(board(B200, 8), environment=settings(NCCL_NVLS_ENABLE="0")), 8),
     721.8, 682.2, 0.945),
    ("6 of 8 x B200", alone(board(B200, 8), 6), 763.0, 778.2, 1.02),
    ("7 of 8 x B200", alone(board(B200, 8), 7), 801.2, 811.2, 1.01),
    ("8 x B200", alone(board(B200, 8), 8), 830.9, 838.0, 1.01),
]  # fmt: skip

BETWEEN = [
    ("2 x 8 H100, 8 x 400G", together(HGX, 2, 400), 490.3, 471.2, 0.96),
    ("4 x 8 B200, 8 x 400G", together(board(B200, 8), 4, 400), 400.0, 381.8, 0.955),
    ("4 x 8 H200, 8 x 400G", together(board(H200, 8), 4, 400), 400.0, 364.9, 0.91),
    ("many x 8 A100, 8 x 200G, gate", together(board(A100, 8, "NV12"), 8, 200), 200.0, 185.0, 0.93),
]


@pytest.mark.parametrize(("system", "found", "model", "published", "ratio"), INSIDE + BETWEEN)
def test_the_model_gives_what_was_published(
    system: str, found: Expected, model: float, published: float, ratio: float
) -> None:
    assert found.busbw is not None, system
    assert round(found.busbw, 1) == model
    assert published / found.busbw == pytest.approx(ratio, abs=0.006)


@pytest.mark.parametrize(("found", "gate"), [
    (together(board(A100, 8, "NV12"), 2, 200), 150.0), (together(HGX, 2, 400), 250.0),
    (together(board(B200, 8), 2, 400), 250.0),
])  # fmt: skip
def test_conservative_gates_of_two_nodes_are_met_by_what_is_expected(found: Expected, gate: float) -> None:
    assert found.busbw is not None
    assert gate < found.busbw


def test_nvls_begins_where_it_was_seen_to_begin() -> None:
    terms = {n: alone(board(B200, 8), n).limited_by.split(":")[0] for n in (4, 5, 6, 8)}
    assert terms == {
        4: "ring over NVLink", 5: "ring over NVLink", 6: "NVLS over 6 GPUs", 8: "NVLS over 8 GPUs",
    }  # fmt: skip
    assert alone(board(H200, 8), 3).limited_by == "ring over NVLink: 18 NVLinks x 20.6 GB/s"


def test_the_limiting_term_is_named() -> None:
    assert alone(HGX, 8).limited_by == "NVLS over 8 GPUs: 18 NVLinks x 20.6 GB/s"
    assert together(HGX, 4, 400).limited_by == "NIC sum: 8 x 400 Gb/s"
    assert together(HGX, 2, 100).limited_by == "NIC sum: 8 x 100 Gb/s, twice between two nodes"
    assert alone(BRIDGED, 4).limited_by == "PCIe 4.0 x16 between GPUs"


AT_LEAST = "NIC sum: 8 x 200 Gb/s, at least: a tree between two nodes can carry more"


@pytest.mark.parametrize(("hardware", "version", "busbw", "term"), [
    (HGX, "2.18.1", 375.0, "NIC sum: 8 x 200 Gb/s, twice between two nodes"),
    (HGX, "2.17.1", 200.0, AT_LEAST), (HGX, "", 200.0, AT_LEAST),
    (board(A100, 8, "NV12"), "2.23.4", 200.0, AT_LEAST), (board(H100, 4, "NV6"), "2.23.4", 200.0, AT_LEAST),
    (replace(HGX, environment=settings(NCCL_NVLS_ENABLE="0")), "2.23.4", 200.0, AT_LEAST),
    (replace(HGX, environment=settings(NCCL_ALGO="Tree")), "2.23.4", 200.0, AT_LEAST),
    (replace(HGX, environment=settings(NCCL_ALGO="Ring")), "2.23.4", 200.0, "NIC sum: 8 x 200 Gb/s"),
    (replace(HGX, environment=settings(NCCL_ALGO="Tree;allreduce:^Tree,NVLSTree")), "2.23.4", 200.0,
     "NIC sum: 8 x 200 Gb/s"),
])  # fmt: skip
def test_two_nodes_are_expected_at_twice_their_nics_only_where_nvls_joins_them(
    hardware: NodeHardware, version: str, busbw: float, term: str
) -> None:
    assert hardware.gpus
    held, ranks = with_rails(hardware, *rails(8, 200)), len(hardware.gpus.gpus)
    run = ran(Stage.ALL, ["n1", "n2"], ranks, planned=places(8), version=version)
    found = expected(run, {"n1": held, "n2": with_rails(HGX, *rails(8, 200))} if ranks == 8 else dict.fromkeys(
        ("n1", "n2"), held
    ))  # fmt: skip
    assert (found.busbw, found.limited_by) == (busbw, term)


def test_a_tree_that_is_pinned_carries_less_inside_and_between_nodes() -> None:
    tree = replace(HGX, environment=settings(NCCL_ALGO="Tree"))
    inside = alone(tree, 8)
    assert inside.busbw == pytest.approx(18 * 20.6 * 0.92 * 7 / 8)
    assert inside.lowered_by == (
        "no NVLS: NCCL_ALGO=Tree in the environment on n1", "no ring: NCCL_ALGO=Tree in the environment on n1"
    )  # fmt: skip
    between = together(tree, 4, 200)
    assert (between.busbw, between.limited_by) == (200 * 31 / 32, "NIC sum: 8 x 200 Gb/s, by a tree (NCCL_ALGO)")


TRAY = with_rails(board("NVIDIA GB200", 4), *rails(4))


def racks(nodes: Mapping[str, NodeHardware], ranks: int = 4, version: str = "2.26.2") -> Expected:
    run = ran(Stage.ALL, list(nodes), ranks, planned=places(4), version=version)
    return expected(run, nodes)


def test_nodes_of_one_nvlink_domain_are_expected_at_their_nvlinks_however_few_ranks() -> None:
    nodes = dict.fromkeys(("n1", "n2", "n3"), in_domain(TRAY, 0))
    for ranks in (1, 4):
        found = racks(nodes, ranks)
        assert found.limited_by == "ring over the NVLink domain: 18 NVLinks x 40.1 GB/s"
        assert found.busbw == pytest.approx(18 * 40.1)
        assert of_share(190 / (found.busbw or 1), Method.NCCL) is Standing.FAR_TOO_LOW  # by the NICs: IMEX is broken
    lost = racks({**nodes, "n2": in_domain(TRAY, 0, links=17)}, 1)
    assert lost.busbw == pytest.approx(17 * 40.1)
    assert lost.lowered_by == ("17 of 18 NVLinks at GPU 3 (0000:13:00.0) of n2",)


def test_domains_of_several_nodes_are_expected_at_more_than_the_nics_of_one() -> None:
    nodes = {f"n{number}": in_domain(TRAY, number // 3) for number in range(6)}
    found = racks(nodes)
    assert (found.busbw, found.limited_by) == (
        400.0, "NIC sum: 4 x 400 Gb/s, at least twice between 2 NVLink domains"
    )  # fmt: skip


@pytest.mark.parametrize("nodes", [
    (TRAY, TRAY, TRAY), (in_domain(TRAY, 0), in_domain(TRAY, 1), in_domain(TRAY, 2)),
    (in_domain(TRAY, 0), in_domain(TRAY, 0, clique=1), in_domain(TRAY, 0, clique=2)),
    (in_domain(TRAY, 0), in_domain(TRAY, 0), in_domain(TRAY, 1)), (in_domain(TRAY, 0), in_domain(TRAY, 0), TRAY),
])  # fmt: skip
def test_a_node_without_others_in_its_domain_is_expected_at_its_nics(nodes: tuple[NodeHardware, ...]) -> None:
    found = racks({f"n{number}": held for number, held in enumerate(nodes)})
    assert found == Expected(200.0, "NIC sum: 4 x 400 Gb/s")


@pytest.mark.parametrize(("version", "variables", "why"), [
    ("2.26.2", {"NCCL_MNNVL_ENABLE": "0"}, "no NVLink between nodes: NCCL_MNNVL_ENABLE=0 in the environment on n1"),
    ("2.26.2", {"NCCL_CUMEM_ENABLE": "0"}, "no NVLink between nodes: NCCL_CUMEM_ENABLE=0 in the environment on n1"),
    ("2.19.3", {}, "NCCL 2.19.3 uses no NVLink between nodes (2.21 does)"),
])  # fmt: skip
def test_nvlink_between_nodes_that_nccl_leaves_out_is_named(version: str, variables: dict[str, str], why: str) -> None:
    held = in_domain(TRAY, 0)
    nodes = {"n1": replace(held, environment=settings(**variables)), "n2": held, "n3": held}
    assert racks(nodes, version=version) == Expected(200.0, "NIC sum: 4 x 400 Gb/s", (why,))


def test_nvls_that_is_off_lowers_it_and_says_where() -> None:
    off = replace(HGX, environment=settings(NCCL_NVLS_ENABLE="0"))
    assert alone(off, 8) == Expected(
        18 * 20.6, "ring over NVLink: 18 NVLinks x 20.6 GB/s", ("no NVLS: NCCL_NVLS_ENABLE=0 in the environment on n1",)
    )
    for on in ("1", "2"):
        assert alone(replace(HGX, environment=settings(NCCL_NVLS_ENABLE=on)), 8) == alone(HGX, 8)


def test_an_algorithm_that_is_pinned_may_leave_nvls_out() -> None:
    for value, lowered in (("Ring", True), ("^NVLS", True), ("Ring,NVLS", False), ("^Tree", False)):
        found = alone(replace(HGX, environment=settings(NCCL_ALGO=value)), 8)
        assert (value, bool(found.lowered_by)) == (value, lowered)


def test_an_old_nccl_has_no_nvls() -> None:
    assert alone(HGX, 8, version="2.16.5").lowered_by == ("NCCL 2.16.5 has no NVLS (2.17 has)",)
    assert alone(HGX, 8, version="").lowered_by == ()


def test_a_gpu_with_fewer_nvlinks_is_named() -> None:
    lost = board(A100, 8, "NV12", {(3, other): "NV11" for other in (0, 1, 2, 4, 5, 6, 7)})
    found = alone(lost, 8)
    assert (found.busbw, found.lowered_by) == (220.0, ("11 NVLinks at GPU3 of n1, more at its other GPUs",))


def test_four_gpus_that_are_linked_without_a_switch_have_the_links_of_all_pairs() -> None:
    assert alone(board(A100, 4, "NV4"), 4).busbw == 240.0
    assert alone(board(H100, 4, "NV6"), 4).limited_by == "ring over NVLink: 18 NVLinks x 20.6 GB/s"


def test_a_rail_that_is_missing_lowers_the_sum_by_its_share() -> None:
    names = ["n1", "n2", "n3", "n4"]
    whole = with_rails(HGX, *rails(8))
    hurt = with_rails(HGX, *rails(7), rail(7, state="Down"))
    run = ran(Stage.ALL, names, 8, planned=places(8))
    found = expected(run, {**dict.fromkeys(names, whole), "n3": hurt})
    assert found == Expected(350.0, "NIC sum: 7 x 400 Gb/s", ("7 of 8 rails on n3, mlx5_7 port 1 is Down",))


def test_rails_that_nccl_itself_leaves_out_are_missing_too() -> None:
    names = ["n1", "n2", "n3"]
    said = "n1:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>"
    run = ran(Stage.ALL, names, 8, planned=places(8))
    few = replace(run, results={**run.results, "n2": replace(run.results["n2"], used=(said,))})
    found = expected(few, dict.fromkeys(names, with_rails(HGX, *rails(8))))
    assert (found.busbw, found.lowered_by) == (100.0, ("2 of 8 rails on n2",))


def test_a_rail_at_a_lower_rate_is_named() -> None:
    names = ["n1", "n2", "n3"]
    slow = with_rails(HGX, *rails(7), rail(7, rate=200))
    run = ran(Stage.ALL, names, 8, planned=places(8))
    found = expected(run, {**dict.fromkeys(names, with_rails(HGX, *rails(8))), "n2": slow})
    assert (found.busbw, found.limited_by, found.lowered_by) == (
        375.0, "NIC sum: 7 x 400 Gb/s + 1 x 200 Gb/s", ("mlx5_7 of n2 runs at 200 of 400 Gb/s",)
    )  # fmt: skip


def test_an_hca_with_half_of_its_lanes_lowers_the_sum() -> None:
    names = ["n1", "n2", "n3"]
    hcas = {f"mlx5_{index}": lanes() for index in range(8)}
    narrow = PcieFacts({}, {**hcas, "mlx5_2": lanes(width=8)})
    held = with_rails(HGX, *rails(8))
    run = ran(Stage.ALL, names, 8, planned=places(8))
    found = expected(run, {**dict.fromkeys(names, replace(held, pcie=PcieFacts({}, hcas))),
                           "n1": replace(held, pcie=narrow)})  # fmt: skip
    assert found.busbw == pytest.approx(376.8, abs=0.1)
    assert found.lowered_by == ("PCIe x8 of x16 at mlx5_2 of n1",)


def test_two_functions_of_one_card_share_its_link() -> None:
    ports = tuple(HcaPort(f"mlx5_{n}", 1, "Active", "LinkUp", 200, "InfiniBand", pci=f"0000:40:00.{n}") for n in (0, 1))
    held = replace(HGX, infiniband=InfinibandFacts(ports, "sysfs"), pcie=PcieFacts({}, {"mlx5_0": lanes(4)}))
    run = ran(Stage.ALL, ["n1", "n2", "n3"], 8, planned=("mlx5_0:1", "mlx5_1:1"))
    found = expected(run, dict.fromkeys(["n1", "n2", "n3"], held))
    assert found.busbw == pytest.approx(26.8, abs=0.1)


def test_one_rank_a_node_measures_one_nic() -> None:
    held = with_rails(HGX, *rails(8))
    run = ran(Stage.PAIR, ["n1", "n2"], 1, planned=places(8))
    assert expected(run, {"n1": held, "n2": held}) == Expected(50.0, "one NIC: 1 x 400 Gb/s")


def test_one_rank_a_node_is_held_to_the_nic_that_carried_its_data() -> None:
    held = with_rails(HGX, rail(0, rate=100), rail(1, rate=400))
    run = ran(Stage.PAIR, ["n1", "n2"], 1, planned=places(2), carried={"mlx5_1:1": Carried(10**9, 10**9)})
    assert expected(run, {"n1": held, "n2": held}).busbw == 50.0


def test_a_gpu_with_few_lanes_lowers_what_its_nic_can_carry() -> None:
    held = with_rails(HGX, *rails(8))
    narrow = replace(held, pcie=bus(8, 5, GPU0=8))
    run = ran(Stage.PAIR, ["n1", "n2"], 1, planned=places(8))
    found = expected(run, {"n1": held, "n2": narrow})
    assert found.busbw == pytest.approx(26.8, abs=0.1)
    assert (found.limited_by, found.lowered_by) == ("PCIe 5.0 x8 of GPU 0", ("PCIe x8 of x16 at GPU 0 of n2",))


def test_pcie_gpus_are_held_to_their_slowest_link_and_the_way_between_processors() -> None:
    near = board(L40S, 4, "NODE", pcie=bus(4, 4, SAPPHIRE_RAPIDS))
    assert alone(near, 4) == Expected(20.0, "PCIe 4.0 x16 between GPUs, through the host bridge of an Intel processor")
    far = board(L40S, 4, "SYS", {(0, 1): "PIX", (2, 3): "PIX"}, bus(4, 5, SAPPHIRE_RAPIDS))
    assert alone(far, 4) == Expected(22.0, "the link between the processors (Intel), at least")
    narrow = board(L40S, 4, "PXB", pcie=bus(4, 4, AMD, GPU2=8))
    assert alone(narrow, 4) == Expected(12.0, "PCIe 4.0 x8 between GPUs", ("PCIe x8 of x16 at GPU2 of n1",))


def of_amd(hardware: NodeHardware) -> NodeHardware:
    assert hardware.gpus
    return replace(hardware, gpus=replace(hardware.gpus, vendor="AMD"))


@pytest.mark.parametrize(("hardware", "what"), [
    (NodeHardware(), "how the GPUs of n1 are connected (nvidia-smi topo -m)"),
    (replace(HGX, topology=None), "how the GPUs of n1 are connected (nvidia-smi topo -m)"),
    (board("NVIDIA X900", 8), "how fast the NVLinks of NVIDIA X900 are"),
    (of_amd(board("AMD Instinct MI300X", 8, "XGMI")), "how fast the XGMI links of AMD Instinct MI300X are"),
    (board(L40S, 8, "PIX"), "the PCIe links of the GPUs of n1"),
    (board(L40S, 8, "PIX", pcie=bus(7, 4)), "the PCIe link of GPU7 of n1"),
    (board(L40S, 8, "SYS", pcie=bus(8, 4)), "the link between the processors of n1"),
    (replace(HGX, environment=settings(NCCL_P2P_DISABLE="1")),
     "the bandwidth of host memory (NCCL_P2P_DISABLE is set on n1)"),
    (board(H100, 4), "how 8 ranks share the 4 GPUs of n1"),
])  # fmt: skip
def test_an_unknown_part_of_a_node_is_named_and_nothing_is_expected(hardware: NodeHardware, what: str) -> None:
    assert alone(hardware, 8) == Expected(None, unknown=(what,))


def test_gpus_of_different_models_in_one_node_leave_it_unknown() -> None:
    assert HGX.gpus is not None
    gpus = (replace(HGX.gpus.gpus[0], name=H200), *HGX.gpus.gpus[1:])
    mixed = replace(HGX, gpus=replace(HGX.gpus, gpus=gpus))
    assert alone(mixed, 8).unknown == (
        "the bandwidth between GPUs of different models (NVIDIA H100 80GB HBM3, NVIDIA H200 in n1)",
    )


def test_nodes_of_different_models_are_held_to_the_weaker_one() -> None:
    run = ran(Stage.ALL, ["n1", "n2"], 8, planned=places(8))
    weaker = with_rails(board(A100, 8, "NV12"), *rails(8))
    found = expected(run, {"n1": with_rails(HGX, *rails(8)), "n2": weaker})
    assert found == Expected(240.0, "ring over NVLink: 12 NVLinks x 20 GB/s")


def test_a_node_of_which_nothing_is_known_leaves_the_whole_unknown() -> None:
    run = ran(Stage.ALL, ["n1", "n2"], 8, planned=places(8))
    found = expected(run, {"n1": with_rails(HGX, *rails(8))})
    assert found == Expected(None, unknown=("how the GPUs of n2 are connected (nvidia-smi topo -m)", "the HCAs of n2"))


def test_a_port_without_a_rate_or_one_that_nobody_knows_leaves_it_unknown() -> None:
    silent = with_rails(HGX, replace(rail(0), rate=None))
    run = ran(Stage.ALL, ["n1", "n2", "n3"], 8, planned=places(1))
    assert expected(run, dict.fromkeys(run.step.group, silent)).unknown[0] == "the rate of mlx5_0 of n1"
    assert expected(run, dict.fromkeys(run.step.group, with_rails(HGX))).unknown[0] == "mlx5_0:1 of n1"


def test_one_rank_alone_is_a_test_of_the_library_and_expects_nothing() -> None:
    found = alone(board(H100, 1), 1)
    assert found == Expected(None, unknown=("the bandwidth of a single rank, which uses no link",))


def test_what_the_user_expects_counts_for_all_nodes_and_for_nothing_else() -> None:
    run = ran(Stage.ALL, ["n1", "n2"], 8, expect=300.0)
    assert expected(run, {}) == Expected(300.0, "--expect")
    assert expected(ran(Stage.PAIR, ["n1", "n2"], 1, expect=300.0), {}).busbw is None
    assert expected(ran(Stage.ALL, ["n1", "n2"], 8, expect=300.0, op=Op.ALL_TO_ALL), {}).busbw is None


def test_one_pair_of_hca_ports_is_held_to_its_rate() -> None:
    run = ran(Stage.RAIL, ["n1", "n2"], 1, planned=("mlx5_3:1",), method=Method.RDMA)
    assert expectation(dict.fromkeys(run.step.group, with_rails(NodeHardware(), *rails(8, 200))))(run) == 25.0


def test_facts_that_are_not_there_are_none() -> None:
    facts: Mapping[type[object], object] = dict.fromkeys(HARDWARE_FACTS)
    assert hardware_of(facts) == hardware_of({}) == NodeHardware()
    assert HGX.gpus is not None
    assert hardware_of({type(HGX.gpus): HGX.gpus}) == NodeHardware(gpus=HGX.gpus)


# Other operations


def of_op(op: Op, hardware: NodeHardware, nodes: int = 1, ranks: int = 8, rails_: int = 8, **more: object) -> Expected:
    names = [f"n{number}" for number in range(1, nodes + 1)]
    stage = Stage.ALL if nodes > 1 else Stage.INSIDE
    run = ran(stage, names, ranks, planned=places(rails_), op=op, **more)  # type: ignore[arg-type]
    return expected(run, dict.fromkeys(names, hardware))


H100_400G = with_rails(HGX, *rails(8))
OLD = with_rails(board(A100, 8, "NV12"), *rails(8, 200))
RING = "ring over NVLink: 18 NVLinks x 20.6 GB/s"


@pytest.mark.parametrize(("op", "inside", "two", "four"), [
    (Op.ALL_GATHER, (370.8, RING), (370.8, RING), (370.8, RING)),
    (Op.REDUCE_SCATTER, (370.8, RING), (370.8, RING), (370.8, RING)),
    (Op.BROADCAST, (370.8, RING), (370.8, RING), (370.8, RING)),
    (Op.ALL_TO_ALL, (333.7, f"0.9 of a {RING}"),
     (93.8, "one NIC: 1 x 400 Gb/s for the 53% of the data that leaves the node"),
     (54.9, "0.85 of one NIC: 1 x 400 Gb/s for the 77% of the data that leaves the node")),
    (Op.SEND_RECV, (315.2, f"0.85 of a {RING}"), (None, ""), (None, "")),
])  # fmt: skip
def test_each_operation_has_its_own_limit(
    op: Op, inside: tuple[float, str], two: tuple[float | None, str], four: tuple[float | None, str]
) -> None:
    for nodes, (busbw, term) in ((1, inside), (2, two), (4, four)):
        found = of_op(op, H100_400G, nodes)
        assert (found.busbw and round(found.busbw, 1), found.limited_by) == (busbw, term), nodes


def test_the_nics_limit_a_ring_between_nodes_whatever_their_number() -> None:
    for op in (Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.BROADCAST):
        assert {(found.busbw, found.limited_by) for nodes in (2, 4) if (found := of_op(op, OLD, nodes))} == {
            (200.0, "NIC sum: 8 x 200 Gb/s")
        }


def test_ranks_that_share_a_nic_have_a_part_of_it_in_an_all_to_all_and_more_nics_than_ranks_are_unknown() -> None:
    shared = of_op(Op.ALL_TO_ALL, with_rails(HGX, *rails(4)), 2, rails_=4)
    assert (shared.busbw, shared.limited_by) == (
        25.0 * 15 / 8, "one NIC: 1 x 400 Gb/s for 2 ranks for the 53% of the data that leaves the node"
    )  # fmt: skip
    many = of_op(Op.ALL_TO_ALL, with_rails(HGX, *rails(16, 200)), 2, rails_=16)
    assert (many.busbw, many.unknown) == (None, ("whether the 8 ranks of n1 use more than one NIC each",
                                                 "whether the 8 ranks of n2 use more than one NIC each"))  # fmt: skip


def test_one_slow_nic_limits_an_all_to_all_of_all_nodes() -> None:
    slow = with_rails(HGX, *rails(7), rail(7, 200))
    run = ran(Stage.ALL, ["n1", "n2"], 8, planned=places(8), op=Op.ALL_TO_ALL)
    found = expected(run, {"n1": H100_400G, "n2": slow})
    assert (found.busbw, found.limited_by[:21]) == (25.0 * 15 / 8, "one NIC: 1 x 200 Gb/s")


def test_a_pair_with_one_rank_each_has_one_nic() -> None:
    pairs = {op: of_op(op, OLD, 2, ranks=1).busbw for op in Op}
    assert pairs == dict.fromkeys(Op, 25.0)
    assert of_op(Op.SEND_RECV, H100_400G, 2, ranks=1).unknown == (
        "how much of a NIC above 200 Gb/s one pair of ranks fills",
    )


def test_in_send_recv_one_rank_of_each_node_sends_to_the_next_node() -> None:
    assert of_op(Op.SEND_RECV, OLD, 2).limited_by == "one NIC: 1 x 200 Gb/s"
    assert of_op(Op.SEND_RECV, OLD, 2).busbw == 25.0
    assert of_op(Op.SEND_RECV, OLD, 4).unknown == ("how many channels NCCL has for one pair of 32 ranks",)


@pytest.mark.parametrize(("op", "hardware", "unknown"), [
    (Op.ALL_TO_ALL, CUBE_OF_V100, "the all-to-all between GPUs that are not linked by NVSwitches"),
    (Op.SEND_RECV, board(L40S, 8, "NODE", pcie=bus(8, 4, AMD)),
     "the send-recv between GPUs that are not linked by NVSwitches"),
    (Op.ALL_GATHER, replace(HGX, environment=settings(NCCL_ALGO="allgather:NVLS")),
     "the all-gather without a ring (NCCL_ALGO=allgather:NVLS in the environment on n1)"),
])  # fmt: skip
def test_what_nobody_knows_is_not_expected(op: Op, hardware: NodeHardware, unknown: str) -> None:
    found = of_op(op, hardware)
    assert (found.busbw, found.unknown) == (None, (unknown,))


def test_the_algorithm_of_an_operation_is_named_for_it_alone() -> None:
    named = replace(HGX, environment=settings(NCCL_ALGO="allreduce:Tree"))
    assert of_op(Op.ALL_GATHER, named).busbw == 370.8


def test_between_nvlink_domains_only_an_all_reduce_has_an_expectation() -> None:
    names = ["n1", "n2", "n3", "n4"]
    held = {name: in_domain(with_rails(board("NVIDIA GB200", 4), *rails(4)), number // 2)
            for number, name in enumerate(names)}  # fmt: skip
    found = {op: expected(ran(Stage.ALL, names, 4, planned=places(4), op=op), held) for op in Op}
    assert {op: one.busbw for op, one in found.items() if one.busbw} == {Op.ALL_REDUCE: 400.0}
    assert found[Op.ALL_GATHER].unknown == ("the all-gather between NVLink domains",)


def test_more_nodes_need_the_start_up_earlier_than_an_all_reduce() -> None:
    many = {op: of_op(op, OLD, 16) for op in (Op.ALL_REDUCE, Op.ALL_GATHER)}
    assert many[Op.ALL_REDUCE].busbw == 200.0
    assert (many[Op.ALL_GATHER].busbw, many[Op.ALL_GATHER].unknown) == (
        None, ("the bandwidth of messages of 1 GiB: too small to judge these links (--sizes 4G,8G)",)
    )  # fmt: skip


def test_sizes_above_one_gibibyte_are_in_gibibytes() -> None:
    names = [f"n{number}" for number in range(16)]
    run = ran(Stage.ALL, names, 8, planned=places(8), op=Op.ALL_GATHER)
    rows = tuple(replace(run.rows[0], size=size << 30, seconds=seconds) for size, seconds in ((16, 0.1), (32, 0.19)))
    found = expected(replace(run, rows=rows), dict.fromkeys(names, OLD))
    assert found.limited_by.endswith("; at 32 GiB, with 10 ms of start-up")
