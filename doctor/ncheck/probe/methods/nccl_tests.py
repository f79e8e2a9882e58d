"""nccl-tests, where all_reduce_perf is on the PATH: inside a node by the agent, between nodes under mpirun."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from ncheck.agent.answers.tools import PROGRAMS, WITH_MPI
from ncheck.facts.tools import tools_of
from ncheck.hostlist import fold
from ncheck.model.evidence import JsonValue, Reply, Status
from ncheck.model.op import Op
from ncheck.plan.launch import NoLineError
from ncheck.probe.agent.nccl_tests import program_output
from ncheck.probe.methods.driver import GIB, MIB, LocalDriver, NodeTask
from ncheck.probe.methods.mpirun import failed_reply, launch_of, line_for, started_by, this_head, why_no_line
from ncheck.probe.methods.nccl import Nccl, rate, unfit_for_ranks
from ncheck.probe.node_result import Method, Stage
from ncheck.this_machine.process import Ended, run_all

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue
    from ncheck.plan.launch import Launch
    from ncheck.probe.methods.context import ProbeContext
    from ncheck.probe.methods.driver import NodeTask
    from ncheck.probe.node_result import Step


SIZES = (MIB, 32 * MIB, GIB)  # with one factor between them: the tool accepts no other lists
_INSIDE = 1e10  # bytes per second that the links inside a node carry, or more
_PART = 0.5  # of a step's time, for measuring
_AFFORDABLE = 5  # repeats that there is always time for


class NcclTests(Nccl):
    """The GPUs of one node: one process with -g N. Between nodes mpirun runs it: NcclTestsAcross."""

    method = Method.NCCL_TESTS
    across = "nccl-tests-mpirun"
    stages: ClassVar = frozenset({Stage.INSIDE})
    sizes: ClassVar = dict.fromkeys(Stage, SIZES)
    least, most = 4.0, 30.0
    meets = ids = False

    def unfit(self, context: ProbeContext) -> str:
        """Return which nodes lack the programs, or GPUs for the ranks. They may bring another NCCL than the job's."""
        if without := _without(context, Op.ALL_REDUCE):
            return f"no {PROGRAMS[Op.ALL_REDUCE.value]} on the PATH of {fold(without)}"
        return unfit_for_ranks(context)

    def lacks(self, context: ProbeContext, op: Op) -> str:
        """Return which nodes lack the program of this operation."""
        without = _without(context, op)
        return f"no {PROGRAMS[op.value]} beside all_reduce_perf on {fold(without)}" if without else ""

    def own_arguments(self, context: ProbeContext, task: NodeTask) -> Mapping[str, JsonValue]:
        """Return the options of the program."""
        return {"options": [*options(task.step, max(_INSIDE, rate(context)), task.seconds)]}


def _without(context: ProbeContext, op: Op) -> list[str]:
    """Return the nodes that have no program for this operation."""
    name = PROGRAMS[op.value]
    return [node for node in context.nodes if not tools_of(context.cluster, node).keys() & {name, name + WITH_MPI}]


def options(step: Step, rate: float, seconds: float) -> tuple[str, ...]:
    """Return the options that run at least the step's sizes: from the smallest to the largest by one factor.

    The program repeats each size -n times, whatever the time. So -n is less than --repeats where these may take longer
    than `seconds`, at this rate in bytes per second.
    """
    least, most, factor = min(step.sizes), max(step.sizes), _factor(tuple(sorted(set(step.sizes))))
    moved = 2 * 2 * most * factor / (factor - 1)  # once each, out of place and in place, and a ring moves it twice
    repeats = min(step.repeats or _AFFORDABLE, max(_AFFORDABLE, int(_PART * seconds * rate / moved)))
    return ("-b", str(least), "-e", str(most), "-f", str(factor), "-n", str(repeats), "-w", "1", "-c", "1")


def _factor(sizes: tuple[int, ...]) -> int:
    """Return the factor between neighbouring sizes if there is one, otherwise 2."""
    factors = set(_factors(sizes))
    return factors.pop() if len(factors) == 1 and min(factors) > 1 else 2


def _factors(sizes: tuple[int, ...]) -> Iterator[int]:
    for smaller, larger in pairwise(sizes):
        yield larger // smaller if smaller and larger % smaller == 0 else 0


INSIDE_NODES = NcclTests()

# NCCL's log goes to standard error, so that it does not mix with the table.
_LOGGED = ("env", "-u", "NCCL_COMM_ID", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET", "NCCL_DEBUG_FILE=/dev/stderr")


class NcclTestsAcross(LocalDriver, NcclTests):
    """Two or more nodes, under the plan's mpirun line with -g 1. All nodes of a step report the table of rank 0.

    A build without MPI is refused: mpirun would start many tests of one GPU each, which pass and test no network.
    """

    launcher = "mpirun"
    across = ""
    stages: ClassVar = frozenset({Stage.PAIR, Stage.SCALING, Stage.ALL})
    least, most = 6.0, 40.0

    def lacks(self, context: ProbeContext, op: Op) -> str:
        """Return why there is no test between the nodes."""
        if why := super().lacks(context, op):
            return why
        without = [node for node in context.nodes if not _with_mpi(context, node, op)]
        if without:
            name = PROGRAMS[op.value]
            return f"{name} on {fold(without)} was built without MPI and would test each GPU alone: make MPI=1"
        return why_no_line(context)

    def run(self, context: ProbeContext, tasks: Sequence[NodeTask]) -> Mapping[str, Reply]:
        """Run one line for each step, all at once."""
        steps = [*dict.fromkeys(task.step for task in tasks)]
        seconds = min(task.seconds for task in tasks)
        try:
            launch = launch_of(context, this_head(context))
            lines = [_line(context, launch, step, seconds) for step in steps]
            ended = run_all(lines, seconds, os.environ)
        except (NoLineError, OSError) as error:
            return {task.node: failed_reply("mpirun", str(error)) for task in tasks}
        return {
            node: Reply(Status.OK, value=_value(run, _with_mpi(context, node, step.op)), seconds=run.seconds)
            for step, run in zip(steps, ended, strict=True)
            for node in step.group
        }


def _line(context: ProbeContext, launch: Launch, step: Step, seconds: float) -> tuple[str, ...]:
    paths = {node: _with_mpi(context, node, step.op) for node in step.group}
    program, own = started_by(paths, (*options(step, rate(context), seconds), "-g", "1"))
    pinned = (*([f"NCCL_NET={step.net}"] if step.net else []), *([f"{step.off}=0"] if step.off else []))
    return line_for(context, launch, step, (*_LOGGED, *pinned, *program), own)


def _with_mpi(context: ProbeContext, node: str, op: Op) -> str:
    """Return the path of a build with MPI, or of a wrapper script; "" for none."""
    tools, name = tools_of(context.cluster, node), PROGRAMS[op.value]
    candidates = (tools.get(each) for each in (name + WITH_MPI, name))
    return next((tool.path for tool in candidates if tool and tool.mpi is not False), "")


def _value(ended: Ended, path: str) -> dict[str, JsonValue]:
    status = "timeout" if ended.late else "ok"
    output = program_output(
        {"stdout": ended.stdout, "stderr": ended.stderr, "exit_status": ended.exit_status, "status": status},
        ended.seconds,
    )
    return {"rows": [], "library": path, "output": output}


BETWEEN_NODES = NcclTestsAcross()
