"""NC415: P_Keys by which nodes cannot talk to each other."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_partition_differs import FIX, ib_partition_differs

from .fabric import FAILED, PASSED, SKIPPED, messages, node, outcomes, port


def test_another_partition_than_on_the_other_nodes_is_named() -> None:
    well, ill = node(port(pkeys=(0x800B, 0x7FFF))), node(port(pkeys=(0x800C, 0x7FFF)))
    assert judge([ib_partition_differs], {"n1": well, "n2": well, "n3": ill}).findings == [
        Finding("NC415", "ib-partition-differs", Severity.ERROR, ("n3",),
                "mlx5_0 port 1: in different partitions: partition 0x000b on n[1-2], partition 0x000c on n3 (2 to 1)",
                (), FIX, kind="look", summary="InfiniBand partitions differ"),
    ]  # fmt: skip


def test_two_limited_members_cannot_talk_and_one_can() -> None:
    full, limited = node(port()), node(port(pkeys=(0x7FFF,)))
    assert messages(judge, ib_partition_differs, limited, limited) == [
        ("mlx5_0 port 1 (0x7fff): limited members of their partition, which cannot talk to each other", ("n1", "n2"))
    ]
    assert outcomes(judge, ib_partition_differs, full, full, limited) == [PASSED, PASSED, PASSED]


def test_the_index_is_that_of_nccl() -> None:
    chosen = node(port(pkeys=(0x7FFF, 0x8005)), NCCL_IB_PKEY="1")
    assert outcomes(judge, ib_partition_differs, chosen, chosen) == [PASSED, PASSED]
    empty = node(port(pkeys=(0xFFFF,)), NCCL_IB_PKEY="3")
    assert outcomes(judge, ib_partition_differs, node(port()), node(port()), empty) == [PASSED, PASSED, FAILED]


def test_it_is_silent_about_a_cloud_s_own_partition_and_ports_without_p_keys() -> None:
    cloud = node(port(pkeys=(0x800B, 0x7FFF)))
    assert outcomes(judge, ib_partition_differs, cloud, cloud) == [PASSED, PASSED]
    ethernet, unread = node(port(layer="Ethernet")), node(port(pkeys=()))
    assert outcomes(judge, ib_partition_differs, ethernet, unread) == [SKIPPED, SKIPPED]
