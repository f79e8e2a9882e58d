"""How fast ncheck reaches many nodes, side by side in one run with what people use else. `make bench` runs it.

Trust the ratios: all tools are run in turn against the same servers on the same machine, and the median is shown. CPU
is the client's alone, start-up included, and what it started and waited for.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import loopback

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 64
NCHECK = [sys.executable, "-m", "ncheck"]
MARK = ("<!-- fan-out: written by bench/fanout.py --write -->", "<!-- end of fan-out -->")


@dataclass(frozen=True)
class Job:
    """One tool's command for one size. `fine` are the exit statuses of a run that reached every node."""

    tool: str
    argv: Sequence[str]
    stdin: bytes = b""
    fine: tuple[int, ...] = (0,)
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cost:
    """What one run cost: seconds of wall and CPU, and the largest process in MB."""

    wall: float
    cpu: float
    memory: float


def program(name: str) -> str | None:
    """Return where a program is: beside this interpreter, as the clush of a virtual environment is, or on PATH."""
    return shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def clush(nodes: Sequence[str], config: Path, command: str = "true", stdin: bytes = b"") -> Job:
    """Return clush with a command for these nodes."""
    argv = [program("clush") or "clush", "-S", "-f", str(WIDTH), "-o", f"-F {config}", "-w", ",".join(nodes), command]
    return Job("clush -f 64", argv, stdin)


def measure(job: Job) -> Cost:
    """Run it once; end the bench where it failed: a tool that reaches nobody is fast."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as told:
        asked.write(job.stdin)
        asked.seek(0)
        began = time.monotonic()
        process = subprocess.Popen(
            job.argv, stdin=asked, stdout=told, stderr=subprocess.STDOUT, env={**os.environ, **job.environ}
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in job.fine:
            told.seek(0)
            sys.exit(
                f"bench: {job.tool} ended with {process.returncode}: {told.read()[-500:].decode(errors='replace')}"
            )
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def logins(cluster: loopback.Cluster, count: int) -> list[Job]:
    """Return who connects, logs in and runs `true`; ncheck verifies who answered, and judges."""
    names, config = cluster.first(count), str(cluster.config)
    listing = str(cluster.listing(count))
    jobs = [
        ncheck(cluster, count, "--select", "NC1"),
        clush(names, cluster.config),
        Job("xargs -P 64 ssh", ["xargs", "-P", str(WIDTH), "-I{}", "ssh", "-n", "-F", config, "{}", "true"],
            "\n".join(names).encode()),
        Job("pdsh -f 64", ["pdsh", "-S", "-R", "ssh", "-f", str(WIDTH), "-w", ",".join(names), "true"],
            environ={"PDSH_SSH_ARGS_APPEND": f"-F {config}"}),
        Job("parallel-ssh -p 64", ["parallel-ssh", "-p", str(WIDTH), "-x", f"-F {config}", "-h", listing, "true"]),
    ]  # fmt: skip
    return [job for job in jobs if shutil.which(job.argv[0])]


def ncheck(cluster: loopback.Cluster, count: int, *more: str) -> Job:
    """Return ncheck's own run: exit 1 is for what it rightly finds, one machine under many names."""
    asked = ["check", str(cluster.listing(count)), "-F", str(cluster.config), "--mesh", "none", "-o", "json"]
    return Job("ncheck", [*NCHECK, *asked, *more], fine=(0, 1), environ=environ_of(cluster.config.parent))


def environ_of(folder: Path) -> dict[str, str]:
    """Return an environment in which Python finds this checkout and keeps what it compiled, as an installed one."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def collections(cluster: loopback.Cluster, count: int) -> list[Job]:
    """Return full collection, and the same agent with the same questions through clush."""
    import one_way

    theirs = clush(cluster.first(count), cluster.config, one_way.command(), one_way.input_of_all())
    return [ncheck(cluster, count), theirs]


def one_node(cluster: loopback.Cluster) -> list[Job]:
    """Return one node against `ssh node true`."""
    ssh = ["ssh", "-n", "-F", str(cluster.config), cluster.names[0], "true"]
    return [ncheck(cluster, 1, "--select", "NC1"), Job("ssh node true", ssh)]


def in_turn(jobs: Sequence[Job], rounds: int) -> dict[str, list[Cost]]:
    """Run one after the other, all of them several times; return each tool's costs."""
    seen: dict[str, list[Cost]] = {job.tool: [] for job in jobs}
    for _ in range(rounds):
        for job in jobs:
            seen[job.tool].append(measure(job))
    return seen


def compared(jobs: list[Job], rounds: int) -> dict[str, Cost]:
    """Run all in turn, several times; return each tool's medians."""
    return {tool: _median(costs) for tool, costs in in_turn(jobs, rounds).items()}


def _median(costs: list[Cost]) -> Cost:
    middle = statistics.median
    return Cost(middle(c.wall for c in costs), middle(c.cpu for c in costs), middle(c.memory for c in costs))


def rows(title: str, count: int, costs: dict[str, Cost]) -> list[str]:
    """Return a table's rows: ncheck's ratios stand beside what each is compared with."""
    ours = costs["ncheck"]
    made = []
    for tool, cost in costs.items():
        ratio = "1 | 1" if tool == "ncheck" else f"{ours.cpu / cost.cpu:.2f} | {ours.wall / cost.wall:.2f}"
        made.append(f"| {title} | {count} | {tool} | {1000 * cost.cpu / count:.1f} | {cost.wall:.2f} | {ratio} |")
    return made


_HEAD = (
    "| what | nodes | tool | client CPU, ms a node | wall, s | ncheck's CPU / its | ncheck's wall / its |",
    "|---|---|---|---|---|---|---|",
)


def bench(sizes: Sequence[int], rounds: int, many: int, say: Callable[[str], None]) -> list[str]:
    """Run everything; return the whole section in Markdown."""
    table = [*_HEAD]
    memory: dict[int, float] = {}

    def add(title: str, count: int, jobs: list[Job], times: int) -> None:
        costs = compared(jobs, times)
        if title == "log in":
            memory[count] = costs["ncheck"].memory
        for row in rows(title, count, costs):
            table.append(row)
            say(row)

    lines: list[str] = []
    with loopback.folder() as folder:
        with loopback.real(folder) as cluster:
            measure(ncheck(cluster, 1))  # compiles
            lines.append(one_login(cluster, rounds))
            add("one node", 1, one_node(cluster), rounds)
            for count in sizes:
                add("log in", count, logins(cluster, count), rounds)
            lines.append(_growth(memory))
            for count in sizes[:3]:
                add("full collection", count, collections(cluster, count), max(1, rounds // 2))
        if many and (lacking := loopback.why_not_cheap()):
            lines.append(f"Logins to {many} cheap servers were not measured. They need {lacking}")
        elif many:
            with loopback.cheap(folder) as cluster:
                measure(ncheck(cluster, 1, "--select", "NC1"))
                add("log in, cheap servers", many, logins(cluster, many)[:3], max(1, rounds // 2))
        lines.append(start_up(rounds, environ_of(folder)))
    return [*table, "", *lines]


def _growth(memory: dict[int, float]) -> str:
    if len(memory) < 2:  # noqa: PLR2004  a slope needs two points
        return ""
    least, most = min(memory), max(memory)
    slope = (memory[most] - memory[least]) / (most - least)
    return f"Memory of ncheck: {memory[least]:.0f} MB with {least} nodes, {slope:.3f} MB for each further node."


def start_up(rounds: int, environ: Mapping[str, str]) -> str:
    """Compare `ncheck --version` with the same interpreter doing nothing."""
    empty = Job("pass", [sys.executable, "-c", "pass"], environ=environ)
    jobs = [Job("ncheck", [*NCHECK, "--version"], environ=environ), empty]
    costs = compared(jobs, 3 * rounds)
    ours, nothing = costs["ncheck"].wall, costs["pass"].wall
    return (
        f"`ncheck --version`: {1000 * ours:.0f} ms, {ours / nothing:.1f} x `python -c pass` ({1000 * nothing:.0f} ms)."
    )


def one_login(cluster: loopback.Cluster, rounds: int) -> str:
    """Compare one node, by ncheck's own clock from its start to the verdict, with all of `ssh node true`."""
    ours, theirs = one_node(cluster)
    took: list[float] = []
    for _ in range(rounds):
        done = subprocess.run(ours.argv, capture_output=True, check=False, env={**os.environ, **ours.environ})
        took.append(json.loads(done.stdout)["seconds"])
    seconds, ssh = statistics.median(took), compared([theirs], rounds)[theirs.tool].wall
    verdict = f"One node, by ncheck's own clock from its start to the verdict: {seconds:.2f} s"
    return f"{verdict}, {seconds / ssh:.1f} x `ssh node true` ({ssh:.2f} s)."


def described() -> str:
    """Say what was measured on, so that nobody takes the seconds for their own."""
    tools = {"ssh": "-V", "clush": "--version", "pdsh": "-V"}
    versions = []
    for tool, flag in tools.items():
        if path := program(tool):
            told = subprocess.run([path, flag], capture_output=True, text=True, check=False)
            versions.append((told.stdout + told.stderr).splitlines()[0])
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    machine = f"{platform.system()} {platform.machine()}, {cores} cores shared with the servers"
    python = f"Python {platform.python_version()}"
    return f"{machine} (load {load:.1f} at the end), {python}; {'; '.join(versions)}. Medians; tools run in turn."


def write(section: str, path: Path, mark: tuple[str, str] = MARK) -> None:
    """Put the section into docs/measured.md, in the place of the last one."""
    text = path.read_text() if path.exists() else "# Measured\n"
    before, _, rest = text.partition(mark[0])
    after = rest.partition(mark[1])[2]
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{before.rstrip()}\n\n{mark[0]}\n{section.strip()}\n{mark[1]}\n{after.lstrip()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="16,64,128,256", help="sizes for the logins, comma-separated")
    parser.add_argument("--many", type=int, default=loopback.MOST, help="how many cheap servers; 0 for none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are ended, too
    sizes = [int(size) for size in asked.nodes.split(",")]
    print(shlex.join(sys.argv), flush=True)
    table = bench(sizes, asked.rounds, asked.many, lambda row: print(row, flush=True))
    told = described()
    print("\n".join(["", *table[table.index("") :], told]))
    if asked.write:
        write("\n".join(["## Fan-out", "", told, "", *table]), ROOT / "docs" / "measured.md")


if __name__ == "__main__":
    main()
