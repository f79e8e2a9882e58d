"""Which method the probe uses, or why it measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.facts.gpus import GpuFacts
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.probe.facts import COMMANDS
from ncheck.probe.methods.driver import Driver, driver_named
from ncheck.probe.node_result import Stage
from ncheck.topology.gpus import busy, share_in_use

if TYPE_CHECKING:
    from ncheck.model.plan import Blocker
    from ncheck.probe.methods.context import ProbeContext

_CPUS = ("gloo", "tcp")  # in this order, if no GPU can be measured
_ON_GPUS = ("nccl", "nccl-tests")
BY_MPIRUN = "mpirun"


@dataclass(frozen=True)
class Chosen:
    """The driver of each stage, and those that run in addition. `note` says what is left out, "" for nothing."""

    drivers: Mapping[Stage, Driver]
    beside: Mapping[str, Driver]
    note: str = ""


@dataclass(frozen=True)
class Refused:
    """Nothing is measured, and why. `remedy` names what helps: one of COMMANDS, or a finding's code to explain."""

    why: str
    remedy: str


def driver_names(probe: str) -> tuple[str, ...]:
    """Return the names of the drivers that `--probe` may use, those that run in addition last."""
    chosen = (_ON_GPUS[0], *_CPUS) if probe == "auto" else (probe,)
    return tuple(dict.fromkeys((*chosen, *(extra for name in chosen for extra in _names_beside(name)))))


def choose(context: ProbeContext, blockers: Sequence[Blocker]) -> Chosen | Refused:
    """Choose the method by the settings. Nothing is measured while there are `blockers`, except with --force."""
    settings = context.settings
    if not context.nodes:
        return Refused("no node is left to measure on", "without")
    if blockers and not settings.force:
        if codes := tuple(dict.fromkeys(one.code for one in blockers if one.code)):
            return Refused(f"fix {', '.join(codes)} first", codes[0])
        more = f" (and {len(blockers) - 1} more)" if len(blockers) > 1 else ""
        return Refused(f"blocked by {blockers[0].message}{more}", "without")
    choice = _automatic(context) if settings.probe == "auto" else _explicit(context, settings.probe)
    by_mpirun = settings.probe_launcher == BY_MPIRUN
    return _launched(context, choice) if isinstance(choice, Chosen) and by_mpirun else choice


def _automatic(context: ProbeContext) -> Chosen | Refused:
    note = ""
    if any(context.gpus.values()):
        if why := _in_use(context):
            return Refused(why, "force")
        choice = _explicit(context, "nccl")
        if isinstance(choice, Chosen):
            return choice
        note = f"the GPUs were not measured: {choice.why}"
    if len(context.nodes) == 1:
        return Refused(note or "on a single node without a GPU there is nothing to measure", "without")
    refused: list[str] = []
    for name in _CPUS:
        choice = _explicit(context, name)
        if isinstance(choice, Chosen):
            return replace(choice, note=note)
        refused.append(choice.why)
    return Refused("; ".join((*([note] if note else []), *refused)), "without")


def _explicit(context: ProbeContext, name: str) -> Chosen | Refused:
    if name in _ON_GPUS and (why := _in_use(context)):
        return Refused(why, "force")
    driver = driver_named(name)
    if why := driver.unfit(context):
        return Refused(f"{name} cannot be used: {why}", "probe")
    drivers = dict.fromkeys(driver.stages, driver)
    if driver.across and len(context.nodes) > 1:
        between = driver_named(driver.across)
        drivers |= dict.fromkeys(between.stages, between)
    beside = _beside(context, name)
    wanted = context.settings.nic_test and name in _ON_GPUS and "nics" not in beside
    why = driver_named("nics").unfit(context) if wanted else ""
    return Chosen(drivers, beside, f"the NICs were not tested by themselves: {why}" if why else "")


def _in_use(context: ProbeContext) -> str:
    """Return which nodes have GPUs in use, "" if none has or with --force."""
    known = context.cluster.connected_facts(GpuFacts)
    in_use = {node: gpus for node in context.nodes if node in known and (gpus := [*busy(known[node])])}
    if not in_use or context.settings.force:
        return ""
    node, gpus = next(iter(in_use.items()))
    share = f"{share_in_use(gpus[0]) or 0.0:.0%} of the memory of GPU {gpus[0].index} on {node}"
    return f"GPUs are in use on {fold(in_use)} ({share}); to measure anyway: {COMMANDS['force']}"


def _names_beside(name: str) -> tuple[str, ...]:
    """Return what runs in addition to a method: the test of RDMA; with NCCL its diagnostics, and the NICs alone."""
    return ("rdma", "diagnostics", "nics", "loopback") if name in _ON_GPUS else ("rdma",)


def _beside(context: ProbeContext, name: str) -> dict[str, Driver]:
    return {other: driver for other in _names_beside(name) if not (driver := driver_named(other)).unfit(context)}


def _launched(context: ProbeContext, chosen: Chosen) -> Chosen | Refused:
    """Let mpirun start the ranks of all nodes together, which tests its line; pairs do not need that."""
    main = chosen.drivers.get(Stage.ALL) or next(iter(chosen.drivers.values()))
    if main.launcher == BY_MPIRUN:
        return chosen
    driver = driver_named(BY_MPIRUN)
    if main.method is not driver.method:
        return Refused(f"--probe-launcher mpirun works with --probe nccl only, not with {main.method.value}", "probe")
    if why := driver.unfit(context):
        return Refused(f"--probe-launcher mpirun: {why}", "probe")
    return replace(chosen, drivers={**chosen.drivers, **dict.fromkeys(driver.stages, driver)})
