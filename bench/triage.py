"""How long `ncheck triage --logs` takes for a gigabyte of mixed log, and how much memory.

The log is written anew in a temporary folder: lines of NCCL at INFO, steps of a training, progress bars, warnings of
libraries, errors of the ranks that lost another one, and one line that names the cause. Every line differs from the
others in its numbers, some also in their words. The bench ends with an error where the cause is not found, or a limit
is exceeded. With --write the figures go to docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fanout import ROOT, write

MARK = ("<!-- triage: written by bench/triage.py --write -->", "<!-- end of triage -->")
MOST_SECONDS, MOST_MIB = 30.0, 200.0  # for a gigabyte
MIB = 2**20
CAUSE = "node07:4007:5007 [7] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'\n"


@dataclass(frozen=True)
class Figure:
    """One log: what is in it, its size, and what reading it took."""

    log: str
    mib: float
    lines: int
    seconds: float  # wall clock
    cpu: float  # seconds
    peak: float  # MiB of resident memory

    @property
    def row(self) -> str:
        """The row of the table."""
        size = f"{self.mib:.0f} | {self.lines:,}"
        return f"| {self.log} | {size} | {self.cpu:.1f} | {self.seconds:.1f} | {self.peak:.0f} |"


def mixed(chance: random.Random) -> Iterator[str]:
    """Yield what a large job prints, without end."""
    words = [f"{a}{b}" for a in ("data", "layer", "opt", "cache", "tok", "shard") for b in range(40)]
    site = "/opt/lib/python3.11/site-packages"
    while True:
        rank, host = chance.randrange(1024), chance.randrange(128)
        head = f"node{host:03}:{4000 + rank}:{5000 + rank} [{rank % 8}] NCCL"
        peer = f"{rank}[{rank % 8}] -> {rank + 8}[{rank % 8}]"
        yield f"{head} INFO Channel {chance.randrange(16):02}/0 : {peer} [send] via NET/IB/0\n"
        yield f"{head} INFO comm 0x{chance.getrandbits(44):x} rank {rank} nranks 1024 - Init COMPLETE\n"
        yield f"{head} INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.\n"
        step = chance.randrange(10**6)
        for _ in range(6):
            clock = f"03:{chance.randrange(60):02}:{chance.randrange(60):02},{chance.randrange(1000):03}"
            rate = f"lr {chance.random():.2e} {chance.randrange(9999)} tokens/s"
            yield f"[2026-01-02 {clock}] [INFO] step {step}/500000 loss {chance.random():.4f} {rate}\n"
        done = chance.randrange(100)
        yield f"\rtrain: {done:3}%|{'#' * (done // 10):<10}| {done}/100 [00:{done:02}, {chance.random():.2f}it/s]\n"
        first, second, third = chance.choices(words, k=3)
        yield f"[rank{rank}]: {site}/{first}/{second}.py:{step % 997}: UserWarning: {third} was ignored\n"
        yield f"[rank{rank}]: loaded {first}/{chance.getrandbits(40):x}-{second}.bin in {step} ms\n"
        if chance.random() < 0.05:  # noqa: PLR2004  few of them
            yield f"{head} INFO misc/socket.cc:{rank} -> 6\n"
            yield f"{head} WARN socketProgress: Connection closed by remote peer node07<{step}>\n"


def unlike(chance: random.Random) -> Iterator[str]:
    """Yield lines of which no two have the same words: the worst case."""
    while True:
        yield "".join(chance.choices("abcdefghijklmnopqrstuvwxyz    .:=/_", k=100)) + "\n"


def write_log(path: Path, lines: Iterator[str], size: int) -> None:
    """Write a log of about this size with the cause in its middle."""
    part = "".join(next(lines) for _ in range(40_000))
    with path.open("w", encoding="utf-8") as stream:
        written, named = 0, False
        while written < size:
            if not named and written >= size // 2:
                written, named = written + stream.write(CAUSE), True
            written += stream.write(part)
            part = "".join(next(lines) for _ in range(40_000)) if written < size // 4 else part


def measure(name: str, lines: Iterator[str], size: int) -> Figure:
    """Write a log, read it with ncheck in a process of its own, and return what that took."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.log"
        write_log(path, lines, size)
        argv = [sys.executable, "-m", "ncheck", "triage", "--logs", str(path), "-o", "json"]
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, check=False, env=_environ())
        seconds = time.perf_counter() - begun
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        report = json.loads(done.stdout)
        if not report["diagnoses"] or report["diagnoses"][0]["cause"] != "gpu_oom":
            raise SystemExit(f"{name}: the cause was not found: {report['diagnoses'][:1]}")
        return Figure(name, path.stat().st_size / MIB, report["lines"], seconds, cpu, used.ru_maxrss / 1024)


def _environ() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}/doctor:{ROOT}/checks"}


def main() -> int:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of the mixed log")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    figures = [
        measure("mixed, 1,024 ranks", mixed(random.Random(1)), asked.mib * MIB),  # noqa: S311  the same log each time
        measure("no two lines alike", unlike(random.Random(2)), asked.mib * MIB // 8),  # noqa: S311  as above
    ]
    table = "| log | MiB | lines | CPU, s | wall, s | peak memory, MiB |\n|---|--:|--:|--:|--:|--:|\n"
    table += "".join(f"{figure.row}\n" for figure in figures)
    sys.stdout.write(table)
    if asked.write:
        write(f"{_HEAD}{table}", ROOT / "docs/measured.md", MARK)
    large = figures[0]
    return int(large.cpu > MOST_SECONDS * large.mib / 1024 or large.peak > MOST_MIB)


_HEAD = """## Triage of logs

`ncheck triage --logs`, one process, {limits}. "No two lines alike" is the worst case: random words in every line.

""".format(limits=f"at most {MOST_SECONDS:.0f} s of CPU and {MOST_MIB:.0f} MiB for a gigabyte")


if __name__ == "__main__":
    sys.exit(main())
