"""CPUs are held at a low frequency

## What it finds
Nodes where the frequency governor is powersave with a driver for which that means the lowest frequency, or where CPUs
may run at less than half of their maximum frequency (scaling_max_freq). With the drivers intel_pstate and
amd-pstate-epp, powersave is the usual governor, raises the frequency under load, and is not reported.

## Why it matters
The threads that start kernels and move data through NCCL run on one CPU each: at a third of its speed, small
collectives are much slower, and every node waits for this one. The kernel's documentation (admin-guide/pm/cpufreq)
describes the governors.

## What to type
`sudo cpupower frequency-set -g performance`; the limit, if that is it, with `-u`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.host_settings import Frequency, HostSettingsFacts

SAVES_ITSELF = ("intel_pstate", "amd-pstate-epp")  # drivers whose powersave follows the load
OF_MOST = 0.5


@node_check("NC624", Severity.WARNING, HostSettingsFacts)
def cpu_held_slow(node: NodeView) -> Iterator[Problem | NotApplicable]:
    frequencies = node[HostSettingsFacts].frequencies
    if not frequencies:
        yield NotApplicable("the system does not set the CPUs' frequency, as in most virtual machines")
    for one in frequencies:
        if one.governor == "powersave" and one.driver not in SAVES_ITSELF:
            message = f"governor powersave of {one.driver} holds the CPUs at their lowest frequency"
            yield Problem(message, "sudo cpupower frequency-set -g performance", summary="CPUs are held slow")
        elif one.limit is not None and one.most is not None and one.limit < OF_MOST * one.most:
            message = f"CPUs are limited to {_gigahertz(one.limit)} of {_gigahertz(one.most)}"
            fix = f"sudo cpupower frequency-set -u {one.most}"
            yield Problem(message, fix, (_policies(one),), summary="CPUs are held slow")


def _gigahertz(kilohertz: int) -> str:
    return f"{kilohertz / 1e6:.1f} GHz"


def _policies(one: Frequency) -> str:
    return f"{one.policies} frequency policies have this limit"
