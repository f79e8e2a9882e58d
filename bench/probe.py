"""What the probe itself costs: starting 16 ranks of a stand-in NCCL, the test of 8 GPUs that are stand-ins, each alone,
and TCP's throughput beside iperf3's. No GPU.

All ranks share this machine's cores, so their start is the CPU time of all of them, one after the other. With --write
the figures go to docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fanout import ROOT, write

MARK = ("<!-- probe: written by bench/probe.py --write -->", "<!-- end of probe -->")
GPUS = 8
RANKS, MOST = 16, 3.0  # and the seconds that their start may take
STANDINS = ROOT / "tests" / "standins" / "nccl"
NODES, ADDRESSES, TOKEN = ("node01", "node02"), ("127.0.0.21", "127.0.0.22"), "0f3a"
MIB = 2**20
STREAMS, SECONDS = 4, 2


@dataclass(frozen=True)
class Start:
    """One step: seconds until the first collective was over, of the whole step, and of the same ranks' bare start:
    as many interpreters that open the library and do nothing.
    """

    first: float
    whole: float
    bare: float


@contextmanager
def standins() -> Iterator[Path]:
    """Build the stand-ins for libnccl.so.2 and libcuda.so.1."""
    with tempfile.TemporaryDirectory(prefix="ncheck-bench-") as name:
        for source, library in (("cuda.c", "libcuda.so.1"), ("nccl.c", "libnccl.so.2")):
            argv = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-pthread", "-o", f"{name}/{library}"]
            subprocess.run([*argv, str(STANDINS / source), "-ldl"], check=True)
        yield Path(name)


def started(libraries: Path) -> Start:
    """Run a step of 16 ranks as a node's agent does."""
    from ncheck.agent.sources import Sources
    from ncheck.fleet.bootstrap import module_text
    from ncheck.probe.agent import meeting, step

    environment = {
        **os.environ, "LD_LIBRARY_PATH": str(libraries),
        "STANDIN_CUDA": f"devices={RANKS}", "STANDIN_NCCL": "version=22105",
    }  # fmt: skip
    sources = Sources(environment)
    sources.fetch = module_text  # type: ignore[assignment]
    sources.start({"environment": {"python": sys.executable}})
    variables = {"NCCL_SOCKET_IFNAME": "=lo"}
    met = meeting.answer(sources, {"method": "nccl", "count": 1, "variables": variables}, 60.0)
    asked = {
        "method": "nccl", "round": 1, "stage": "inside", "group": ["here"], "ranks": [RANKS], "sizes": [8, MIB],
        "launcher": "agents", "net": "", "op": "all-reduce", "expect": None, "node": "here", "planned": ["lo"],
        "timeout": 60.0, "repeats": 5, "variables": variables, "id": met["ids"][0], "first": 0,
        "gpus": list(range(RANKS)),
    }  # fmt: skip
    began = time.monotonic()
    said = step.answer(sources, asked, 60.0)
    whole = time.monotonic() - began
    if said["failure"]:
        sys.exit(f"bench: the ranks failed: {said['failure']}")
    return Start(said["start"], whole, _bare(environment))


def _bare(environment: Mapping[str, str]) -> float:
    """Return the seconds that so many interpreters take that only open the library."""
    argv = [sys.executable, "-B", "-S", "-c", "import ctypes; ctypes.CDLL('libnccl.so.2')"]
    began = time.monotonic()
    children = [subprocess.Popen(argv, env=environment) for _ in range(RANKS)]
    for child in children:
        child.wait()
    return time.monotonic() - began


def alone(libraries: Path) -> tuple[float, float]:
    """Return the CPU seconds and the seconds of `--gpu-test quick` on a node: its agent, and the children that it waits
    for.
    """
    from ncheck.probe.gpu_test import LIMIT, SECONDS

    from tests.ncheck.probe.agent.test_gpu_test import AGENT, UUID

    gpus = [{"uuid": f"{UUID}{index}", "pci": f"0000:{index:02x}:00.0"} for index in range(GPUS)]
    task = {"gpus": gpus, "seconds": SECONDS["quick"], "timeout": LIMIT["quick"] * 6}  # all share the cores
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "STANDIN_CUDA": f"devices={GPUS}"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    argv = [sys.executable, "-c", AGENT, json.dumps(task)]
    said = json.loads(subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout)
    after, whole = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    if not all(gpu["done"] for gpu in said["gpus"]) or len(said["pairs"]) != GPUS * (GPUS - 1):
        sys.exit(f"bench: the test of the GPUs did not come to its end: {said}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, whole


def by_tcp() -> float:
    """Return GB/s each way between two agents over loopback, the slower direction."""
    from ncheck.model.evidence import Answer

    from tests.ncheck.agent.agents import Agent, at_once

    agents = [Agent(), Agent()]
    ports = []
    for agent, node, address in zip(agents, NODES, ADDRESSES, strict=True):
        listen: Any = {"node": node, "token": TOKEN, "addresses": [address], "ports": []}
        said: Any = agent.ask(Answer("listen", 60.0, listen)).value
        ports.append(said["ports"][address])
    asked = [
        {
            "round": 1, "method": "tcp", "group": list(NODES), "node": NODES[rank], "planned": [], "timeout": 60.0,
            "sizes": [MIB, 8 * MIB, 64 * MIB, 512 * MIB], "source": ADDRESSES[rank], "address": ADDRESSES[1 - rank],
            "port": ports[1 - rank], "token": TOKEN, "seconds": float(SECONDS),
        }
        for rank in (0, 1)
    ]  # fmt: skip
    replies: Any = at_once(agents, [Answer("step", 60.0, one, round=1) for one in asked])  # type: ignore[arg-type]
    for agent in agents:
        agent.bye()
    if replies[0].value["failure"]:
        sys.exit(f"bench: TCP failed: {replies[0].value['failure']}")
    row = max(replies[0].value["rows"], key=lambda row: row["size"])
    return float(row["size"] / row["seconds"] / 1e9)


def by_iperf() -> float:
    """Return what iperf3 reaches with as many streams each way at once: the mean of both, for one starves the other."""
    server = subprocess.Popen(
        ["iperf3", "-s", "-1", "-B", ADDRESSES[1], "-p", "5299", "--forceflush"], stdout=subprocess.PIPE, text=True
    )
    while server.stdout and "listening" not in server.stdout.readline():
        pass
    argv = ["iperf3", "-c", ADDRESSES[1], "-p", "5299", "-P", str(STREAMS), "--bidir", "-t", str(SECONDS), "-J"]
    told = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)["end"]
    server.communicate()
    rates = [told[name]["bits_per_second"] for name in ("sum_received", "sum_received_bidir_reverse")]
    return float(sum(rates) / len(rates) / 8e9)


def section(starts: list[Start], tests: list[tuple[float, float]], rates: list[tuple[float, float]]) -> str:
    """Return what was measured, in Markdown."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    first, whole, bare = (median(getattr(one, name) for one in starts) for name in ("first", "whole", "bare"))
    system = f"{platform.system()} {platform.release()} {platform.machine()}, {cores} cores for all"
    text = (
        f"## Probe\n\n{system} (load {load:.1f} at the end), Python {platform.python_version()}. No GPU: NCCL and the "
        f"driver are stand-ins.\n\n{RANKS} ranks on one node: {first:.2f} s from the question to the end of the first "
        f"all-reduce (at most {MOST:.0f} s); {whole:.2f} s for the whole step, 8 B and 1 MiB. "
        f"{RANKS} interpreters that only open the library: {bare:.2f} s. Medians of {len(starts)}."
    )
    cpu, took = (median(column) for column in zip(*tests, strict=True))
    text += (
        f"\n\n`--gpu-test quick` on one node, {GPUS} GPUs: {cpu:.1f} s of CPU time for the agent and its children, "
        f"{took:.1f} s in all. Medians of {len(tests)}."
    )
    if rates:
        ours, theirs = (median(column) for column in zip(*rates, strict=True))
        ratio = median(own / other for own, other in rates)
        text += (
            f"\n\nTCP over loopback, {STREAMS} streams each way at once: {ours:.2f} GB/s in the slower direction; "
            f"{_iperf()} with -P {STREAMS} --bidir: {theirs:.2f} GB/s, the mean of both; {ratio:.2f} x. "
            f"Medians of {len(rates)}, run in turn."
        )
    return text


def _iperf() -> str:
    said = subprocess.run(["iperf3", "--version"], check=True, capture_output=True, text=True).stdout
    return " ".join(said.split()[:2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    with standins() as libraries:
        starts = [started(libraries) for _ in range(asked.rounds)]
        tests = [alone(libraries) for _ in range(asked.rounds)]
    rates = [(by_tcp(), by_iperf()) for _ in range(asked.rounds)] if shutil.which("iperf3") else []
    text = section(starts, tests, rates)
    print(text)
    if median(one.first for one in starts) > MOST:
        sys.exit(f"bench: {RANKS} ranks take longer than {MOST:.0f} s to start")
    if asked.write:
        write(text, ROOT / "docs" / "measured.md", MARK)


if __name__ == "__main__":
    main()
