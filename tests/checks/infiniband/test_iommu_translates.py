"""NC437: an IOMMU that translates between a GPU and an adapter, for information."""

from __future__ import annotations

import pytest
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.iommu_translates import iommu_translates

from .isolated import GPU, HCA, TRANSLATED, node

CHECK = [iommu_translates]


def test_translation_is_told_with_a_device_and_its_type() -> None:
    assert judge(CHECK, {"n1": node(types=TRANSLATED)}).findings == [
        Finding("NC437", "iommu-translates", Severity.INFO, ("n1",),
                "the IOMMU translates the addresses of 2 GPUs and adapters: 0000:18:00.0 is of type DMA-FQ", (),
                "cat /proc/cmdline", kind="look", summary="the IOMMU translates"),
    ]  # fmt: skip


def test_it_is_silent_under_passthrough() -> None:
    well = node(types={GPU.address: "identity", HCA.address: "identity"})
    assert [verdict.outcome.value for verdict in judge(CHECK, {"n1": well}).verdicts] == ["passed"]


@pytest.mark.parametrize(
    ("other", "outcome"),
    [
        (node(types={GPU.address: "identity", HCA.address: "identity"}), "passed"),
        (node(), "passed"),
        (node(types={"0000:01:00.0": "DMA"}), "passed"),
        (node(types=TRANSLATED, virtual=True), "skipped"),
        (node(types=TRANSLATED, x86=False), "skipped"),
    ],
)
def test_it_is_silent_without_translation_and_where_it_is_wanted(other: Facts, outcome: str) -> None:
    judgement = judge(CHECK, {"n1": other})
    assert (judgement.findings, judgement.verdicts[0].outcome.value) == ([], outcome)
