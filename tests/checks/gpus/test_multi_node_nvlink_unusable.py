"""NC537: nodes that share an NVLink domain and cannot use it are a warning."""

from __future__ import annotations

from ncheck.facts.fabric_manager import FabricManagerFacts
from ncheck.facts.gpu_health import Fabric, NvidiaDriverFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.multi_node_nvlink_unusable import multi_node_nvlink_unusable

from .health import CONSUMER, h100, node

RACK, OTHER = "ab" * 16, "cd" * 16


def host(imex: str = "active", cluster: str = RACK, clique: int = 1, usable: int = 1, channels: int = 1) -> Facts:
    return {
        **node(h100(0, fabric=Fabric(3, 0, cluster, clique))),
        NvidiaDriverFacts: NvidiaDriverFacts("580.65.06", "580.65.06", None, channels, usable),
        FabricManagerFacts: FabricManagerFacts("not installed", imex),
    }


def findings(**nodes: Facts) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.message, one.nodes) for one in judge([multi_node_nvlink_unusable], nodes).findings]


def test_a_node_whose_imex_does_not_run_is_named() -> None:
    assert judge([multi_node_nvlink_unusable], {"n1": host(), "n2": host("inactive", usable=0)}).findings == [
        Finding("NC537", "multi-node-nvlink-unusable", Severity.WARNING, ("n2",),
                "nvidia-imex.service is inactive: NVLink between nodes is not used", (),
                "sudo systemctl enable --now nvidia-imex", summary="IMEX does not run"),
    ]  # fmt: skip


def test_a_channel_that_cannot_be_opened_and_another_clique_are_named() -> None:
    assert findings(n1=host(), n2=host(usable=0), n3=host(usable=0, channels=0), n4=host(clique=2)) == [
        ("none of the 1 IMEX channels can be opened: NVLink between nodes is not used", ("n2",)),
        ("there is no IMEX channel: NVLink between nodes is not used", ("n3",)),
        ("the clique of the NVLink domain differs: 1 on n[1-3], 2 on n4 (3 to 1)", ("n4",)),
    ]


def test_it_is_silent_on_a_rack_that_works_and_where_no_domain_is_shared() -> None:
    assert findings(n1=host(), n2=host()) == []
    assert findings(n1=host("inactive", cluster=RACK, usable=0), n2=host("inactive", cluster=OTHER, usable=0)) == []
    assert (
        findings(n1=host("not installed", cluster="", usable=0), n2=host("not installed", cluster="", usable=0)) == []
    )
    card = {**node(CONSUMER), NvidiaDriverFacts: NvidiaDriverFacts("550.54.15"), FabricManagerFacts: Absent("none")}
    assert findings(n1=card, n2=card) == []
