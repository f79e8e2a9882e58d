"""NC412: Active, and no address."""

from __future__ import annotations

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_lid_missing import ib_lid_missing

PASSED, SKIPPED, FAILED = Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED


def port(
    lid: int | None, sm_lid: int | None, state: str = "Active", layer: str = "InfiniBand", kind: str = "MT4129"
) -> HcaPort:
    return HcaPort("mlx5_0", 1, state, "LinkUp", 400, layer, lid, sm_lid, hca_type=kind)


def node(port: HcaPort) -> Facts:
    return {InfinibandFacts: InfinibandFacts((port,), "sysfs")}


def outcome(port: HcaPort) -> Outcome:
    return judge([ib_lid_missing], {"n1": node(port)}).verdicts[0].outcome


def test_an_active_port_without_a_lid_is_named() -> None:
    assert judge([ib_lid_missing], {"n1": node(port(0, 1))}).findings == [
        Finding("NC412", "ib-lid-missing", Severity.ERROR, ("n1",), "mlx5_0 port 1: Active without a LID",
                ("mlx5_0 port 1: Active, LinkUp on n1",), "sudo sminfo -C mlx5_0 -P 1", kind="look",
                summary="mlx5_0 has no address"),
    ]  # fmt: skip


def test_an_active_port_without_a_subnet_manager_is_named() -> None:
    assert [found.message for found in judge([ib_lid_missing], {"n1": node(port(7, 0))}).findings] == [
        "mlx5_0 port 1: Active without a subnet manager"
    ]


def test_it_is_silent_about_ports_that_have_or_need_none() -> None:
    assert outcome(port(7, 1)) is PASSED
    assert outcome(port(None, None)) is PASSED
    assert outcome(port(0, 0, layer="Ethernet")) is SKIPPED
    assert outcome(port(65535, 0, state="Down")) is SKIPPED
    assert outcome(port(0, 1, kind="MT4126")) is PASSED
    assert outcome(port(0, 0, kind="")) is FAILED
