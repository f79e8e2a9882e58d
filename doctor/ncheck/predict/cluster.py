"""What NCCL will do on a cluster, or gloo where no node has a GPU; what single changes would bring; what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpudirect import GpuDirectFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.hostlist import fold
from ncheck.model.cluster import Cluster, Facts, FactType
from ncheck.model.fact import Unread
from ncheck.model.op import Op
from ncheck.model.report import Measurement, NcclChoice, Probe
from ncheck.nccl.settings import is_on, release_of
from ncheck.parity import nodes_by_value
from ncheck.plan.inputs import unreachable
from ncheck.predict import gloo
from ncheck.predict.carriers import at_speed
from ncheck.predict.case import Case, Part, parts_of
from ncheck.predict.changes import changes_of
from ncheck.predict.machine import without_gpudirect
from ncheck.predict.prediction import Prediction, predicted
from ncheck.predict.releases import CHECKED, rules_of
from ncheck.probe.links.hardware import HARDWARE_FACTS
from ncheck.probe.links.nic_links import Rails, by_rdma, rails_of
from ncheck.probe.results import Collective, collectives
from ncheck.probe.skip_reason import ran_on

FACTS: tuple[FactType, ...] = (LoginFacts, *HARDWARE_FACTS, LoadedNcclFacts, NetPluginFacts, GpuDirectFacts)
SIZES = (2**13, 2**17, 2**20, 2**23, 2**26, 2**30, 2**33)


def predict_cluster(
    cluster: Cluster,
    ops: Sequence[Op],
    sizes: Sequence[int],
    slots: int | None = None,
    link_speed: float | None = None,
) -> Prediction:
    """Return what NCCL or gloo will do on the nodes that were logged in to, with these numbers of bytes.

    `link_speed`: the Gb/s of each NIC that carries the data, in place of what it shows.
    """
    cluster, named = at_speed(cluster, link_speed)
    case, rdma = parts_of(cluster, slots)
    wanted = tuple(sorted(sizes or SIZES))
    found = tuple(predicted(case, op, wanted) for op in ops)
    by_gloo = all(part.cpus for part in case.values())
    versions = {"" if by_gloo else part.version for part in case.values()}
    version = versions.pop() if len(versions) == 1 else ""
    return Prediction(
        version,
        release_of(version) in CHECKED,
        {name: part.ranks for name, part in case.items()},
        {name: part.nics for name, part in case.items()},
        found,
        () if by_gloo else tuple(changes_of(cluster, case, found, wanted)),
        named if by_gloo else (*named, *_notes(case, version, rdma=rdma)),
        unreachable(cluster),
        *((gloo.SOURCE, "gloo") if by_gloo else ()),
    )


def choices(
    cluster: Cluster, measurements: Sequence[Measurement], probe: Probe, slots: int | None = None
) -> Iterator[NcclChoice]:
    """Yield what NCCL uses for each size that all nodes measured together, where nothing has to be assumed."""
    stage = "all" if len(cluster) > 1 else "inside"
    for one in measurements:
        if one.stage != stage or not one.curve or not all(_read(cluster.known[name]) for name in one.nodes):
            continue
        case, rdma = parts_of(cluster.subset(one.nodes), slots)
        known = {part.version for part in case.values()} == {probe.version} and release_of(probe.version) in CHECKED
        alike = one.ranks == sum(part.ranks for part in case.values())
        if not known or not alike or _notes(case, probe.version, rdma=rdma) or not _ran_so(cluster, one, case):
            continue
        nics = min(len(part.ports) for part in case.values())
        for row in predicted(case, Op(one.op), sorted({point.size for point in one.curve})).rows:
            if row.algorithm and row.channels is not None:
                yield NcclChoice(one.op, row.size, row.algorithm, row.protocol, row.channels, nics)


def _read(facts: Facts) -> bool:
    """Return whether all of it was asked, which --select may leave out, and what NCCL loads is known."""
    unread = any(isinstance(facts[fact], Unread) for fact in (EnvironmentFacts, NetPluginFacts) if fact in facts)
    return facts.keys() >= {*FACTS} and not unread


def _ran_so(cluster: Cluster, one: Measurement, case: Case) -> bool:
    """Return whether the run itself, by NCCL's log, used these HCA ports; inside a node it uses none."""
    if len(case) == 1:
        return True
    measured = (one.stage, one.op, one.nodes)
    same = [
        ran for ran in collectives(ran_on(cluster.known))
        if (ran.step.stage.value, ran.step.op.value, ran.step.group) == measured
    ]  # fmt: skip
    return bool(same) and all(
        not part.ports or (by_rdma(ran.step, ran.results[node]) and _used(node, part, ran) == {*part.nics})
        for ran in same
        for node, part in case.items()
        if node in ran.results
    )


def _used(node: str, part: Part, ran: Collective) -> set[str]:
    """Return the HCA ports that NCCL's log names."""
    rails = rails_of(node, part.hardware, ran.results[node])
    return {port.name for port in rails.used} if isinstance(rails, Rails) else set()


def _notes(case: Case, version: str, *, rdma: bool) -> list[str]:
    notes = []
    if version and release_of(version) not in CHECKED:
        since = ".".join(map(str, rules_of(release_of(version)).since))
        notes.append(f"the source of NCCL {version} was not read: its rules are assumed to be those since {since}")
    files = ("NCCL_TUNER_PLUGIN", "NCCL_TUNER_CONFIG_FILE", "NCCL_GRAPH_FILE", "NCCL_TOPO_FILE")
    named = [name for name in files if any(name in part.settings for part in case.values())]
    notes += [f"{name} is set: what it changes is left out" for name in named]
    if tuner := next((part.tuner for part in case.values() if part.tuner), ""):
        notes.append(f"NCCL's choice may be overruled by its tuner: {tuner}")
    if any(is_on(part.settings, "NCCL_COLLNET_ENABLE") for part in case.values()):
        notes.append("NCCL_COLLNET_ENABLE is set: CollNet (SHARP) is left out, and NCCL may choose it")
    if rdma and any(part.direct is None for part in case.values()):
        notes.append("whether GPUDirect RDMA can be used could not be read: it is assumed")
    reasons = {
        node: without_gpudirect(part.hardware, part.ports, part.settings, part.direct) for node, part in case.items()
    }
    for why, nodes in nodes_by_value({node: why for node, why in reasons.items() if why}).items():
        notes.append(
            f"no GPUDirect RDMA on {fold(nodes)}: {why}. What that costs is not predicted; ncheck probe measures it"
        )
    if bare := [node for node, part in case.items() if _without_nvlink(part)]:
        notes.append(f"the GPUs of {fold(bare)} are joined by PCIe: NCCL's search may find other channels there")
    if any(part.ports and part.hardware.pcie is None for part in case.values()):
        notes.append("the PCIe links could not be read: they are assumed to be no limit")
    return notes


def _without_nvlink(part: Part) -> bool:
    topology = part.hardware.topology
    joined = topology is None or any(path.startswith("NV") for path in topology.pairs.values())
    return part.ranks > 1 and not joined
