"""Facts to a launch plan: the variables and the line for this job, each with its reason. Fewer is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from doctor.advice.hydra import intel_mpi_line, mpich_line
from doctor.advice.interface import Advice, advise
from doctor.advice.launch import Launch, same_mpi, same_way_in
from doctor.advice.open_mpi import open_mpi_line
from doctor.advice.sight import Sight, sight_of
from doctor.engine import Facts
from doctor.hostlist import fold
from doctor.model.check import FactType
from doctor.model.facts import (
    EnvironmentFacts,
    GpuFacts,
    IdentityFacts,
    InfinibandFacts,
    InterpreterFacts,
    LoadedNcclFacts,
    LoginFacts,
    MpiFacts,
    NicFacts,
)
from doctor.model.node import Node
from doctor.model.plan import LaunchPlan

PLAN_FACTS: tuple[FactType, ...] = (
    LoginFacts, IdentityFacts, NicFacts, InfinibandFacts, EnvironmentFacts, LoadedNcclFacts, InterpreterFacts, GpuFacts,
    MpiFacts,
)  # fmt: skip

# The launcher's name in the plan and the maker of its line, by implementation.
LINES: Mapping[str, tuple[str, Callable[[Launch], str]]] = {
    "Open MPI": ("mpirun", open_mpi_line),
    "MPICH": ("mpiexec", mpich_line),
    "Intel MPI": ("mpiexec", intel_mpi_line),
}


def propose(nodes: Sequence[Node], facts: Mapping[str, Facts], port: int | None, *, user_is_root: bool) -> LaunchPlan:
    """Return the plan for a job over all listed nodes; what could not be decided stands in its notes, with why."""
    sight = sight_of(nodes, facts)
    if not sight.reached:
        return LaunchPlan(notes=("no node was reached: there is nothing to make a plan of",))
    advice = advise(sight)
    lines, notes = _lines(sight, advice, port, as_root=user_is_root)
    return LaunchPlan(advice.env, lines, (*_missing(sight), *advice.notes, *notes))


def _missing(sight: Sight) -> tuple[str, ...]:
    if not sight.unreached:
        return ()
    absent = fold(sight.unreached)
    return (f"the plan is for all listed nodes; {absent} was not reached and is taken to be like the rest",)


Lines = tuple[dict[str, str], tuple[str, ...]]


def _lines(sight: Sight, advice: Advice, port: int | None, *, as_root: bool) -> Lines:
    mpi, why_none = same_mpi(sight)
    if mpi is None:
        return {}, (why_none,)
    if mpi.implementation not in LINES:
        return {}, (f"no launch line: ncheck knows none for {mpi.implementation} {mpi.version}",)
    if numbers := [node.name for node in sight.nodes if ":" in node.name]:
        return {}, (f"no launch line: in {numbers[0]}:8 no launcher can tell address and slots apart: list host names",)
    ssh_port, user, note = same_way_in(sight, port)
    variables = {name: setting.value for name, setting in advice.env.items() if setting.value is not None}
    launch = Launch(mpi, sight.slots(), advice.network, variables, ssh_port, user, as_root)
    launcher, make = LINES[mpi.implementation]
    try:
        return {launcher: make(launch)}, tuple(word for word in (note, *_reasons(launch)) if word)
    except ValueError as error:
        return {}, (str(error),)


def _reasons(launch: Launch) -> tuple[str, ...]:
    """Say why the line says what it says."""
    line = f"the line is for {launch.mpi.implementation} {launch.mpi.version}, {launch.ranks} ranks"
    if launch.network is None or not launch.network.subnet:
        return (line,)
    held = f"MPI is held to {launch.network.subnet}: by itself it tries every interface, docker0 too, and may hang"
    return (line, held)
