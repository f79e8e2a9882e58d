"""nccl-tests' all_reduce_perf between nodes: under the plan's mpirun line with -g 1, where it was built with MPI.

Without MPI mpirun would start as many tests of one GPU each, which pass and test no network.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ncheck.agent.turns.nccl_tests import told
from ncheck.facts.probe import Stage
from ncheck.hostlist import fold
from ncheck.model.evidence import JsonValue, Reply, Status
from ncheck.plan.launch import NoLineError
from ncheck.probe.methods.children import Ended, run_children
from ncheck.probe.methods.method import HeadWay
from ncheck.probe.methods.mpi_lines import launch_of, line_for, started_by, this_head, why_no_line
from ncheck.probe.methods.nccl_tests import PLAIN, WITH_MPI, NcclTests, options
from ncheck.probe.methods.tools import tools_of
from ncheck.probe.methods.under_mpirun import failed_reply

if TYPE_CHECKING:
    from ncheck.facts.probe import Step
    from ncheck.plan.launch import Launch
    from ncheck.probe.methods.method import Ground, Part


# NCCL's log goes to standard error, out of the middle of the table.
_HEARD = ("env", "-u", "NCCL_COMM_ID", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET", "NCCL_DEBUG_FILE=/dev/stderr")


class NcclTestsAcross(HeadWay, NcclTests):
    """Pairs, some nodes, all nodes. Every node of a step has the same table: that of rank 0."""

    launcher = "mpirun"
    across = ""
    stages: ClassVar = frozenset({Stage.PAIR, Stage.SCALING, Stage.ALL})
    least, most = 6.0, 40.0

    def lacks(self, ground: Ground) -> str:
        """Say why there is no test between the nodes."""
        without = [node for node in ground.nodes if not _with_mpi(ground, node)]
        if without:
            return f"{PLAIN} of {fold(without)} is built without MPI, and would test each GPU alone: make MPI=1"
        return why_no_line(ground)

    def run(self, ground: Ground, parts: Sequence[Part]) -> Mapping[str, Reply]:
        """Run one line for each step, all at once."""
        steps = [*dict.fromkeys(part.step for part in parts)]
        seconds = min(part.seconds for part in parts)
        try:
            launch = launch_of(ground, this_head(ground))
            lines = [_line(ground, launch, step) for step in steps]
            ended = run_children(lines, seconds, os.environ)
        except (NoLineError, OSError) as error:
            return {part.node: failed_reply("mpirun", str(error)) for part in parts}
        return {
            node: Reply(Status.OK, value=_value(one, ground, node), seconds=one.seconds)
            for step, one in zip(steps, ended, strict=True)
            for node in step.group
        }


def _line(ground: Ground, launch: Launch, step: Step) -> tuple[str, ...]:
    paths = {node: _with_mpi(ground, node) for node in step.group}
    program, own = started_by(paths, (*options(step.sizes), "-g", "1"))
    pinned = (f"NCCL_NET={step.net}",) if step.net else ()
    return line_for(ground, launch, step, (*_HEARD, *pinned, *program), own)


def _with_mpi(ground: Ground, node: str) -> str:
    """Return the path of a build with MPI, of which a wrapper may be one; "" for none."""
    tools = tools_of(ground.cluster, node)
    found = (tools.get(name) for name in (WITH_MPI, PLAIN))
    return next((tool.path for tool in found if tool and tool.mpi is not False), "")


def _value(ended: Ended, ground: Ground, node: str) -> dict[str, JsonValue]:
    status = "timeout" if ended.late else "ok"
    said = {"stdout": ended.stdout, "stderr": ended.stderr, "exit_status": ended.exit_status, "status": status}
    return {"rows": [], "library": _with_mpi(ground, node), "output": told(said, ended.seconds)}


WAY = NcclTestsAcross()
