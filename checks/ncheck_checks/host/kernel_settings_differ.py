"""Kernel settings that change speed differ between nodes

## What it finds
Nodes with another setting than the other nodes with the same GPUs: transparent huge pages, NUMA balancing,
hyper-threading (SMT), the CPU frequency governor, the clock source, yama's ptrace_scope. Settings that are the same
everywhere are not judged: they are defaults of the distribution.

## Why it matters
A node that is set up differently is often slower or faster than the others, and the job is as fast as its slowest node.
Without transparent huge pages, registering memory takes longer; NUMA balancing moves pages while ranks use them; with
another ptrace_scope, UCX copies between ranks on a slower path, and py-spy is refused. A kernel that does not trust its
processors' clock (tsc) reads hpet or acpi_pm: each look at the time then takes a microsecond and more.

## What to type
The file of the setting on a node of each kind shows both: `cat /sys/kernel/mm/transparent_hugepage/enabled
/proc/sys/kernel/numa_balancing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.host_settings import HostSettingsFacts

# What each is called, and its file.
SETTINGS: Mapping[str, tuple[str, str]] = {
    "transparent_hugepages": ("the mode of transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    "numa_balancing": ("NUMA balancing", "/proc/sys/kernel/numa_balancing"),
    "smt": ("hyper-threading (SMT)", "/sys/devices/system/cpu/smt/control"),
    "clocksource": ("the clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    "ptrace_scope": ("ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope"),
}
GOVERNOR = ("the CPU frequency governor", "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor")


@cluster_check("NC625", Severity.WARNING, HostSettingsFacts, by_kind=True)
def kernel_settings_differ(cluster: Cluster) -> Iterator[Problem]:
    nodes = cluster.facts(HostSettingsFacts)
    for name, (what, file) in SETTINGS.items():
        values = {node: held.kernel[name] for node, held in nodes.items() if name in held.kernel}
        yield from _problem(what, file, values)
    governors = {node: " + ".join(sorted({one.governor for one in held.frequencies})) for node, held in nodes.items()}
    yield from _problem(*GOVERNOR, {node: names for node, names in governors.items() if names})


def _problem(what: str, file: str, values: Mapping[str, str]) -> Iterator[Problem]:
    if parted := split(values):
        message = f"{what} differs: {parted.summary()}"
        yield Problem(message, f"cat {file}", nodes=parted.odd, look=True, summary=f"{what} differs")
