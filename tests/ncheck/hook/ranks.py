"""Ranks of a job on this host as real processes, each of which calls ncheck.preflight() and says what became of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ncheck.hook.gathering import free_port

PATIENCE = 120.0  # seconds after which a test that waits for an event has failed

# What a rank runs: preflight with the words of the test, and then one line of JSON on what it got.
SCRIPT = """
import json, sys, ncheck
from ncheck.errors import NcheckError
words = json.loads({words!r})
{before}
try:
    report = ncheck.preflight(**words)
    loaded = set(sys.modules)  # looking at the report loads more
    said = {{"findings": sorted(one.code for one in report.findings), "nodes": [node.name for node in report.nodes],
            "exit_code": report.exit_code}}
except NcheckError as error:
    said = {{"raised": type(error).__name__, "message": str(error)}}
{after}
print(json.dumps(said))
"""


@dataclass(frozen=True)
class Ended:
    """What a rank said, and what it printed on standard error."""

    said: dict[str, Any]
    stderr: str
    exit_code: int = 0


def start(
    number: int, environ: dict[str, str], before: str = "", after: str = "", folder: Path | None = None, **words: Any
) -> subprocess.Popen[str]:
    """Start one rank; its script is a file in the folder, if there is one."""
    script = SCRIPT.format(words=json.dumps(words), before=before, after=after)
    program = ["-c", script]
    if folder:
        own = folder / f"train{number}.py"  # a file that is written again could be read empty by a rank that starts
        own.write_text(script)
        program = [str(own)]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("NCHECK")}
    return subprocess.Popen(
        [sys.executable, *program], env={**bare, **environ, "RANK": str(number)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def job(size: int, **variables: str) -> dict[str, str]:
    """Return the variables of a job of one node, without RANK."""
    return {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size), "NCHECK_TOKEN": os.urandom(8).hex(), **variables,
    }  # fmt: skip


def run(size: int, *numbers: int, variables: dict[str, str] | None = None, **words: Any) -> list[Ended]:
    """Run these ranks of a job, all without numbers, and return how each ended."""
    environ = job(size, **(variables or {}))
    return ended([start(number, environ, **words) for number in numbers or range(size)])


def ended(processes: list[subprocess.Popen[str]]) -> list[Ended]:
    found = []
    for process in processes:
        stdout, stderr = process.communicate(timeout=PATIENCE)
        found.append(Ended(json.loads(stdout) if stdout else {}, stderr, process.returncode))
    return found


def plug_in(folder: Path, text: str) -> dict[str, str]:
    """Install a plug-in of this text in a folder, and return the variables by which a rank finds it."""
    (folder / "strange_checks.py").write_text(text)
    info = folder / "strange_checks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-checks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ncheck.checks]\nstrange = strange_checks\n")
    return {"PYTHONPATH": str(folder)}


def wait_for(came: Callable[[], bool]) -> None:
    """Wait for an event that nobody announces: look again and again."""
    until = time.monotonic() + PATIENCE
    while not came():
        assert time.monotonic() < until
        time.sleep(0.05)


def marked(*markers: str) -> list[str]:
    """Return the processes that have these variables in their environment: "NAME=value"."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if set(map(str.encode, markers)) <= set((folder / "environ").read_bytes().split(b"\0")):
                found.append(folder.name)
    return found
