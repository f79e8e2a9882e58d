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
from doctor.model.facts import EnvironmentFacts, GpuFacts
from doctor.model.node import Node
from doctor.model.plan import LaunchPlan, Setting

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
        unknown = Setting(None, "not known: no node was reached")
        return LaunchPlan(
            {"NCCL_SOCKET_IFNAME": unknown}, notes=("no node was reached: there is nothing to plan with",)
        )
    advice = advise(sight)
    found, why_none = _launch(sight, advice, port, as_root=user_is_root)
    notes = (*_missing(sight), *advice.notes, *([why_none] if why_none else []))
    if found is None:
        return LaunchPlan(advice.env, notes=notes)
    launcher, make = LINES[found.mpi.implementation]
    try:
        return LaunchPlan(advice.env, {launcher: make(found)}, notes, {launcher: _reasons(found)})
    except ValueError as error:
        return LaunchPlan(advice.env, notes=(*notes, str(error)))


def _missing(sight: Sight) -> tuple[str, ...]:
    notes = []
    if sight.unreached:
        absent = fold(sight.unreached)
        notes.append(f"the plan is for all listed nodes; {absent} was not reached and is taken to be like the rest")
    if dark := [node.name for node in sight.nodes if node.name in sight.unread(GpuFacts) and not node.slots]:
        notes.append(f"the GPUs of {fold(dark)} could not be read: the slots there are taken to be like the rest")
    if dark := list(sight.unread(EnvironmentFacts)):
        notes.append(f"the environment of {fold(dark)} could not be read: NCCL's variables are taken to be unset there")
    return tuple(notes)


def _launch(sight: Sight, advice: Advice, port: int | None, *, as_root: bool) -> tuple[Launch | None, str]:
    """Return what a line is made of, and a note; without a line the note says why there is none."""
    mpi, why_none = same_mpi(sight)
    if mpi is None:
        return None, why_none
    if mpi.implementation not in LINES:
        return None, f"no launch line: ncheck knows none for {mpi.implementation} {mpi.version}"
    if numbers := [node.name for node in sight.nodes if ":" in node.name]:
        return None, f"no launch line: in {numbers[0]}:8 no launcher can tell address and slots apart: list host names"
    ssh_port, user, note = same_way_in(sight, port)
    variables = {name: setting.value for name, setting in advice.env.items() if setting.value is not None}
    return Launch(mpi, sight.slots(), advice.network, variables, ssh_port, user, as_root), note


def _reasons(launch: Launch) -> tuple[str, ...]:
    """Say why the line says what it says."""
    ranks = "1 rank" if launch.ranks == 1 else f"{launch.ranks} ranks"
    reasons = [f"for {launch.mpi.implementation} {launch.mpi.version}; {ranks}: the listed slots, else the GPUs"]
    if launch.mpi.implementation == "Open MPI" and launch.network:
        reasons.append(f"held to {launch.network.told}: by itself it tries every interface, docker0 too, and may hang")
    if launch.ssh_arguments:
        reasons.append(f"its ssh is told {launch.ssh_arguments}, as the nodes are listed")
    return tuple(reasons)
