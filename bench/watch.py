"""What `ncheck triage --watch` costs the node that it watches: the CPU of its agent, and the time of the job's steps.

Two ranks that exchange data over loopback, and compute, are a job on this machine. Its steps are timed with the watch
and without it, in turn. The bench ends with an error where the agent takes more than the limit of a core.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
from fanout import NCHECK, ROOT, described, write

MARK = ("<!-- watch: written by bench/watch.py --write -->", "<!-- end of watch -->")
MOST = 0.002  # of a core
STEP = 0.02  # seconds of computing in a step
START = 5.0  # seconds: the agent has started, and found the job

# One rank computes, and exchanges a megabyte with the other; it prints when each step ended.
RANK = """
import os, socket, sys, time
rank, path = int(os.environ["RANK"]), sys.argv[1]
server = socket.socket(socket.AF_UNIX)
if rank:
    while True:
        try: server.connect(path); break
        except OSError: time.sleep(0.05)
    peer = server
else:
    server.bind(path); server.listen(); peer, _ = server.accept()
data = bytes(1 << 20)
def exchange():
    if rank: os.write(peer.fileno(), b"."); left = len(data)
    else: os.read(peer.fileno(), 1); peer.sendall(data); left = 0
    while left: left -= len(os.read(peer.fileno(), left))
    if rank: os.write(peer.fileno(), b".")
    else: os.read(peer.fileno(), 1)
while True:
    end = time.thread_time() + float(sys.argv[2])
    while time.thread_time() < end: sum(range(1000))
    exchange()
    if not rank: print(time.monotonic(), flush=True)
"""


@dataclass(frozen=True)
class Cost:
    """Seconds of the agent's CPU in so many seconds of a watch, and the median of the job's steps in milliseconds."""

    seconds: float
    cpu: float
    step: float
    step_watched: float

    @property
    def share(self) -> float:
        return self.cpu / self.seconds


@contextmanager
def job() -> Iterator[Path]:
    """Run a job of two ranks; yield the file with the times of its steps."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        ranks = []
        for rank in range(2):
            environ = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}  # fmt: skip
            line = [sys.executable, "-c", RANK, str(Path(folder, "socket")), str(STEP)]
            with log.open("a") as output:
                ranks.append(subprocess.Popen(line, env=environ, stdout=output))
        try:
            yield log
        finally:
            for process in ranks:
                process.kill()
                process.wait()


def steps(log: Path, since: float) -> list[float]:
    """Return how long each step took, in milliseconds."""
    ends = [float(line) for line in log.read_text().split("\n")[:-1] if float(line) >= since]
    return [(after - before) * 1e3 for before, after in pairwise(ends)]


def measure(seconds: float, rounds: int) -> Cost:
    """Watch the job for so long in each round, and let it run as long without."""
    cpu = spent = 0.0
    watched: list[float] = []
    alone: list[float] = []
    with job() as log:
        time.sleep(2)
        for _ in range(rounds):
            began = time.monotonic()
            time.sleep(seconds / 2)
            alone += steps(log, began)
            line = [*NCHECK, "triage", "--watch", "--match", "import os, socket"]
            with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as watch:
                print(next(iter(watch.stdout or ())).strip(), flush=True)
                time.sleep(START)
                agents = psutil.Process(watch.pid).children(recursive=True)
                before, began = sum(map(used, agents)), time.monotonic()
                time.sleep(seconds)
                cpu += sum(map(used, agents)) - before
                spent += time.monotonic() - began
                watched += steps(log, began)
                watch.terminate()
    return Cost(spent, cpu, statistics.median(alone), statistics.median(watched))


def used(process: psutil.Process) -> float:
    """Return the CPU seconds of a process, and of those that it has waited for."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def section(cost: Cost) -> str:
    """Return what was measured, in Markdown."""
    agent = f"{cost.cpu * 1e3:.0f} ms of CPU in {cost.seconds:.0f} s, {cost.share:.3%} of a core (limit {MOST:.1%})"
    step = f"{cost.step:.2f} ms without the watch and {cost.step_watched:.2f} ms with it (medians)"
    return f"""## A watch

`ncheck triage --watch` on a job of two ranks on this machine, a look each 20 seconds, at every tenth a search for ranks
({len(psutil.pids())} processes). Its agent used {agent}.
A step of the job took {step}. No GPU: what NVML costs in a look was
not measured.

{described()}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=210.0, help="of each watch")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    cost = measure(asked.seconds, asked.rounds)
    print(section(cost))
    if cost.share > MOST:
        sys.exit(f"bench: the agent takes {cost.share:.2%} of a core, more than {MOST:.1%}")
    if asked.write:
        write(section(cost), ROOT / "docs" / "measured.md", MARK)


if __name__ == "__main__":
    main()
