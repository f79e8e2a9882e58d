"""NC332: a left-over line keeps the GPUs of a node from each other."""

from __future__ import annotations

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.p2p_disabled_by_setting import p2p_disabled_by_setting

from tests.logins import line_removed

from .settings import node


def test_disabled_direct_copies_are_reported() -> None:
    assert judge([p2p_disabled_by_setting], {"n1": node(NCCL_P2P_DISABLE="1", NCCL_P2P_LEVEL="LOC")}).findings == [
        Finding("NC332", "p2p-disabled-by-setting", Severity.WARNING, ("n1",),
                "NCCL_P2P_DISABLE=1 in the environment: its GPUs exchange data through main memory, "
                "not over NVLink or PCIe", (), line_removed("NCCL_P2P_DISABLE")),
    ]  # fmt: skip


def test_the_lowest_level_and_shared_memory_count_as_much() -> None:
    judged = judge([p2p_disabled_by_setting], {"n1": node("NCCL_P2P_LEVEL=LOC", NCCL_SHM_DISABLE="0x1")})
    assert [(found.message.partition(":")[0], found.fix) for found in judged.findings] == [
        ("NCCL_P2P_LEVEL=LOC in /etc/nccl.conf", "sudo sed -i '/^NCCL_P2P_LEVEL=/d' /etc/nccl.conf"),
        ("NCCL_SHM_DISABLE=0x1 in the environment", line_removed("NCCL_SHM_DISABLE")),
    ]


def test_it_is_silent_about_other_levels_and_zero() -> None:
    for facts in (node(NCCL_P2P_LEVEL="NVL"), node(NCCL_P2P_DISABLE="0", NCCL_SHM_DISABLE="0"), node()):
        judged = judge([p2p_disabled_by_setting], {"n1": facts})
        assert (judged.findings, judged.verdicts[0].outcome) == ([], Outcome.PASSED)


def test_it_is_silent_and_skipped_where_there_is_one_gpu() -> None:
    judged = judge([p2p_disabled_by_setting], {"n1": node(gpus=1, NCCL_P2P_DISABLE="1")})
    assert (judged.findings, judged.verdicts[0].outcome) == ([], Outcome.SKIPPED)
