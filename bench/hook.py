"""What the preflight costs a job, and whether it ever stops a healthy one: 64 ranks on 8 hosts, and 1,000 late starts.

Hosts are network namespaces, so all ranks share this machine's cores: what the ranks of a job do side by side, they do
here one after the other. Needs root. With --write the figures go to docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from subprocess import DEVNULL, PIPE, Popen
from typing import TYPE_CHECKING

from fanout import ROOT, write

if TYPE_CHECKING:
    from ncheck.hook.meeting.messages import Outcome

    from tests.lab.wires import BareHost, BareHosts

MARK = ("<!-- hook: written by bench/hook.py --write -->", "<!-- end of hook -->")
HOSTS, PER_HOST = 8, 8
LATEST = 20.0  # seconds after the first rank of a job at which its last one starts
TIMEOUT = 30.0
JOBS_AT_ONCE, MEETINGS_AT_ONCE = 10, 150  # a job takes 2 s of CPU time: more at once would wait for each other

# One rank. It has started, and waits for the word to go on.
RANK = """
import json, resource, sys, time

def kib(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

time.sleep(float(sys.stdin.readline()))
before, start = kib("VmRSS"), time.process_time()
import ncheck
called, stopped = time.monotonic(), ""
try:
    ncheck.preflight()
except ncheck.PreflightError as error:
    stopped = str(error)
done = time.monotonic()
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({
    "called": called, "done": done, "stopped": stopped, "own": kib("VmHWM") - before, "child": used[1].ru_maxrss,
    "cpu": [one.ru_utime + one.ru_stime - began for one, began in zip(used, (start, 0.0))],
}))
"""


@dataclass(frozen=True)
class Job:
    """How a job of real ranks ended. `seconds` from the last rank's call to the end of the last; `apart`: from the
    first call to the last. Of a rank, of the part of ncheck on a node and of the examiner: the most memory, in MB, and
    the CPU time in seconds.
    """

    seconds: float
    apart: float
    rank: tuple[float, float]
    part: tuple[float, float]
    examiner: tuple[float, float]
    stopped: tuple[str, ...]
    said: str


def job(hosts: Sequence[BareHost], per_host: int, late: Callable[[int], float], port: int) -> Job:
    """Run the ranks of one job; `late` tells how many seconds each of them waits before it calls."""
    size, ranks = len(hosts) * per_host, []
    for number in range(size):
        host = hosts[number // per_host]
        own = {
            "RANK": number, "WORLD_SIZE": size, "LOCAL_RANK": number % per_host, "LOCAL_WORLD_SIZE": per_host,
            "MASTER_ADDR": hosts[0].addresses[0], "MASTER_PORT": port,
        }  # fmt: skip
        environ = {**os.environ, **{name: str(value) for name, value in own.items()}}
        ranks.append(Popen(host.argv(sys.executable, "-c", RANK), env=environ, stdin=PIPE, stdout=PIPE, stderr=PIPE))
    with ThreadPoolExecutor(size) as pool:
        waits = [f"{late(number)}\n".encode() for number in range(size)]
        ended = list(pool.map(lambda pair: pair[0].communicate(pair[1], 120), zip(ranks, waits, strict=True)))
    told = [json.loads(out) for out, _ in ended]
    leaders = [one for one in told[1:] if one["cpu"][1]]
    parts = median(one["cpu"][1] for one in leaders)
    return Job(
        max(one["done"] for one in told) - max(one["called"] for one in told),
        max(one["called"] for one in told) - min(one["called"] for one in told),
        (max(one["own"] for one in told) / 1024, median(one["cpu"][0] for one in told)),
        (max(one["child"] for one in leaders) / 1024, parts),
        (told[0]["child"] / 1024, told[0]["cpu"][1] - parts),
        tuple(one["stopped"] for one in told if one["stopped"]),
        "".join(errors.decode() for _, errors in ended),
    )


def crowd(made: BareHosts, rounds: int) -> Iterator[str]:
    """Measure 64 ranks on 8 hosts: all at once, and the last rank when the others have come."""
    last = HOSTS * PER_HOST - 1
    cases: Mapping[str, Callable[[int], float]] = {
        "all at once": lambda _: 0.0, "the last 10 s after the others": lambda number: 10.0 * (number == last),
    }  # fmt: skip
    yield "| 64 ranks on 8 hosts call | s to the verdict on all | a rank: MB, CPU s | a node's part | the examiner |"
    yield "|---|---|---|---|---|"
    for name, late in cases.items():
        jobs = [job(made.hosts, PER_HOST, late, 29500 + turn) for turn in range(rounds)]
        for one in jobs:
            if one.stopped or "not checked" in one.said:
                raise SystemExit(f"a healthy job was stopped or not checked: {one}")
        most, usual = max(one.seconds for one in jobs), median(one.seconds for one in jobs)
        parts = [[getattr(one, part) for one in jobs] for part in ("rank", "part", "examiner")]
        costs = [f"{max(mb for mb, _ in part):.0f}, {median(cpu for _, cpu in part):.2f}" for part in parts]
        yield f"| {name} | {usual:.2f} (at most {most:.2f}) | {' | '.join(costs)} |"


def alone(rounds: int) -> str:
    """Measure a single process, and what the import costs."""

    def seconds(code: str, times: int) -> float:
        took = []
        for _ in range(times):
            begun = time.monotonic()
            subprocess.run([sys.executable, "-c", code], check=True, stdout=DEVNULL, stderr=DEVNULL)
            took.append(time.monotonic() - begun)
        return median(took)

    timed = "import time, ncheck; t = time.monotonic(); ncheck.preflight(); print(time.monotonic() - t)"
    took = [
        float(subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True, text=True).stdout)
        for _ in range(rounds)
    ]
    nothing, ours = seconds("pass", 5 * rounds), seconds("import ncheck", 5 * rounds)
    return (
        f"A process alone: {median(took):.2f} s from the call to the verdict. `import ncheck`: "
        f"{1000 * (ours - nothing):.0f} ms more than `python -c pass` ({1000 * nothing:.0f} ms)."
    )


def late_jobs(made: BareHosts, count: int, at_once: int, random_: random.Random) -> str:
    """Run healthy jobs of two ranks on two hosts, each of which starts at a time of its own."""

    def run(number: int) -> Job:
        waits = [0.0, random_.uniform(0, LATEST)]
        random_.shuffle(waits)
        pair = made.hosts[number % HOSTS], made.hosts[(number + 1) % HOSTS]
        return job(pair, 1, lambda rank: waits[rank], 30000 + number)

    with ThreadPoolExecutor(at_once) as pool:
        jobs = list(pool.map(run, range(count)))
    later = [one for one in jobs if one.apart > LATEST]  # this machine was slow to start them
    jobs = [one for one in jobs if one.apart <= LATEST]
    stopped = [one for one in jobs if one.stopped]
    unchecked = [one for one in jobs if "not checked" in one.said or "could not run" in one.said]
    for one in (*stopped, *unchecked):
        print(one, flush=True)
    return (
        f"{len(jobs)} healthy jobs of two ranks on two hosts, in real time, up to {at_once} side by side, the second "
        f"rank up to {LATEST:.0f} s after the first: {len(stopped)} stopped, {len(unchecked)} not wholly checked; "
        f"{median(one.seconds for one in jobs):.2f} s from the last call to the verdict on both (median). The machine "
        f"started the ranks of {len(later)} others more than {LATEST:.0f} s apart."
    )


def late_meetings(count: int, at_once: int, random_: random.Random) -> str:
    """Let ranks meet as threads of this process. The verdict is always good: only the meeting can fail."""
    sys.path.insert(0, str(ROOT))
    from ncheck.hook.meeting.messages import Told

    from tests.ncheck.hook.gathering import Job as Meeting

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def run(_: int) -> list[Outcome]:
        meeting = Meeting(3, timeout=TIMEOUT)

        def rank(number: int, wait: float) -> Outcome:
            time.sleep(wait)
            return meeting.meet(number)

        waits = [random_.uniform(0, LATEST) for _ in range(3)]
        with ThreadPoolExecutor(3) as ranks:
            return list(ranks.map(rank, range(3), waits))

    with ThreadPoolExecutor(at_once) as pool:
        ended = list(pool.map(run, range(count)))
    bad = [outcomes for outcomes in ended if not all(isinstance(one, Told) for one in outcomes)]
    for outcomes in bad[:10]:
        print(outcomes, flush=True)
    stopped = sum(any(getattr(one, "is_error", False) for one in outcomes) for outcomes in bad)
    return (
        f"{count} meetings of three ranks, threads of one process, in real time, up to {at_once} side by side, each "
        f"rank at a random time within {LATEST:.0f} s, with checks that find nothing: {stopped} stopped, "
        f"{len(bad) - stopped} without a verdict."
    )


def described() -> str:
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    machine = f"{platform.system()} {platform.release()} {platform.machine()}, {cores} cores for all"
    return f"{machine} (load {load:.1f} at the end), Python {platform.python_version()}, {time.strftime('%B %Y')}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=100, help="jobs whose ranks start late, with all checks")
    parser.add_argument("--meetings", type=int, default=900, help="meetings whose ranks start late")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.lab.wires import bare_hosts

    random_ = random.Random(asked.seed)  # noqa: S311  no secret
    lines: list[str] = []

    def add(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    with bare_hosts(HOSTS) as made:
        for line in crowd(made, asked.rounds) if asked.rounds else ():
            add(line)
        add("")
        if asked.rounds:
            add(alone(asked.rounds))
            add("")
        if asked.jobs:
            add(late_jobs(made, asked.jobs, JOBS_AT_ONCE, random_))
            add("")
    if asked.meetings:
        add(late_meetings(asked.meetings, MEETINGS_AT_ONCE, random_))
    told = described()
    print(told)
    if asked.write:
        write("\n".join(["## Preflight", "", told, "", *lines]), ROOT / "docs" / "measured.md", MARK)


if __name__ == "__main__":
    main()
