"""What only several lines show together: ranks that differ."""

from __future__ import annotations

import pytest
from ncheck.triage import diagnose


def causes(*lines: str) -> list[str]:
    return [diagnosis.cause for diagnosis in diagnose(lines)]


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (("n1:1:2 [0] NCCL INFO NCCL version 2.18.3+cuda12.2", "n2:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.2"),
         "version_mismatch"),
        (("[rank0]: DistBackendError: NCCL error in: NCCLUtils.hpp:219, NCCL version 2.18.1",
          "[rank1]: DistBackendError: NCCL error in: NCCLUtils.hpp:219, NCCL version 2.17.1"), "version_mismatch"),
        (("n1:1:2 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
          "n2:1:2 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so"), "net_plugin"),
        (("n1:1:2 [0] NCCL INFO Using network IB", "n2:1:2 [0] NCCL INFO Using network Socket"), "net_plugin"),
        (("[PG 0 Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, N",
          "[PG 0 Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, N"),
         "collective_mismatch"),
        (("NCCL error in: ProcessGroupNCCL.cpp:260, unhandled cuda error",
          "n1:1:2 [2] NCCL INFO Channel 00 : 2[2] -> 3[3] via P2P/IPC",
          "n1:1:2 [6] NCCL INFO Channel 00 : 7[7] -> 8[0] via P2P/IPC"), "same_hostname"),
        (("[0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
          "n1:1:2 [0] NCCL INFO NET/Socket : Using [0]ib0:10.3.0.1<0>"), "ibverbs_missing"),
        (("n1:1:2 [0] NCCL INFO Bootstrap : Using virbr0:192.168.122.1<0>",
          "n2:1:2 [0] NCCL INFO Bootstrap : Using virbr0:192.168.122.1<0>"), "wrong_nic"),
        (("# nThread 1 nGpus 1 minBytes 8 maxBytes 1024", "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024",
          "#  Rank  0 Group  0 Pid   5338 on   n1 device  0 [0x81] NVIDIA A100",
          "#  Rank  0 Group  0 Pid   5339 on   n2 device  0 [0x81] NVIDIA A100"), "launcher_mismatch"),
    ],
)  # fmt: skip
def test_ranks_that_differ_are_detected(lines: tuple[str, ...], cause: str) -> None:
    assert causes(*lines)[0] == cause


@pytest.mark.parametrize(
    "lines",
    [
        ("n1:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.2", "n2:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.4"),
        ("NCCL version 2.18.3+cuda12.2", "NCCL version 2.21.5+cuda12.2"),
        ("NCCL WARN Failed to open libibverbs.so[.1]", "NCCL INFO NET/Socket : Using [0]eth0:10.3.0.1<0>"),
        ("NCCL WARN Failed to open libibverbs.so[.1]", "NCCL INFO NET/Socket : Using [0]ib0:10.3.0.1<0>",
         "NCCL INFO NCCL_IB_DISABLE set by environment to 1."),
        ("n1:1:2 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>", "n1:1:3 [1] Bootstrap : Using lo:127.0.0.1<0>"),
        ("n1:1:2 [0] NCCL INFO Using network IB", "n2:1:2 [0] NCCL INFO Using network IB"),
        ("NCCL INFO Channel 00 : 3[3] -> 4[0] via P2P/IPC", "NCCL INFO Channel 01 : 0[3] -> 1[2] via P2P/IPC"),
        ("# nThread 1 nGpus 1 minBytes 8 maxBytes 1024", "#  Rank  0 Group  0 Pid   5338 on   n1 device  0 [0x81] A100",
         "# Avg bus bandwidth    : 0", "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024",
         "#  Rank  0 Group  0 Pid   5339 on   n1 device  0 [0x81] A100"),
    ],
)  # fmt: skip
def test_ranks_that_agree_and_consecutive_runs_are_no_fault(lines: tuple[str, ...]) -> None:
    assert causes(*lines) == []


def test_two_groups_may_wait_in_different_collectives() -> None:
    lines = [
        f"[PG {group} Rank {group}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType={kind}, N"
        for group, kind in ((0, "ALLREDUCE"), (1, "BROADCAST"))
    ]
    assert causes(*lines) == ["slow_rank_timeout"]
