"""NC336: an index that newer NCCL would find by itself is set."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.infiniband import Gid, HcaPort
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.gid_index_set import gid_index_set

from tests.logins import line_removed

from .settings import INFINIBAND, node

GIDS = (
    Gid(0, "fe80:0000:0000:0000:0000:00ff:fe00:0001", "IB/RoCE v1"),
    Gid(1, "fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2"),
    Gid(2, "0000:0000:0000:0000:0000:ffff:0a01:0007", "IB/RoCE v1"),
    Gid(3, "0000:0000:0000:0000:0000:ffff:0a01:0007", "RoCE v2"),
)

ROCE = HcaPort("mlx5_0", 1, "Active", "LinkUp", 200.0, "Ethernet", gids=GIDS)
BLIND = replace(ROCE, hca="mlx5_1", gids=())


def test_an_index_that_does_not_fit_every_port_is_reported() -> None:
    assert judge([gid_index_set], {"n1": node(ports=(ROCE, BLIND), NCCL_IB_GID_INDEX="3")}).findings == [
        Finding("NC336", "gid-index-set", Severity.WARNING, ("n1",),
                "NCCL_IB_GID_INDEX=3 in the environment: "
                "without it, NCCL 2.32.3 finds the right GID of each port itself",
                ("mlx5_0:1: RoCE v2 with an IPv4 address at index 3",
                 "mlx5_1:1: RoCE v2 with an IPv4 address not found"), line_removed("NCCL_IB_GID_INDEX")),
    ]  # fmt: skip


def test_it_is_silent_where_the_index_is_right_or_left_to_nccl() -> None:
    for facts in (node(ports=(ROCE,), NCCL_IB_GID_INDEX="3"), node(ports=(ROCE,), NCCL_IB_GID_INDEX="-1"),
                  node(ports=(ROCE,))):  # fmt: skip
        judged = judge([gid_index_set], {"n1": facts})
        assert (judged.findings, judged.verdicts[0].outcome) == ([], Outcome.PASSED)


def test_it_is_silent_and_skipped_where_nccl_is_old_or_the_ports_are_infinibands() -> None:
    for facts in (node(ports=(ROCE,), nccl="2.20.5", NCCL_IB_GID_INDEX="1"),
                  node(ports=(INFINIBAND,), NCCL_IB_GID_INDEX="1")):  # fmt: skip
        judged = judge([gid_index_set], {"n1": facts})
        assert (judged.findings, judged.verdicts[0].outcome) == ([], Outcome.SKIPPED)
