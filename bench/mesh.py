"""What the mesh costs: hosts made of network namespaces, two addresses each, every address tried from every other.

All hosts share this machine's cores, so the wall grows with the links; what must not grow is the CPU of one link, and
the number of rounds in which a node dials the others must not grow faster than the nodes. Both are asserted here.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from fanout import ROOT, write

if TYPE_CHECKING:
    from ncheck.model.evidence import Login
    from ncheck.model.finding import Finding
    from ncheck.model.node import Node

SUBNETS = 2
WITHIN = 0.20  # of the CPU of one link, between the sizes
MARK = ("<!-- mesh: written by bench/mesh.py --write -->", "<!-- end of mesh -->")
# The table of neighbours is one for all namespaces of a kernel: 64 hosts with two addresses each need 8064 places.
TABLE = Path("/proc/sys/net/ipv4/neigh/default")
PLACES = {"gc_thresh3": 65536, "gc_thresh2": 32768, "gc_thresh1": 16384}  # in this order: none may exceed the next
MESH, END = "2 asking its peers", "end"


@dataclass(frozen=True)
class Cost:
    """What one run over so many hosts cost: `cpu` and `wall` in seconds, of the mesh alone."""

    hosts: int
    links: int
    rounds: int
    cpu: float
    wall: float

    @property
    def per_link(self) -> float:
        return self.cpu / self.links


@dataclass
class Watch:
    """Reads the clocks as an act begins, and counts the logins."""

    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    logins: Counter[str] = field(default_factory=Counter)

    def before(self, act: str) -> None:
        self.wall[act], self.cpu[act] = time.monotonic(), _cpu_of_agents()

    def started(self, nodes: tuple[Node, ...]) -> None: ...

    def not_recorded(self, node: str, why: str) -> None: ...

    def stage(self, node: str, stage: str, *, slow: bool = False) -> None:  # noqa: ARG002
        self.logins[node] += stage == "connecting"

    def login_failed(self, node: str, login: Login) -> None:
        sys.exit(f"bench: {node}: {login.detail}")

    def judged(self, findings: tuple[Finding, ...]) -> None: ...
    def finished(self) -> None: ...


def _cpu_of_agents() -> float:
    """Return the CPU seconds of all that was started here: the agents on all hosts, and nothing of the head."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system
    return total


@contextmanager
def large_table() -> Iterator[None]:
    """Make room for all neighbours while the bench runs, and put it back as it was."""
    before = {name: (TABLE / name).read_text() for name in PLACES}
    try:
        for name, places in PLACES.items():
            (TABLE / name).write_text(f"{places}\n")
        yield
    finally:
        for name in reversed(PLACES):
            (TABLE / name).write_text(before[name])


def measure(size: int) -> Cost:
    """Let so many hosts try all their links, once; end the bench where not all of them were whole."""
    from tests.lab.linked import linked
    from tests.lab.wires import bare_hosts

    watch = Watch()
    with bare_hosts(size, SUBNETS) as made:
        found = linked(made, before=watch.before, observer=watch, deadline=300.0)
    if set(watch.logins.values()) != {1}:
        sys.exit(f"bench: more than one connection to a node: {watch.logins}")
    reaches = [reach for host in made.hosts for reach in found.links(host.name).reaches]
    links = sum(reach.reached for reach in reaches)
    if links != SUBNETS * size * (size - 1):
        sys.exit(f"bench: {links} links of {SUBNETS * size * (size - 1)} between {size} hosts were whole")
    rounds = max(reach.tried for reach in reaches)
    return Cost(size, links, rounds, watch.cpu[END] - watch.cpu[MESH], watch.wall[END] - watch.wall[MESH])


def least(costs: list[Cost]) -> Cost:
    """Return the run that cost least: what else goes on on the machine only adds to it."""
    return min(costs, key=lambda cost: cost.cpu)


def judge(costs: list[Cost]) -> None:
    """End the bench with an error where the mesh grows faster than it may."""
    for cost in costs:
        if cost.rounds >= cost.hosts:
            sys.exit(f"bench: {cost.rounds} rounds for {cost.hosts} hosts")
    low, high = (pick(cost.per_link for cost in costs) for pick in (min, max))
    if high > low * (1 + WITHIN):
        sys.exit(f"bench: a link costs {1000 * low:.2f} to {1000 * high:.2f} ms of CPU, by the number of hosts")


def section(costs: list[Cost]) -> str:
    """Return what was measured, in Markdown."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    machine = f"{platform.system()} {platform.release()} {platform.machine()}, {cores} cores for all hosts"
    told = f"{machine} (load {load:.1f} at the end), Python {platform.python_version()}. Hosts are network namespaces."
    rows = [
        f"| {c.hosts} | {c.hosts * SUBNETS} | {c.links} | {c.rounds} | {1000 * c.per_link:.2f} | {c.wall:.2f} |"
        for c in costs
    ]
    spread = max(c.per_link for c in costs) / min(c.per_link for c in costs) - 1
    return "\n".join([
        "## Mesh", "", told + " A link is one way: three small messages and 256 KiB there and back, both ends counted.",
        "", "| hosts | addresses | links | rounds | CPU, ms a link | wall, s |", "|---|---|---|---|---|---|", *rows, "",
        f"CPU of a link differs by {100 * spread:.0f} % between the sizes; one connection a node in all of them.",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="16,32,64", help="how many hosts, comma-separated")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    if os.geteuid():
        print("bench: the mesh was not measured: only root can make hosts of namespaces")
        return
    sys.path.insert(0, str(ROOT))
    with large_table():
        costs = []
        for size in map(int, asked.hosts.split(",")):
            costs.append(least([measure(size) for _ in range(asked.rounds)]))
            print(costs[-1], flush=True)
    told = section(costs)
    print("", told, sep="\n")
    judge(costs)
    if asked.write:
        write(told, ROOT / "docs" / "measured.md", MARK)


if __name__ == "__main__":
    main()
