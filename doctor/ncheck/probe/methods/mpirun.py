"""Collectives whose ranks the plan's own mpirun line starts: this tests the line itself, not only NCCL.

The local host runs the line, as `ncheck launch` would. Each rank takes its number from the launcher's variables; its
task, NCCL identifier included, is the last argument of the rank program.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ncheck.expression import expression
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.model.evidence import JsonValue, Reply, Status
from ncheck.plan.launch import NoLineError
from ncheck.plan.plan import mpi_launch, mpi_line
from ncheck.probe.agent.nccl_log import Log
from ncheck.probe.methods.driver import CannotTakePartError, LocalDriver
from ncheck.probe.methods.nccl import Nccl, also_in_place
from ncheck.probe.node_result import Stage, Step
from ncheck.this_machine.local_host import read_local_host
from ncheck.this_machine.process import GRACE, run_all

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue
    from ncheck.plan.launch import Launch
    from ncheck.probe.methods.context import ProbeContext
    from ncheck.probe.methods.driver import NodeTask
    from ncheck.probe.node_result import Step
    from ncheck.this_machine.local_host import LocalHost
    from ncheck.this_machine.process import Ended


_RUN = 'exec "$NCHECK_PROGRAM" "$@"'


def why_no_line(context: ProbeContext) -> str:
    """Return why mpirun on this machine cannot start ranks on these nodes, "" if it can."""
    try:
        starter = mpi_line(launch_of(context, this_head(context))).program
    except NoLineError as error:
        return f"there is no mpirun line: {error}"
    return "" if shutil.which(starter) else f"{starter} is not installed here; run ncheck where you run {starter}"


def launch_of(context: ProbeContext, head: LocalHost | None) -> Launch:
    """Return the parts of the plan's mpirun line, as typed on the local host `head`. Raises NoLineError."""
    cluster = context.cluster
    root = any(identity.user_id == 0 for identity in cluster.connected_facts(IdentityFacts).values())
    return mpi_launch(cluster.subset(context.nodes), context.settings, user_is_root=root, local_host=head)


def this_head(context: ProbeContext) -> LocalHost | None:
    """Return the local host, on which the line is typed."""
    return read_local_host(context.settings, os.environ)


def line_for(
    context: ProbeContext, launch: Launch, step: Step, program: tuple[str, ...], own: Mapping[str, Mapping[str, str]]
) -> tuple[str, ...]:
    """Return the command that starts a step's ranks; `own` are variables of individual nodes. Raises NoLineError."""
    hosts = dict(
        zip((node.name for node in context.cluster.nodes if node.name in context.nodes), launch.hosts, strict=True)
    )
    members = tuple(
        replace(hosts[node], slots=ranks, own={**hosts[node].own, **own.get(node, {})})
        for node, ranks in zip(step.group, step.ranks, strict=True)
    )
    return mpi_line(replace(launch, hosts=members, program=program)).argv


def started_by(paths: Mapping[str, str], rest: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """Return the command that starts the program at `paths` (node to path), and the variables of each node."""
    if len(set(paths.values())) == 1:
        return (next(iter(paths.values())), *rest), {}
    return ("sh", "-c", _RUN, "sh", *rest), {node: {"NCHECK_PROGRAM": path} for node, path in paths.items()}


_OURS = "ncheck:"
_LONGEST, _MOST_LINES = 4096, 2_000_000
_WORDS, _FIRST = 400, 3
_KINDS = ("step", "library", "first", "row", "note", "carried", "held", "removed", "failure", "done")
_TIMES = ("seconds", "fastest", "slowest")
_FOREVER = 1e9  # seconds; larger numbers are not believed

# "---------------------------------": Open MPI draws such lines around its messages
_RULE = expression(r"[-=*\s]*$")
Line = Mapping[str, "JsonValue"]
Lines = Mapping[int, Mapping[str, list[Line]]]


def answers_by_node(step: Step, ended: Ended) -> dict[str, dict[str, JsonValue]]:
    """Return what the ranks printed, by node, in the shape in which agents answer a task."""
    lines, others = _parted(ended.stdout, step.world)
    log = Log()
    for line in (*others, *ended.stderr.splitlines()):
        log.take(line)
    answers = {}
    first = 0
    for node, ranks in zip(step.group, step.ranks, strict=True):
        answers[node] = _answer({rank: lines.get(rank, {}) for rank in range(first, first + ranks)}, log, ended)
        first += ranks
    return answers


def first_words(ended: Ended) -> str:
    """Return the first words of a launcher that failed: it prints the cause before its explanations."""
    printed = (line.strip() for text in (ended.stderr, ended.stdout) for line in text.splitlines())
    words = [line for line in printed if line and not _RULE.match(line) and not line.startswith(_OURS)]
    how = "it ran out of time" if ended.late else f"it ended with exit status {ended.exit_status}"
    return "; ".join([*dict.fromkeys(words)][:_FIRST])[:_WORDS] or how


def _parted(text: str, world: int) -> tuple[Lines, list[str]]:
    """Return the ranks' lines by rank and kind, and all other lines."""
    found: dict[int, dict[str, list[Line]]] = {}
    others: list[str] = []
    for line in text.splitlines()[:_MOST_LINES]:
        ours, _, rest = line.partition(_OURS)
        parsed = _json(rest) if not ours and len(line) <= _LONGEST else None
        if parsed is None:
            others.append(line)
            continue
        rank, kind = parsed.get("rank"), parsed.get("is")
        if isinstance(rank, int) and 0 <= rank < world and isinstance(kind, str) and kind in _KINDS:
            found.setdefault(rank, {}).setdefault(kind, []).append(parsed)
    return found, others


def _json(text: str) -> Line | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _answer(ranks: Lines, log: Log, ended: Ended) -> dict[str, JsonValue]:
    failure = _failure(ranks, ended)
    left: list[JsonValue] = [text for lines in ranks.values() for text in _texts(lines, "removed", "words")]
    library = next((line for lines in ranks.values() for line in lines.get("library", [])), {})
    firsts = [line.get("seconds") for lines in ranks.values() for line in lines.get("first", [])[:1]]
    starts = [second for second in firsts if isinstance(second, (int, float)) and not isinstance(second, bool)]
    lines: list[JsonValue] = [*log.lines(failure is not None)]
    used: list[JsonValue] = [*log.used]
    return {
        "rows": [*_rows(ranks)] if failure is None else [], "carried": _carried(ranks),
        "version": library.get("version", ""), "library": library.get("path", ""), "used": used, "log": lines,
        "failure": failure, "start": max(starts) if starts and len(starts) == len(ranks) else None, "left": left,
        "held": _held(ranks),
    }  # fmt: skip


def _held(ranks: Lines) -> dict[str, JsonValue]:
    """Return {path: inode} of the ranks' files in shared memory, without those that a rank reports as removed."""
    gone = {path for lines in ranks.values() for path in _texts(lines, "removed", "gone")}
    segments = (line.get("segments") for lines in ranks.values() for line in lines.get("held", []))
    files = {path: inode for many in segments if isinstance(many, dict) for path, inode in many.items()}
    return {path: inode for path, inode in sorted(files.items()) if path not in gone and type(inode) is int}


def _texts(lines: Mapping[str, list[Line]], kind: str, name: str) -> Iterable[str]:
    values = (line.get(name) for line in lines.get(kind, []))
    return [text for many in values if isinstance(many, (list, dict)) for text in many if isinstance(text, str)]


def _failure(ranks: Lines, ended: Ended) -> JsonValue:
    """Return the first failure that a rank reported, or why a rank did not finish; None if all did."""
    for rank, lines in ranks.items():
        for line in lines.get("failure", [])[:1]:
            return {**{name: line.get(name) for name in ("step", "words", "code", "late")}, "rank": rank}
    silent = [rank for rank, lines in ranks.items() if not lines.get("done")]
    if not silent:
        return None
    steps = ranks[silent[0]].get("step", [])
    step = steps[-1].get("step") if steps else "mpirun"
    return {
        "step": step, "words": first_words(ended), "rank": silent[0] if steps else None,
        "code": ended.exit_status, "late": ended.late,
    }  # fmt: skip


def _rows(ranks: Lines) -> Iterable[JsonValue]:
    """Yield the rows that all ranks of a node reported, each the mean over the ranks."""
    by_size: dict[tuple[int, bool], dict[int, Line]] = {}
    for rank, lines in ranks.items():
        for line in lines.get("row", []):
            size, in_place = line.get("size"), line.get("in_place")
            if isinstance(size, int) and isinstance(in_place, bool) and _is_row(line):
                by_size.setdefault((size, in_place), {})[rank] = line
    for (size, in_place), rows in sorted(by_size.items()):
        if len(rows) == len(ranks):
            yield {"size": size, "in_place": in_place, **_mean([*rows.values()])}


def _is_row(line: Line) -> bool:
    return all(
        isinstance(value := line.get(name), (int, float)) and not isinstance(value, bool) and 0 <= value < _FOREVER
        for name in _TIMES
    )


def _mean(rows: list[Line]) -> dict[str, JsonValue]:
    mean: dict[str, JsonValue] = {}
    for name in _TIMES:
        values = [float(value) for row in rows if isinstance(value := row[name], (int, float))]
        mean[name] = sum(values) / len(values)
    counted = [wrong for row in rows if isinstance(wrong := row.get("wrong"), int)]
    wrong = sum(counted) if len(counted) == len(rows) else None
    return {**mean, "wrong": wrong, "timing": rows[0].get("timing")}


def _carried(ranks: Lines) -> dict[str, JsonValue]:
    moved = (line.get("moved") for lines in ranks.values() for line in lines.get("carried", []))
    return {name: counts for many in moved if isinstance(many, dict) for name, counts in many.items()}


_TO_START = 2.0  # seconds of the step's time in which mpirun starts and ends its daemons

# NCCL's log goes to standard error, so that it does not mix with the ranks' lines. The ranks meet by their identifier.
_LOGGED = (
    "env", "-u", "NCCL_COMM_ID", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET,ENV",
    "NCCL_DEBUG_FILE=/dev/stderr",
)  # fmt: skip


class UnderMpirun(LocalDriver, Nccl):
    """All nodes together: that is what the plan's line is for. The agents run all other stages."""

    launcher = "mpirun"
    stages: ClassVar = frozenset({Stage.ALL})
    least, most = 6.0, 30.0

    def unfit(self, context: ProbeContext) -> str:
        """Return what NCCL lacks, or why there is no mpirun line or no mpirun here."""
        return Nccl.unfit(self, context) or (why_no_line(context) if len(context.nodes) > 1 else "")

    def run(self, context: ProbeContext, tasks: Sequence[NodeTask]) -> Mapping[str, Reply]:
        """Run one line for each step."""
        steps = [*dict.fromkeys(task.step for task in tasks)]
        seconds = min(task.seconds for task in tasks)
        if not all(task.id for task in tasks):
            return {task.node: failed_reply("meeting", "the first node gave no NCCL identifier") for task in tasks}
        try:
            lines = [self.line(context, [task for task in tasks if task.step == step], seconds) for step in steps]
            ended = run_all(lines, seconds, os.environ)
        except (NoLineError, CannotTakePartError, OSError) as error:
            return {task.node: failed_reply("mpirun", str(error)) for task in tasks}
        return {
            node: Reply(Status.OK, value={**value}, seconds=run.seconds)
            for step, run in zip(steps, ended, strict=True)
            for node, value in answers_by_node(step, run).items()
        }

    def line(self, context: ProbeContext, tasks: Sequence[NodeTask], seconds: float) -> tuple[str, ...]:
        """Return the plan's command with the rank program as its job. Raises NoLineError, CannotTakePartError."""
        from ncheck.fleet.bootstrap import rank_program

        step = tasks[0].step
        pythons = _paths(context, step, InterpreterFacts, "python3")
        specs = {task.node: self.spec(context, task, seconds) for task in tasks}
        alike = len(set(specs.values())) == 1
        rest = ("-B", "-S", "-c", rank_program(), *([specs[step.group[0]]] if alike else []))
        program, own = started_by(pythons, rest)
        pinned = (f"NCCL_NET={step.net}",) if step.net else ()
        for node, spec in {} if alike else specs.items():
            own.setdefault(node, {})["NCHECK_RANK"] = spec
        return line_for(context, launch_of(context, this_head(context)), step, (*_LOGGED, *pinned, *program), own)

    def spec(self, context: ProbeContext, task: NodeTask, seconds: float) -> str:
        """Return the argument of the rank program on a node."""
        library = _paths(context, task.step, LoadedNcclFacts, "NCCL")[task.node]
        devices = {device for node in task.step.group for device in context.planned.get(node, ())}
        argument = {
            "id": task.id, "world": task.step.world, "op": task.step.op.value, "sizes": task.step.sizes,
            "repeats": task.step.repeats, "in_place": also_in_place(task.step), "library": library,
            "counters": True, "planned": sorted(devices), "seconds": round(max(1.0, seconds - GRACE - _TO_START), 1),
        }  # fmt: skip
        return json.dumps(argument, separators=(",", ":"))


def _paths(
    context: ProbeContext, step: Step, fact: type[InterpreterFacts | LoadedNcclFacts], name: str
) -> dict[str, str]:
    known = context.cluster.connected_facts(fact)
    if lacking := [node for node in step.group if node not in known]:
        raise CannotTakePartError(f"the path of {name} on {lacking[0]} is unknown")
    return {node: known[node].path for node in step.group}


def failed_reply(step: str, words: str) -> Reply:
    """Return the reply for a program that did not run, in the shape of a node's own."""
    failure: JsonValue = {"step": step, "words": words, "rank": None, "code": None, "late": False}
    return Reply(Status.OK, value={"rows": [], "failure": failure})


MPIRUN = UnderMpirun()
