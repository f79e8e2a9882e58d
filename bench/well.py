"""Healthy jobs, each watched by `ncheck triage --watch` beside burners that take the CPU: none may raise an alarm.

Of each job rank 0 works for a minute at what the name says, and the other ranks wait for it, again and again. Some are
watched at once. The bench ends with an error where a watch named one of them. With --write the figures go to
docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from fanout import NCHECK, ROOT, described, write

MARK = ("<!-- healthy jobs: written by bench/well.py --write -->", "<!-- end of healthy jobs -->")
RANKS, STALLED = 3, "15s"

# What rank 0 does until `over()`. The others wait in a call that has the name of a collective of mpi4py's.
WORK = {
    "a pool of processes tokenizes": """
from multiprocessing import get_context
def tokenize(number):
    return [hash(str(number * at)) % 32000 for at in range(20000)]
while not over():
    with get_context("fork").Pool(2) as pool:
        pool.map(tokenize, range(60))
""",
    "a program beneath it downloads": """
serve(100_000)
fetch = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
subprocess.run([sys.executable, "-c", fetch + "\\nwhile s.recv(65536): pass", str(PORT)])
""",
    "it downloads itself": """
serve(100_000)
peer = socket.create_connection(("127.0.0.1", PORT))
while peer.recv(65536): pass
""",
    "it evaluates in Python": """
def score(sample):
    return sum(value * value for value in sample)
while not over():
    total = 0
    for sample in range(200):
        total += score(range(sample))
""",
    "a table grows": """
while not over():
    rows = [{"text": str(number), "length": number % 7} for number in range(2_000_000)]
""",
    "a table grows without a call": """
while not over():
    rows = [{"number": number, "length": number % 7} for number in range(3_000_000)]
""",
    "one call computes for long": """
while not over(): sum(range(300_000_000))
""",
    "a compiler works beneath it": """
compiler = f"import time; until = time.time() + {SECONDS}\\nwhile time.time() < until: hash('x')"
subprocess.run([sys.executable, "-c", compiler])
""",
    "a shell starts short programs": """
subprocess.run(["sh", "-c", f"end=$(($(date +%s)+{int(SECONDS)})); while [ $(date +%s) -lt $end ]; do true; done"])
""",
    "it writes a checkpoint": """
with open(FOLDER + "/model.pt", "wb", 0) as file:
    while not over():
        file.write(bytes(1 << 20))
        time.sleep(0.2)
""",
    "it reads a data set": """
with open(FOLDER + "/data", "wb") as file: file.write(os.urandom(1 << 24))
while not over():
    with open(FOLDER + "/data", "rb") as file:
        while block := file.read(1 << 16): hash(block)
""",
    "the garbage collector works": """
import gc
kept = [[number] for number in range(1_000_000)]
while not over(): gc.collect()
""",
    "a regular expression cleans lines": """
import re
MARKUP = re.compile(r"<[^>]*>|&[a-z]+;")
lines = ["<p>some text &amp; more</p>" * 50] * 1000
while not over():
    for line in lines: MARKUP.sub("", line)
""",
    "it sorts": """
import random
while not over(): sorted(random.random() for _ in range(500_000))
""",
    "threads compress": """
import zlib
from concurrent.futures import ThreadPoolExecutor
data = os.urandom(1 << 20) * 8
with ThreadPoolExecutor(2) as pool:
    while not over(): list(pool.map(zlib.compress, [data] * 2))
""",
    "it packs and unpacks": """
table = {str(number): list(range(20)) for number in range(20_000)}
while not over(): json.loads(json.dumps(table))
""",
    "it builds an index": """
import sqlite3
base = sqlite3.connect(":memory:")
base.execute("create table t (a, b)")
while not over():
    base.executemany("insert into t values (?, ?)", ((at, at * 7 % 1000) for at in range(100_000)))
    base.execute("create index if not exists i on t (b)"); base.execute("delete from t")
""",
    "it compiles its modules": """
import compileall
while not over(): compileall.compile_dir(os.path.dirname(json.__file__), force=True, quiet=2, ddir=FOLDER, legacy=False)
""",
    "each step of one rank takes two seconds": """
while not over():
    until = time.time() + 2
    while time.time() < until: hash("x")
    release(); wait_for_all = None
""",
    "all ranks compute alone": "ALONE",
    "it reads before it opens the rendezvous": """
store.close()
while not over():
    with open(sys.executable, "rb") as file:
        while block := file.read(1 << 16): hash(block)
""",
}
HANGS = "it sleeps"  # the only one that is not well: without its alarm the bench has shown nothing
WORK[HANGS] = "time.sleep(600)"

# The others wait for a byte of rank 0 at each step: os.read under the name of a collective.
RANK = '''
import json, os, socket, subprocess, sys, threading, time
from types import SimpleNamespace
rank, FOLDER, SECONDS = int(os.environ["RANK"]), sys.argv[1], float(sys.argv[2])
comm = SimpleNamespace(allreduce=os.read)
paths = [f"{FOLDER}/pipe{at}" for at in range(int(os.environ["WORLD_SIZE"]))]
for path in paths:
    try: os.mkfifo(path)
    except FileExistsError: pass
pipes = [os.open(path, os.O_RDWR) for path in paths]
until = time.time() + SECONDS
PORT = 0
def over(): return time.time() > until
def release():
    for pipe in pipes[1:]: os.write(pipe, b".")
def serve(rate):
    """Let a server beside the job send so many bytes each second, until the work is over."""
    global PORT
    code = ("import socket, sys, time; s = socket.create_server(('127.0.0.1', 0));"
            "print(s.getsockname()[1], flush=True); p, _ = s.accept(); end = time.time() + float(sys.argv[1])\\n"
            "while time.time() < end: p.sendall(bytes(int(sys.argv[2]) // 5)); time.sleep(0.2)")
    environ = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "MASTER_ADDR")}
    line = [sys.executable, "-c", code, str(SECONDS), str(rate)]
    PORT = int(subprocess.Popen(line, stdout=subprocess.PIPE, env=environ, start_new_session=True).stdout.readline())
store = socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"]))) if rank == 0 else None
if rank and sys.argv[3] != "alone":
    while True:
        comm.allreduce(pipes[rank], 1)
if sys.argv[3] == "alone":
    while not over(): hash("x")
else:
    exec(compile(open(sys.argv[4]).read(), sys.argv[4], "exec"))
until = time.time() + 3600
while True:
    release()
    time.sleep(0.05)
'''


_PATIENCE = 240.0  # seconds for the two examinations of a job that hangs, on a crowded machine


@dataclass(frozen=True)
class Watched:
    """One job: what its watch said of it, the causes that it named."""

    name: str
    alarms: tuple[str, ...]
    examined: bool


@contextmanager
def burners(count: int) -> Iterator[None]:
    """Let so many programs compute for nothing."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: hash('x')"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


@contextmanager
def job(name: str, port: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Run one job and a watch of it; yield the watch."""
    with tempfile.TemporaryDirectory(prefix="well") as folder:
        Path(folder, "work.py").write_text(WORK[name])
        Path(folder, "rank.py").write_text(RANK)
        kind = "alone" if WORK[name] == "ALONE" else "waits"
        line = [sys.executable, f"{folder}/rank.py", folder, str(seconds), kind, f"{folder}/work.py"]
        ranks = []
        for rank in range(RANKS):
            environ = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": str(rank),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}  # fmt: skip
            with Path(folder, "log").open("a") as log:
                ranks.append(subprocess.Popen(line, env=environ, stdout=log, stderr=log, start_new_session=True))
        watch = [*NCHECK, "triage", "--watch", "--stalled", STALLED, "--match", f"{folder}/rank.py", "-o", "json"]
        with Path(folder, "watch").open("w+") as said:
            started = subprocess.Popen(
                [*watch, "--save", f"{folder}/alarm.zip"], cwd=ROOT, stdout=said, stderr=subprocess.STDOUT, text=True
            )
            try:
                yield started
            finally:
                for one in (it for it in (*ranks, started) if it.poll() is None):
                    for each in (*psutil.Process(one.pid).children(recursive=True), psutil.Process(one.pid)):
                        if each.is_running():
                            each.kill()
                    one.wait()
                said.seek(0)
                started.said = said.read()  # type: ignore[attr-defined]


def watched(names: Sequence[str], port: int, seconds: float) -> list[Watched]:
    """Watch these jobs at once."""
    with ExitStack() as stack:
        watches = [stack.enter_context(job(name, port + at, seconds)) for at, name in enumerate(names)]
        time.sleep(seconds + 10)
        for name, watch in zip(names, watches, strict=True):
            with suppress(subprocess.TimeoutExpired):  # its alarm ends a watch
                watch.wait(_PATIENCE if name == HANGS else 0)
    return [judged(name, watch.said) for name, watch in zip(names, watches, strict=True)]  # type: ignore[attr-defined]


def judged(name: str, said: str) -> Watched:
    """Return what a watch said of a job."""
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    alarms = [one for one in events if one["event"] != "note"]
    causes = tuple(str(one["report"]["diagnoses"][:1]) for one in alarms)
    return Watched(name, causes, any("is watched" in one.get("text", "") for one in events))


def section(found: Sequence[Watched], burning: int, load: float) -> str:
    """Return what was measured, in Markdown."""
    wrong = [one.name for one in found if one.alarms]
    alarms = f"{len(wrong)} alarms{': ' if wrong else ''}{', '.join(wrong)}"
    return f"""## Healthy jobs under a watch

{len(found)} jobs of {RANKS} ranks, of which rank 0 works for a minute while the others wait, watched with
`--stalled {STALLED}` beside {burning} burners (load {load:.0f}): {alarms}.
Among them a job that hangs is watched, which has to raise one.

{described()}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=75.0, help="of the work in each job")
    parser.add_argument("--at-once", type=int, default=5)
    parser.add_argument("--burners", type=int, default=4)
    parser.add_argument("--only", nargs="+", help="words of the names of jobs")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    names = [name for name in WORK if not asked.only or any(word in name for word in asked.only)]
    found: list[Watched] = []
    with burners(asked.burners):
        for at in range(0, len(names), asked.at_once):
            found += watched(names[at : at + asked.at_once], 29600 + at, asked.seconds)
            for one in found[at:]:
                word = "alarm" if one.alarms else "well " if one.examined else "unseen"
                print(f"{word} {one.name} {' '.join(one.alarms)[:600]}", flush=True)
        load = os.getloadavg()[0]
    well = [one for one in found if one.name != HANGS]
    print(section(well, asked.burners, load))
    if asked.write:
        write(section(well, asked.burners, load), ROOT / "docs" / "measured.md", MARK)
    if any(one.alarms or not one.examined for one in well):
        sys.exit("bench: a healthy job was accused, or not watched")
    if any(not one.alarms for one in found if one.name == HANGS):
        sys.exit("bench: the job that hangs raised no alarm")


if __name__ == "__main__":
    main()
