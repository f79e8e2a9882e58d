"""By which means the probe measures, or why it measures nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ncheck.blockers import Blocker
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.probe import Stage
from ncheck.hostlist import fold
from ncheck.probe.methods.method import Ground, Way, way_called
from ncheck.topology.gpus import busy, share_in_use

_CPUS = ("gloo", "tcp")  # in this order, where no GPU can be measured


_ON_GPUS = ("nccl", "nccl-tests")


BY_MPIRUN = "mpirun"


PLAINLY, BY_FORCE = "ncheck probe nodes.txt", "ncheck probe nodes.txt --force"


UNMEASURED = "ncheck nodes.txt --probe none"


@dataclass(frozen=True)
class Chosen:
    """The way of each stage, and those that run beside it. `note` says what it does not tell of, "" for nothing."""

    ways: Mapping[Stage, Way]
    beside: Mapping[str, Way]
    note: str = ""


@dataclass(frozen=True)
class Refused:
    """Nothing is measured, and why. `fix`: what to type where it is wanted all the same."""

    why: str
    fix: str


def ways_open_to(probe: str) -> tuple[str, ...]:
    """Return the names of the ways that a probe may take that was asked so, those that run beside the others last."""
    chosen = (_ON_GPUS[0], *_CPUS) if probe == "auto" else (probe,)
    return tuple(dict.fromkeys((*chosen, *(name for one in chosen for name in _names_beside(one)))))


def choose(ground: Ground, blockers: tuple[Blocker, ...]) -> Chosen | Refused:
    """Choose as the settings say. With --force, what blocks the plan does not keep ncheck from measuring."""
    settings = ground.settings
    if not ground.nodes:
        return Refused("no node is left to measure on", UNMEASURED)
    if blockers and not settings.force:
        first, more = blockers[0], f" (and {len(blockers) - 1} more)" if len(blockers) > 1 else ""
        fix = f"ncheck explain {first.code}" if first.code else UNMEASURED
        return Refused(f"the launch plan is blocked: {first.message}{more}", fix)
    found = _automatic(ground) if settings.probe == "auto" else _explicit(ground, settings.probe)
    return _launched(ground, found) if isinstance(found, Chosen) and settings.probe_launcher == BY_MPIRUN else found


def _automatic(ground: Ground) -> Chosen | Refused:
    note = ""
    if any(ground.gpus.values()):
        if why := _in_use(ground):
            return Refused(why, BY_FORCE)
        found = _explicit(ground, "nccl")
        if isinstance(found, Chosen):
            return found
        note = f"the GPUs were not measured: {found.why}"
    if len(ground.nodes) == 1:
        return Refused(note or "one node alone, without a GPU, has nothing to measure", PLAINLY)
    refused: list[str] = []
    for name in _CPUS:
        found = _explicit(ground, name)
        if isinstance(found, Chosen):
            return replace(found, note=note)
        refused.append(found.why)
    return Refused("; ".join((*([note] if note else []), *refused)), UNMEASURED)


def _explicit(ground: Ground, name: str) -> Chosen | Refused:
    if name in _ON_GPUS and (why := _in_use(ground)):
        return Refused(why, BY_FORCE)
    way = way_called(name)
    if why := way.unfit(ground):
        return Refused(f"{name} cannot be used: {why}", PLAINLY)
    ways = dict.fromkeys(way.stages, way)
    if way.across and len(ground.nodes) > 1:
        between = way_called(way.across)
        ways |= dict.fromkeys(between.stages, between)
    return Chosen(ways, _beside(ground, name))


def _in_use(ground: Ground) -> str:
    """Say whose GPUs are in use; "" where none is, and where --force measures all the same."""
    held = ground.cluster.connected_facts(GpuFacts)
    found = {node: [*busy(held[node])] for node in ground.nodes if node in held}
    nodes = [node for node, gpus in found.items() if gpus]
    if not nodes or ground.settings.force:
        return ""
    first = found[nodes[0]][0]
    share = f"{share_in_use(first) or 0.0:.0%} of the memory of GPU {first.index} on {nodes[0]}"
    return f"GPUs are in use on {fold(nodes)} ({share}); {BY_FORCE} measures all the same"


def _names_beside(name: str) -> tuple[str, ...]:
    """Return what runs beside a means: RDMA by itself, and what NCCL says of itself where that runs."""
    return ("rdma", "diagnostics") if name in _ON_GPUS else ("rdma",)


def _beside(ground: Ground, name: str) -> dict[str, Way]:
    return {other: way for other in _names_beside(name) if not (way := way_called(other)).unfit(ground)}


def _launched(ground: Ground, chosen: Chosen) -> Chosen | Refused:
    """Let mpirun start the ranks of all nodes together: its line is what is proved, so pairs need it not."""
    main = chosen.ways.get(Stage.ALL) or next(iter(chosen.ways.values()))
    if main.launcher == BY_MPIRUN:
        return chosen
    way = way_called(BY_MPIRUN)
    if main.means is not way.means:
        return Refused(f"--probe-launcher mpirun starts ranks of NCCL, and this is {main.means.value}", PLAINLY)
    if why := way.unfit(ground):
        return Refused(f"--probe-launcher mpirun: {why}", PLAINLY)
    return replace(chosen, ways={**chosen.ways, **dict.fromkeys(way.stages, way)})
