"""NC529: fewer active NVLinks than the same GPU elsewhere, or than the others of its node, are an error."""

from __future__ import annotations

from typing import Any

from ncheck.facts.cuda_init import CudaInitFacts
from ncheck.facts.fabric_manager import FabricManagerFacts
from ncheck.facts.gpu_health import Failure, NvidiaDriverFacts
from ncheck.facts.pci import NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.fabric_not_ready import fabric_not_ready
from ncheck_checks.gpus.nvlink_down import nvlink_down
from ncheck_checks.gpus.nvlinks_fewer import nvlinks_fewer
from ncheck_checks.gpus.topology_differs import topology_differs

from . import matrices
from .health import CONSUMER, HEALTHY, MIG, h100, node

ONE_DOWN = (*(1,) * 7, 0, *(1,) * 10)


def test_a_link_that_the_other_nodes_have_is_named() -> None:
    usual = {f"n{number}": node(h100(0), h100(1)) for number in range(1, 3)}
    line = "GPU 1 (0000:10:00.0): 17 of 18 NVLinks active (not 7)"
    assert judge([nvlink_down], {**usual, "n3": node(h100(0), h100(1, links=ONE_DOWN))}).findings == [
        Finding("NC529", "nvlink-down", Severity.ERROR, ("n3",), f"NVLinks are down: {line}", (line,),
                "nvidia-smi nvlink -s", kind="look", summary="NVLinks are down"),
    ]  # fmt: skip


def test_on_one_node_the_gpus_are_compared_with_each_other() -> None:
    nodes = {"n1": node(h100(0), h100(1), h100(2, links=ONE_DOWN))}
    assert [one.evidence for one in judge([nvlink_down], nodes).findings] == [
        ("GPU 2 (0000:11:00.0): 17 of 18 NVLinks active (not 7)",)
    ]


def test_a_node_without_any_active_link_is_named_where_the_others_have_them() -> None:
    dark = node(h100(0, links=(0,) * 18), h100(1, links=(0,) * 18))
    nodes = {"n1": node(h100(0), h100(1)), "n2": node(h100(0), h100(1)), "n3": dark}
    assert [one.nodes for one in judge([nvlink_down], nodes).findings] == [("n3",)]


def test_links_of_which_none_is_active_follow_from_a_fabric_manager_that_does_not_run() -> None:
    switches = PciFacts((PciDevice("0000:c1:00.0", 0x0680, NVIDIA, 0x1AF1),))
    for links, cause in (((0,) * 12, ("NC536",)), ((*(1,) * 11, 0), ())):
        gpus = {count: [h100(index, fabric=None, links=count) for index in range(2)] for count in (links, (1,) * 12)}
        services = {(1,) * 12: FabricManagerFacts("active", ""), links: FabricManagerFacts("inactive", "")}
        nodes = {
            f"n{number}": {**node(*gpus[count]), PciFacts: switches, FabricManagerFacts: services[count],
                           NvidiaDriverFacts: NvidiaDriverFacts("550.54.15"),
                           CudaInitFacts: Absent("CUDA was not tried")}
            for number, count in enumerate(((1,) * 12, (1,) * 12, links))
        }  # fmt: skip
        judged = judge([fabric_not_ready, nvlink_down], nodes).findings
        assert [(one.code, one.nodes, one.see) for one in judged] == [
            ("NC536", ("n2",), ()), ("NC529", ("n2",), cause)
        ]  # fmt: skip


def test_a_card_without_a_bridge_beside_bridged_ones_is_built_so() -> None:
    card = {"links": (0,) * 12}
    bridged = node(h100(0, links=(1,) * 12), h100(1, links=(1,) * 12), h100(2, **card))
    assert judge([nvlink_down], {"n1": bridged, "n2": bridged}).findings == []
    assert judge([nvlink_down], {"n1": bridged}).findings == []


def test_it_is_silent_on_healthy_nodes_links_asleep_and_cards_without_links() -> None:
    asleep = node(h100(0, links=(2,) * 18), h100(1))
    assert judge([nvlink_down], {**HEALTHY, "mig": node(MIG), "asleep": asleep}).findings == []
    assert judge([nvlink_down], {"c1": node(CONSUMER), "c2": node(CONSUMER)}).findings == []


def test_a_node_that_could_not_be_read_whole_is_unknown_and_not_compared() -> None:
    lost = node(h100(0), h100(1, links=(), errors={"links": Failure(15, "GPU is lost")}))
    nodes = {"n1": node(h100(0), h100(1)), "n2": node(h100(0), h100(1)), "n3": lost, "n4": node(h100(0), hung=1)}
    judgement = judge([nvlink_down], nodes)
    assert judgement.findings == []
    assert {one.nodes[0]: one.reason for one in judgement.verdicts if one.outcome is Outcome.UNKNOWN} == {
        "n3": "the state of the NVLinks of GPU 1 (0000:10:00.0) could not be read: GPU is lost",
        "n4": "not every GPU could be read: GPU 1 does not answer",
    }


def test_what_the_matrix_shows_of_it_follows_from_it() -> None:
    def eight(level: str, **changed: Any) -> Facts:
        matrix = matrices.node(8, "NV18", {(7, other): level for other in range(7)})
        return {**matrix, **node(*(h100(index) for index in range(7)), h100(7, **changed))}

    nodes = {"n1": eight("NV18"), "n2": eight("NV18"), "n3": eight("NV17", links=ONE_DOWN)}
    judgement = judge([topology_differs, nvlinks_fewer, nvlink_down], nodes)
    assert [(one.code, one.nodes, one.see) for one in judgement.findings] == [
        ("NC504", ("n3",), ("NC509", "NC529")),
        ("NC509", ("n3",), ("NC529",)),
        ("NC529", ("n3",), ()),
    ]
