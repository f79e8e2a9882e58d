"""NC625: settings that differ between nodes; what is the same everywhere is a default and no finding."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_settings import Frequency, HostSettingsFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.kernel_settings_differ import kernel_settings_differ

GPUS = Absent("no GPU")


def node(governor: str = "powersave", **kernel: str) -> Facts:
    frequencies = (Frequency(governor, "intel_pstate"),) if governor else ()
    return {HostSettingsFacts: HostSettingsFacts(8, kernel=kernel, frequencies=frequencies), GpuFacts: GPUS}


def messages(*nodes: Facts) -> list[str]:
    cluster = {f"n{at}": facts for at, facts in enumerate(nodes)}
    return [one.message for one in judge([kernel_settings_differ], cluster).findings]


def test_the_odd_node_is_named_with_both_values() -> None:
    nodes = {name: node(transparent_hugepages="madvise") for name in "ab"}
    nodes["c"] = node(transparent_hugepages="never")
    assert judge([kernel_settings_differ], nodes).findings == [
        Finding("NC625", "kernel-settings-differ", Severity.WARNING, ("c",),
                "the mode of transparent huge pages differs: madvise on a,b, never on c (2 to 1)", (),
                "cat /sys/kernel/mm/transparent_hugepage/enabled", kind="look",
                summary="the mode of transparent huge pages differs"),
    ]  # fmt: skip


def test_each_setting_and_the_governor_count() -> None:
    usual = {"numa_balancing": "1", "smt": "on", "ptrace_scope": "1"}
    for name, other in {"numa_balancing": "0", "smt": "off", "ptrace_scope": "0"}.items():
        assert len(messages(node(**usual), node(**usual), node(**{**usual, name: other}))) == 1
    assert len(messages(node(), node(), node("performance"))) == 1


def test_equal_settings_and_those_that_a_node_does_not_show_are_healthy() -> None:
    assert messages(node(numa_balancing="1"), node(numa_balancing="1"), node("", smt="on")) == []
    verdicts = judge([kernel_settings_differ], {"a": node(), "b": node()}).verdicts
    assert {one.outcome for one in verdicts} == {Outcome.PASSED}
