"""The job that a prediction is of: each node, what it has, what NCCL uses of it, and what its links carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpudirect import GpuDirectFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.fact import Absent, Unread
from ncheck.model.op import Op
from ncheck.nccl.hca import selected
from ncheck.nccl.net_plugin import loaded
from ncheck.nccl.settings import PlacedSetting
from ncheck.plan.inputs import logged_in, slots_per_node
from ncheck.predict.carriers import carriers_of
from ncheck.probe.expected import Expected, expected
from ncheck.probe.links.algorithms import settings_on
from ncheck.probe.links.domains import domains_of
from ncheck.probe.links.hardware import NodeHardware, hardware_of
from ncheck.probe.node_result import Method, NodeResult, Stage, Step
from ncheck.probe.results import Collective

Lines = tuple[str, ...] | Unread | Absent
LARGE = 2**33  # bytes, at which the start-up no longer shows


@dataclass(frozen=True)
class Part:
    """One node of a job: what it has, and what NCCL uses of it. `plugin`: the network plug-in, "" for NCCL's own.

    `interface`: where data goes by sockets, the one that carries it, "" if there is no such one. `cpus`: it has no GPU.
    """

    hardware: NodeHardware
    ranks: int
    ports: tuple[HcaPort, ...]
    version: str
    direct: GpuDirectFacts | None = None
    plugin: str = ""
    tuner: str = ""
    interface: str = ""
    cpus: bool = False

    @property
    def nics(self) -> tuple[str, ...]:
        """What carries data to other nodes, by name."""
        return tuple(port.name for port in self.ports) or ((self.interface,) if self.interface else ())

    def set(self, variable: str, value: str | None) -> Part:
        """Return the same node with this variable in the environment; None: set nowhere."""
        own = self.hardware.environment or EnvironmentFacts({}, {})
        variables = {name: known for name, known in own.variables.items() if name != variable}
        files = {path: _without(lines, f"{variable}=") for path, lines in own.files.items()}
        if value is not None:
            variables[variable] = value
        return replace(self, hardware=replace(self.hardware, environment=EnvironmentFacts(variables, files)))

    @property
    def speed(self) -> float | None:
        """The Gb/s of its interface; None if there is none or it shows none."""
        nics = self.hardware.nics.interfaces if self.hardware.nics else ()
        speed = next((nic.speed for nic in nics if nic.name == self.interface), None)
        return speed / 1000 if speed else None

    @property
    def settings(self) -> Mapping[str, PlacedSetting]:
        return settings_on(self.hardware)


def _without(lines: Lines, start: str) -> Lines:
    return tuple(line for line in lines if not line.startswith(start)) if isinstance(lines, tuple) else lines


Case = Mapping[str, Part]


def parts_of(cluster: Cluster, slots: int | None) -> tuple[Case, bool]:
    """Return the nodes that were logged in to, and whether NCCL uses their HCAs."""
    reached = logged_in(cluster)
    known = {name: reached.known[name] for name in reached.names}
    carriers = carriers_of(reached)
    ranks = slots_per_node(reached, slots)
    nccl, plugins = reached.facts(LoadedNcclFacts), reached.facts(NetPluginFacts)
    direct, hcas = reached.facts(GpuDirectFacts), reached.facts(InfinibandFacts)
    hardware = {name: hardware_of(facts) for name, facts in known.items()}
    settings = {name: settings_on(own) for name, own in hardware.items()}
    parts = {}
    for name, own in hardware.items():
        plugin = loaded(plugins[name], nccl.get(name)) if name in plugins else None
        chosen = settings[name]["NCCL_IB_HCA"].value if "NCCL_IB_HCA" in settings[name] else ""
        parts[name] = Part(
            own, ranks[name], selected(chosen, hcas[name].ports) if carriers.rdma else (),
            nccl[name].version if name in nccl and nccl[name].library == "NCCL" else "",
            direct.get(name), plugin.described if plugin else "", plugins[name].tunes if name in plugins else "",
            carriers.interfaces.get(name, ""), carriers.cpus,
        )  # fmt: skip
    return parts, carriers.rdma


def links_of(case: Case, op: Op, method: Method = Method.NCCL) -> Expected:
    """Return what the links carry: what a bandwidth test is held to."""
    nodes, ranks = tuple(case), tuple(part.ranks for part in case.values())
    step = Step(1, Stage.ALL if len(nodes) > 1 else Stage.INSIDE, method, nodes, ranks, (LARGE,), op=op)
    results = {
        name: NodeResult(step, (), part.nics, version=part.version, used=_used(part)) for name, part in case.items()
    }
    return expected(Collective(step, results, (), ()), {name: part.hardware for name, part in case.items()})


def _used(part: Part) -> tuple[str, ...]:
    return (f"NET/{part.plugin}",) if part.plugin else () if part.ports else ("NET/Socket",)


def speeds_of(case: Case) -> tuple[float, ...]:
    """Return the Gb/s of each node, where data leaves each of them by one interface; () if not, or one is unknown."""
    domains = domains_of([(name, part.hardware, part.version) for name, part in case.items()])
    known = tuple(part.speed for part in case.values() if part.speed and not part.plugin)
    return known if not domains.count and len(known) == len(case) else ()
