"""NCCL by ncheck's own rank program under the plan's own mpirun line: so the line itself is proved, and not only NCCL.

The head runs it, as `ncheck launch` would. The ranks know by the launcher's variables which they are; what they are to
do, the rendezvous too, stands in the program's last word.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.probe import Stage, Step
from ncheck.model.evidence import JsonValue, Reply, Status
from ncheck.plan.launch import NoLineError
from ncheck.probe.methods.children import GRACE, run_children
from ncheck.probe.methods.method import HeadWay, NoPartError
from ncheck.probe.methods.mpi_lines import launch_of, line_for, started_by, this_head, why_no_line
from ncheck.probe.methods.nccl import Nccl
from ncheck.probe.methods.rank_lines import told_by_ranks

if TYPE_CHECKING:
    from ncheck.probe.methods.method import Ground, Part


_TO_START = 2.0  # seconds of the step's time that mpirun keeps for starting and ending its daemons


# NCCL's log goes to standard error, out of the middle of the ranks' lines; they meet by the identifier that they have.
_HEARD = (
    "env", "-u", "NCCL_COMM_ID", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET,ENV",
    "NCCL_DEBUG_FILE=/dev/stderr",
)  # fmt: skip


class UnderMpirun(HeadWay, Nccl):
    """All nodes together, which is what the plan's line is for; the agents do the rest."""

    launcher = "mpirun"
    stages: ClassVar = frozenset({Stage.ALL})
    least, most = 6.0, 30.0

    def unfit(self, ground: Ground) -> str:
        """Say what NCCL lacks, or why there is no line or no mpirun here."""
        return Nccl.unfit(self, ground) or (why_no_line(ground) if len(ground.nodes) > 1 else "")

    def run(self, ground: Ground, parts: Sequence[Part]) -> Mapping[str, Reply]:
        """Run one line for each step."""
        steps = [*dict.fromkeys(part.step for part in parts)]
        seconds = min(part.seconds for part in parts)
        if not all(part.id for part in parts):
            return {part.node: failed_reply("meeting", "the first node gave no rendezvous") for part in parts}
        try:
            lines = [self.line(ground, [part for part in parts if part.step == step], seconds) for step in steps]
            ended = run_children(lines, seconds, os.environ)
        except (NoLineError, NoPartError, OSError) as error:
            return {part.node: failed_reply("mpirun", str(error)) for part in parts}
        told = (told_by_ranks(step, one) for step, one in zip(steps, ended, strict=True))
        return {
            node: Reply(Status.OK, value={**value}, seconds=one.seconds)
            for values, one in zip(told, ended, strict=True)
            for node, value in values.items()
        }

    def line(self, ground: Ground, parts: Sequence[Part], seconds: float) -> tuple[str, ...]:
        """Return the plan's command with the rank program in the program's place. Raises NoLineError, NoPartError."""
        from ncheck.fleet.bootstrap import rank_program

        step = parts[0].step
        pythons = _places(ground, step, InterpreterFacts, "python3")
        specs = {part.node: self.spec(ground, part, seconds) for part in parts}
        alike = len(set(specs.values())) == 1
        rest = ("-B", "-S", "-c", rank_program(), *([specs[step.group[0]]] if alike else []))
        program, own = started_by(pythons, rest)
        pinned = (f"NCCL_NET={step.net}",) if step.net else ()
        for node, spec in {} if alike else specs.items():
            own.setdefault(node, {})["NCHECK_RANK"] = spec
        return line_for(ground, launch_of(ground, this_head(ground)), step, (*_HEARD, *pinned, *program), own)

    def spec(self, ground: Ground, part: Part, seconds: float) -> str:
        """Return what the rank program is told on a node."""
        library = _places(ground, part.step, LoadedNcclFacts, "NCCL")[part.node]
        devices = {device for node in part.step.group for device in ground.planned.get(node, ())}
        told = {
            "id": part.id, "world": part.step.world, "sizes": part.step.sizes, "library": library, "counters": True,
            "planned": sorted(devices), "seconds": round(max(1.0, seconds - GRACE - _TO_START), 1),
        }  # fmt: skip
        return json.dumps(told, separators=(",", ":"))


def _places(ground: Ground, step: Step, fact: type[InterpreterFacts | LoadedNcclFacts], called: str) -> dict[str, str]:
    held = ground.cluster.connected_facts(fact)
    if lacking := [node for node in step.group if node not in held]:
        raise NoPartError(f"where {lacking[0]} has its {called} is not known")
    return {node: held[node].path for node in step.group}


def failed_reply(step: str, words: str) -> Reply:
    """Return the reply for a program that did not run, as a node would tell it."""
    failure: JsonValue = {"step": step, "words": words, "rank": None, "code": None, "late": False}
    return Reply(Status.OK, value={"rows": [], "failure": failure})


WAY = UnderMpirun()
