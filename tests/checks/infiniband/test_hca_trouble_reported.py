"""NC431: an HCA of which its driver has reported trouble."""

from __future__ import annotations

from ncheck.facts.hardware_log import HardwareLogFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.kernel_log import Trouble
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.hca_trouble_reported import hca_trouble_reported

FIRST = "[12.500000] mlx5_core 0000:3b:00.0: temp_warn:170:(pid 0): High temperature on sensors with bit set 0 1"
LAST = "[131.207015] mlx5_core 0000:3b:00.0: poll_health:471:(pid 0): device's health compromised - reached miss count"
PORT = HcaPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand", pci="0000:3b:00.0")
PORTS = InfinibandFacts((PORT,), "sysfs")


def test_an_hca_is_named_with_the_first_and_the_last_message() -> None:
    log = HardwareLogFacts(adapters=(Trouble("0000:3b:00.0", 2, FIRST, LAST), Trouble("0000:5e:00.1", 1, "a", "a")))
    nodes: dict[str, Facts] = {"n1": {HardwareLogFacts: log, InfinibandFacts: PORTS}}
    assert judge([hca_trouble_reported], nodes).findings == [
        Finding("NC431", "hca-trouble-reported", Severity.WARNING, ("n1",),
                "the driver reported trouble 2 times of mlx5_0 (0000:3b:00.0); last at [131.207015]", (FIRST, LAST),
                "sudo devlink health show pci/0000:3b:00.0", kind="look", summary="trouble of an HCA"),
        Finding("NC431", "hca-trouble-reported", Severity.WARNING, ("n1",),
                "the driver reported trouble of the HCA at 0000:5e:00.1", ("a",),
                "sudo devlink health show pci/0000:5e:00.1", kind="look", summary="trouble of an HCA"),
    ]  # fmt: skip


def test_it_is_silent_without_trouble_and_skipped_without_an_hca() -> None:
    other = HardwareLogFacts(lockups=(Trouble("soft lockup", 1, "a", "a"),))
    nodes: dict[str, Facts] = {
        "n1": {HardwareLogFacts: other, InfinibandFacts: PORTS},
        "n2": {HardwareLogFacts: other, InfinibandFacts: Absent("no InfiniBand or RoCE device")},
    }
    outcomes = [verdict.outcome for verdict in judge([hca_trouble_reported], nodes).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.SKIPPED]
