"""NC624: CPUs that may not run fast; the powersave of drivers that follow the load is healthy."""

from __future__ import annotations

from ncheck.facts.host_settings import Frequency, HostSettingsFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.cpu_held_slow import cpu_held_slow


def node(*frequencies: Frequency) -> dict[str, Facts]:
    return {"n1": {HostSettingsFacts: HostSettingsFacts(8, frequencies=frequencies)}}


def test_powersave_of_acpi_holds_the_cpus_at_their_lowest_frequency() -> None:
    assert judge([cpu_held_slow], node(Frequency("powersave", "acpi-cpufreq", 3500000, 3500000, 96))).findings == [
        Finding("NC624", "cpu-held-slow", Severity.WARNING, ("n1",),
                "governor powersave of acpi-cpufreq holds the CPUs at their lowest frequency", (),
                "sudo cpupower frequency-set -g performance", summary="CPUs are held slow"),
    ]  # fmt: skip


def test_a_limit_below_half_of_the_maximum_is_named() -> None:
    (found,) = judge([cpu_held_slow], node(Frequency("performance", "intel_pstate", 800000, 3800000, 4))).findings
    assert (found.message, found.evidence, found.fix) == (
        "CPUs are limited to 0.8 GHz of 3.8 GHz", ("4 frequency policies have this limit",),
        "sudo cpupower frequency-set -u 3800000",
    )  # fmt: skip


def test_the_defaults_of_intel_amd_and_arm_and_a_virtual_machine_are_healthy() -> None:
    healthy = (
        Frequency("powersave", "intel_pstate", 3800000, 3800000),
        Frequency("powersave", "amd-pstate-epp", 3700000, 3700000),
        Frequency("schedutil", "acpi-cpufreq", 2250000, 3400000),
        Frequency("ondemand", "cppc_cpufreq", None, None),
    )
    assert [one.outcome for one in judge([cpu_held_slow], node(*healthy)).verdicts] == [Outcome.PASSED]
    assert [one.outcome for one in judge([cpu_held_slow], node()).verdicts] == [Outcome.SKIPPED]
