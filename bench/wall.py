"""What a user waits for: the wall clock of whole commands of the installed ncheck, each beside its yardstick.

Commands are run in turn: ncheck, ssh, clush, and again. The table has the median, the worst run, and the goal where
there is one. Logins to many nodes, and what a full collection costs beside clush, are measured by fanout.py.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from fanout import ROOT, Cost, Job, described, in_turn, program, write

if TYPE_CHECKING:
    from tests.lab.hosts import Lab

MARK = ("<!-- wall clock: written by bench/wall.py --write -->", "<!-- end of wall clock -->")
NCHECK = str(Path(sys.executable).with_name("ncheck"))
PROXY = Path(__file__).with_name("delay_proxy.py")
ROUND_TRIP = 0.1  # seconds
LOGIN, FULL, TEST = "login only", "without the bandwidth test", "with the bandwidth test"
OPTIONS: Mapping[str, tuple[str, ...]] = {LOGIN: ("--select", "NC1"), FULL: ("--probe", "none"), TEST: ()}
READ_JSON = """
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).iterdir():
    with path.open() as file:
        json.load(file)
"""
HEAD = """\
Whole commands, with their start. Hosts are namespaces, all of them on these cores; `ssh` runs `true` on one of them,
`clush` on all. A host at a distance is behind a proxy that delays both ways. Each recorded node has 8 GPUs and names
all others. Logins to 64 nodes and to 1,000 cheap servers (goal: 0.35 of clush's wall), and a full collection of 16, 64
and 128 nodes beside clush with the same agent (goals: 1.0, 0.6 and 0.5 of its CPU) are in the table of the fan-out.
"""


@dataclass(frozen=True)
class Goal:
    """At most `plus`, and so many times the first yardstick more; no run above `worst`, where that is given."""

    plus: float = 0.0
    times: float = 0.0
    worst: float = 0.0

    def verdict(self, values: list[float], yardstick: str, its: float, unit: str) -> str:
        """Say what is to be reached, and whether it is."""
        most = self.plus + self.times * its
        words = f"{most:.2f} {unit}"
        if self.times:
            words += f" ({self.times:g} x {yardstick}{f' + {self.plus:g} {unit}' * bool(self.plus)})"
        if self.worst:
            words += f", worst {self.worst:.2f} {unit}"
        reached = median(values) <= most and max(values) <= (self.worst or max(values))
        return f"{words}: {'' if reached else 'not '}reached"


QUICK_LOGIN = Goal(times=1.15, plus=0.2)  # at any latency


@dataclass(frozen=True)
class Row:
    """One line of the table. `tool` and `beside` name jobs of one turn, `of` is what of their costs is compared."""

    what: str
    tool: str
    beside: tuple[str, ...] = ()
    goal: Goal | None = None
    of: str = "wall"

    def line(self, costs: Mapping[str, list[Cost]]) -> str:
        """Return the line, of what each run cost."""
        values = {tool: [getattr(cost, self.of) for cost in costs[tool]] for tool in (self.tool, *self.beside)}
        unit = "MB" if self.of == "memory" else "s"
        ours, theirs = median(values[self.tool]), {tool: median(values[tool]) for tool in self.beside}
        beside = [f"{tool} {its:.2f} {unit} ({ours / its:.1f} x)" for tool, its in theirs.items()]
        yardstick = next(iter(theirs.items()), ("", 0.0))
        goal = self.goal.verdict(values[self.tool], *yardstick, unit) if self.goal else ""
        worst = max(values[self.tool])
        return f"| {self.what} | {ours:.2f} {unit} | {worst:.2f} {unit} | {', '.join(beside)} | {goal} |"


@dataclass(frozen=True)
class Turn:
    """Commands that are run one after the other, again and again, and what is shown of them."""

    jobs: list[Job]
    rows: list[Row]


def turn(made: Lab, where: str, size: int, goals: Mapping[str, Goal | None], config: tuple[str, ...] = ()) -> Turn:
    """Return ncheck over the first so many hosts of a lab, beside ssh to one of them and clush to all."""
    from tests.lab.command import built, listing, on_head

    names = made.names[:size]
    listing(made, names)
    clush = [program("clush") or "clush", "-S", "-o", " ".join(config), "-w", ",".join(names), "true"]
    commands = {title: [*built(), "nodes.txt", *config, *OPTIONS[title]] for title in goals}
    commands |= {"ssh": ["ssh", *config, names[0], "true"], "clush": clush}
    jobs = [Job(tool, on_head(made, argv)) for tool, argv in commands.items()]
    return Turn(jobs, [Row(f"{where}, {title}", title, ("ssh", "clush"), goal) for title, goal in goals.items()])


def lab() -> Iterator[Turn]:
    """Measure hosts made of namespaces, from their head."""
    from tests.lab import hosts

    with hosts.lab(4) as made:
        yield turn(made, "1 host", 1, {LOGIN: QUICK_LOGIN, FULL: Goal(0.8), TEST: None})
        yield turn(made, "2 hosts", 2, {LOGIN: None, FULL: None, TEST: None})
        yield turn(made, "4 hosts", 4, {LOGIN: None, FULL: Goal(2.0, worst=2.5), TEST: Goal(3.6)})


def far() -> Iterator[Turn]:
    """Measure one such host, a round trip away. (Loopback would flatter: ncheck tries no ssh to its own machine.)"""
    from tests.lab import hosts, layers
    from tests.lab.command import on_head

    with hosts.lab(1) as made:
        (name,) = made.names
        proxy = [sys.executable, str(PROXY), made.addresses[name], "22", str(ROUND_TRIP)]
        with subprocess.Popen(on_head(made, proxy), stdout=subprocess.PIPE, text=True) as running:
            try:
                port = int(next(iter(running.stdout or ())))
                layers.write(made.root / "root/known", f"[127.0.0.1]:{port} {made.host_keys[name].public}")
                config = f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  UserKnownHostsFile ~/known\n"
                layers.write(made.root / "root/far", config)
                where = f"1 host at {1000 * ROUND_TRIP:.0f} ms"
                yield turn(made, where, 1, {LOGIN: QUICK_LOGIN, FULL: Goal(1.6)}, ("-F", "far"))
            finally:
                running.terminate()  # what runs on the head ends with the lab


def replay() -> Iterator[Turn]:
    """Measure what recorded nodes cost, beside reading the same files."""
    from ncheck.fleet.recording import encode

    from tests.recorded.clusters import cluster
    from tests.recorded.make import evidence

    for count in (256, 1024):
        with tempfile.TemporaryDirectory() as place:
            for at, host in enumerate(cluster(*(f"gpu{number:04}" for number in range(1, count + 1)))):
                Path(place, f"{host.name}.json").write_text(encode(evidence(host, at + 1), at, count))
            what, read = f"replay of {count:,} nodes", "the same JSON"
            jobs = [Job("replay", [NCHECK, "replay", place]), Job(read, [sys.executable, "-c", READ_JSON, place])]
            yield Turn(jobs, [
                Row(f"{what}, CPU", "replay", (read,), Goal(times=10), of="cpu"),
                Row(f"{what}, memory", "replay", goal=Goal(200), of="memory"),
            ])  # fmt: skip


def start() -> Iterator[Turn]:
    """Measure the start, and one rank alone."""
    nothing, alone = "python -c pass", "import ncheck; ncheck.preflight()"
    jobs = [
        Job("version", [NCHECK, "--version"]),
        Job(alone, [sys.executable, "-c", alone]),
        Job(nothing, [sys.executable, "-c", "pass"]),
    ]
    yield Turn(jobs, [
        Row("`ncheck --version`, CPU", "version", (nothing,), of="cpu"),
        Row(f"one rank alone, `{alone}`", alone, (nothing,), Goal(0.3)),
    ])  # fmt: skip


PARTS: Mapping[str, Callable[[], Iterator[Turn]]] = {"lab": lab, "far": far, "replay": replay, "start": start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="of each command, after one that does not count")
    parser.add_argument("--only", choices=PARTS, help="measure this part alone")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    if asked.write and asked.only:
        parser.error("--write replaces the whole table: leave out --only")
    sys.path.insert(0, str(ROOT))
    from tests.lab.conftest import why_not

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the hosts are ended, too
    lines: list[str] = []

    def add(*made: str) -> None:
        lines.extend(made)
        print(*made, sep="\n", flush=True)

    add(f"| what | ncheck | worst of {asked.runs} | beside it | goal |", "|---|---|---|---|---|")
    for name in [asked.only] if asked.only else PARTS:
        if name in ("lab", "far") and (why := why_not()):
            add(f"| {name}: not measured, {why} | | | | |")
            continue
        for one in PARTS[name]():
            in_turn(one.jobs, 1)  # reads files that are not yet in memory
            costs = in_turn(one.jobs, asked.runs)
            add(*(row.line(costs) for row in one.rows))
    told = f"{time.strftime('%-d %B %Y')}: {described()}"
    print("", told, sep="\n")
    if asked.write:
        write("\n".join(["## Wall clock", "", told, "", HEAD, *lines]), ROOT / "docs" / "measured.md", MARK)


if __name__ == "__main__":
    main()
