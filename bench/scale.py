"""What thousands of nodes cost the head: `ncheck --via srun`, and the replay of a recording of as many nodes.

The run is the real one, from srun's start to the printed report. Slurm is simulated (simulated_slurm.py): there is no
network and no agent, and what the simulation spends does not count. Some nodes have a fault: these must all be named,
and no other one.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fanout import ROOT, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ncheck.model.report import Report

MARK = ("<!-- scale: written by bench/scale.py --write -->", "<!-- end of scale -->")
MOST_MEMORY, MOST_CPU, MOST_ROWS = 1000, 40.0, 60  # MB, seconds to judge and report, rows of a screen
COLUMNS = 120
DEADLINE = 1800.0  # seconds: the head shares its cores with the simulation


@dataclass
class Cost:
    """What one size cost: bytes, seconds (CPU where nothing else is said), MB, and rows of the screen."""

    nodes: int
    sent: int = 0
    came: int = 0
    parts: dict[str, float] = field(default_factory=dict)
    wall: float = 0.0
    memory: float = 0.0
    rows: int = 0
    json: int = 0
    simulation: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def judging(self) -> float:
        """Seconds to judge and report, when all answers have been read."""
        return self.parts.get("verdicts", 0.0) + self.parts["reports"]


class Watch:
    """An observer that reads the clocks when the nodes have answered, and when the checks have judged."""

    def __init__(self) -> None:
        self.clocks = {"began": clocks()}

    def started(self, nodes: object) -> None: ...
    def stage(self, node: str, stage: str, *, slow: bool = False) -> None: ...
    def not_recorded(self, node: str, why: str) -> None: ...
    def login_failed(self, node: str, login: object) -> None: ...

    def judged(self, findings: object) -> None:  # noqa: ARG002
        self.clocks["judged"] = clocks()

    def finished(self) -> None:
        self.clocks["answered"] = clocks()


def clocks() -> tuple[float, float, float]:
    """Return seconds: CPU of this process, of this thread alone, and on the wall."""
    return time.process_time(), time.thread_time(), time.monotonic()


def live(folder: Path, count: int) -> Cost:
    """Examine the nodes of a recording by the simulated Slurm."""
    from ncheck.pipeline import examine
    from ncheck.settings import make_settings

    settings = make_settings({"via": "srun", "deadline": str(DEADLINE)}, {}, folder.parent)
    watch = Watch()
    with slurm(folder, count):
        report = examine(settings, watch)
    cost = shown(report, Cost(count))
    began, answered, judged = (watch.clocks[name] for name in ("began", "answered", "judged"))
    facts = answered[1] - began[1]  # in the main thread, the others send and receive
    cost.parts = {
        "srun": answered[0] - began[0] - facts, "facts": facts, "verdicts": judged[0] - answered[0], **cost.parts,
    }  # fmt: skip
    simulation = json.loads((folder / "srun-cost").read_text())
    cost.sent, cost.came, cost.simulation = simulation["read"], simulation["said"], simulation["cpu"]
    cost.wall = clocks()[2] - began[2]
    if simulation["unknown"]:
        print("not recorded:", *simulation["unknown"], sep="\n  ", flush=True)
    return cost


@contextmanager
def slurm(folder: Path, count: int) -> Iterator[None]:
    """Let Slurm's programs be the simulated ones, inside of an allocation."""
    import many_nodes

    with tempfile.TemporaryDirectory() as programs:
        for name in ("srun", "squeue", "sinfo"):
            path = Path(programs, name)
            path.write_text(f"#!{sys.executable}\nimport sys\nsys.path[:0] = {sys.path!r}\nimport simulated_slurm\n")
            path.chmod(0o755)
        os.environ |= {
            "PATH": f"{programs}:{os.environ['PATH']}", "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": many_nodes.listed(count), "SIMULATED_SLURM": str(folder),
        }  # fmt: skip
        yield


def replayed(folder: Path, count: int) -> Cost:
    """Replay the recording."""
    from ncheck.observer import Silent
    from ncheck.pipeline import replay
    from ncheck.settings import Settings

    began = clocks()
    report = replay(str(folder), Settings(launcher="srun"), Silent())
    parts = {"replay": clocks()[0] - began[0]}
    cost = shown(report, Cost(count))
    cost.parts, cost.wall = {**parts, **cost.parts}, clocks()[2] - began[2]
    return cost


def shown(report: Report, cost: Cost) -> Cost:
    """Print the report into the cost, and note what is wrong with it."""
    from ncheck.report import show

    text, data = io.StringIO(), io.StringIO()
    began = clocks()
    show(report, "console", text, {"COLUMNS": str(COLUMNS)})
    show(report, "json", data, {})
    cost.parts["reports"] = clocks()[0] - began[0]
    cost.rows = sum(max(1, -(-len(line) // COLUMNS)) for line in text.getvalue().splitlines())
    cost.json = len(data.getvalue())
    cost.wrong = wrong(report, cost.nodes)
    if cost.wrong or os.environ.get("SHOW"):
        print(text.getvalue())
    return cost


def wrong(report: Report, count: int) -> list[str]:
    """Return the faults that were not found, and the nodes that are blamed for nothing."""
    import many_nodes

    planted = {(fault.code, many_nodes.name(at)) for at, fault in many_nodes.planted(count).items()}
    faulty = {node for _, node in planted}
    found = {(one.code, node) for one in report.findings for node in one.nodes}
    healthy: dict[str, list[str]] = {}
    for code, node in sorted(found):
        if node not in faulty:
            healthy.setdefault(f"{code} blames healthy nodes", []).append(node)
    for verdict in report.verdicts:
        if verdict.outcome.value == "unknown" and (named := [node for node in verdict.nodes if node not in faulty]):
            healthy[f"{verdict.code} is unknown: {verdict.reason[:100]}"] = named
    missed = [f"{code} was not found on {node}" for code, node in sorted(planted - found)]
    return missed + [f"{words}: {len(nodes)}, such as {nodes[0]}" for words, nodes in healthy.items()]


def one(what: str, folder: Path, count: int) -> Cost:
    """Measure one size in a process of its own, whose memory is that of this size."""
    argv = [sys.executable, __file__, "--only", what, str(folder), "--nodes", str(count)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **_compiled(folder)})
    *lines, last = done.stdout.splitlines() or [""]
    print(*lines, sep="\n", end="\n" * bool(lines), flush=True)
    if done.returncode:
        sys.exit(f"bench: {what} of {count} nodes ended with {done.returncode}: {last}")
    return Cost(**json.loads(last))


def _compiled(folder: Path) -> dict[str, str]:
    """Let Python keep what it compiled, as an installed ncheck has it."""
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder.parent.parent / "compiled")}


def broken(what: str, cost: Cost) -> list[str]:
    """Return the limits that a run breaks."""
    limits = {
        f"{cost.memory:.0f} MB of memory, more than {MOST_MEMORY}": cost.memory > MOST_MEMORY,
        f"{cost.judging:.0f} s of CPU to judge, more than {MOST_CPU:.0f}": cost.judging > MOST_CPU,
        f"{cost.rows} rows, more than a screen of {MOST_ROWS}": cost.rows > MOST_ROWS,
    }
    return [f"{cost.nodes} nodes, {what}: {words}" for words, so in limits.items() if so] + [
        f"{cost.nodes} nodes, {what}: {words}" for words in cost.wrong[:10]
    ]


def section(runs: list[Cost], replays: list[Cost]) -> str:
    """Return what was measured, in Markdown."""
    run_rows = [
        f"| {c.nodes:,} | {c.sent / 1e6:.2f} | {c.came / 1e6:.0f} | {c.parts['srun']:.1f} | {c.parts['facts']:.1f} "
        f"| {c.parts['verdicts']:.1f} | {c.parts['reports']:.1f} | {c.wall:.0f} | {c.memory:.0f} | {c.rows} "
        f"| {c.json / 1e6:.1f} |"
        for c in runs
    ]
    replay_rows = [
        f"| {c.nodes:,} | {sum(c.parts.values()):.1f} | {1000 * sum(c.parts.values()) / c.nodes:.1f} | {c.memory:.0f} |"
        for c in replays
    ]
    return "\n".join([
        "`ncheck --via srun`. Seconds are the head's CPU, but for the wall, in which the simulation shares two cores.",
        "Sizes are in MB. `srun`: to start it, send and receive. `rows`: of the report, in a terminal of 120 columns.",
        "",
        "| nodes | sent | came | srun, s | facts, s | verdicts, s | reports, s | wall, s | memory | rows | JSON |",
        "|---|---|---|---|---|---|---|---|---|---|---|", *run_rows, "",
        "`ncheck replay` of a recording of the same nodes:", "",
        "| nodes | CPU, s | a node, ms | memory, MB |", "|---|---|---|---|", *replay_rows,
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="256,1024,4096", help="how many nodes, comma-separated")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/scale.md")
    parser.add_argument("--only", nargs=2, metavar=("live|replay", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sys.path[:0] = [str(ROOT)]
    sizes = [int(size) for size in asked.nodes.split(",")]
    if asked.only:
        from ncheck.cli.process import collect_garbage_rarely

        collect_garbage_rarely()  # as the command does
        kind, folder = asked.only
        measures: dict[str, Callable[[Path, int], Cost]] = {"live": live, "replay": replayed}
        cost = measures[kind](Path(folder), *sizes)
        cost.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(asdict(cost)))
        return
    import many_nodes

    runs, replays, limits = [], [], []
    with tempfile.TemporaryDirectory() as place:
        for size in sizes:
            folder = Path(place, str(size), "recording")
            many_nodes.write_recording(folder, size)
            for what, costs in (("live", runs), ("replay", replays)):
                costs.append(one(what, folder, size))
                print(what, costs[-1], flush=True)
                limits += broken(what, costs[-1])
    print("", section(runs, replays), sep="\n")
    if limits:
        sys.exit("\n".join(["bench: limits are broken:", *limits]))
    if asked.write:
        write(section(runs, replays), ROOT / "docs" / "scale.md", MARK)


if __name__ == "__main__":
    main()
