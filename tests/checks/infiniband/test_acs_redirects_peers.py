"""NC436: ACS between a GPU and an adapter beneath one switch, on bare metal alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.isolation import AcsFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.acs_redirects_peers import acs_redirects_peers

from .isolated import HCA, ON, PORT, ROOT, SWITCH, TO_GPU, TO_HCA, node

CHECK = [acs_redirects_peers]


def test_a_redirect_between_the_two_is_a_warning() -> None:
    ill = node({TO_GPU: ON, TO_HCA: ("SrcValid", "ReqRedir"), PORT: ON})
    assert judge(CHECK, {"n1": node(), "n2": ill}).findings == [
        Finding("NC436", "acs-redirects-peers", Severity.WARNING, ("n2",),
                "ACS sends traffic between GPUs and adapters through the processor, by 2 bridges: 0000:17:00.0",
                ("0000:17:00.0: SrcValid, ReqRedir, CmpltRedir, UpstreamFwd", "0000:17:01.0: SrcValid, ReqRedir"),
                "sudo setpci -s 0000:17:00.0 ECAP_ACS+0x6.w=0000", summary="ACS slows GPUDirect RDMA"),
    ]  # fmt: skip


def test_acs_above_both_and_without_redirect_is_no_fault() -> None:
    well = node({PORT: ON, SWITCH: ON, TO_GPU: ("SrcValid",), "0000:aa:00.0": ON})
    assert [verdict.outcome.value for verdict in judge(CHECK, {"n1": well}).verdicts] == ["passed"]


@pytest.mark.parametrize(
    "other",
    [
        node({TO_GPU: ON}, virtual=True),
        node({TO_GPU: ON}, x86=False),
        node({TO_GPU: ON, TO_HCA: ON}, hca=replace(HCA, device=0x1023)),
        node({TO_GPU: ON}, hca=replace(HCA, above=(ROOT, "0000:15:02.0"))),
    ],
)
def test_where_acs_is_wanted_or_does_not_matter_it_is_silent(other: Facts) -> None:
    assert [verdict.outcome.value for verdict in judge(CHECK, {"n1": other}).verdicts] == ["skipped"]


def test_an_ordinary_user_is_told_that_it_needs_root() -> None:
    denied = {**node(), AcsFacts: Unread("only root can read it", needs_root=True)}
    (verdict,) = judge(CHECK, {"n1": denied}).verdicts
    assert (verdict.outcome.value, verdict.needs_root) == ("skipped", True)
