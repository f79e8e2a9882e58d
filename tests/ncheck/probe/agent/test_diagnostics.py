"""NCCL's own diagnostics by a stand-in that prints what NCCL 2.32 prints: it travels, and the head understands it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.sources import Sources
from ncheck.fleet.bootstrap import module_text
from ncheck.probe.agent import meeting, step
from ncheck.probe.parse.nccl_diagnostics import Says, parse_diagnostics

FAR = 120.0
VARIABLES = {"NCCL_SOCKET_IFNAME": "=lo", "NCCL_RUN_DIAGNOSTICS": "1"}


@pytest.mark.parametrize(("told", "wrong", "well"), [("", 0, 1), (",diag=bad", 2, 0)])
def test_what_nccl_prints_of_its_own_diagnostics_comes_whole(
    standins: Callable[..., Path], told: str, wrong: int, well: int
) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "NCCL_", "CUDA_"))}
    own = {"LD_LIBRARY_PATH": str(standins()), "STANDIN_NCCL": f"version=23203{told}"}
    sources = Sources({**plain, **own})
    sources.fetch = module_text
    sources.start({"environment": {"python": sys.executable}})
    met = meeting.answer(sources, {"method": "nccl", "count": 1, "variables": VARIABLES}, FAR)
    asked: dict[str, Any] = {
        "method": "diagnostics", "round": 9, "stage": "all", "group": ["here"], "ranks": [2], "sizes": [], "net": "",
        "op": "all-reduce", "repeats": 5, "planned": [], "timeout": FAR,
        "variables": VARIABLES, "id": met["ids"][0], "first": 0, "gpus": [0, 1],
    }  # fmt: skip
    try:
        said = step.answer(sources, asked, FAR)
    finally:
        for child in sources.kept["meetings"]:
            child.end()
            child.process.stdin.close()
            child.process.stdout.close()
    found = parse_diagnostics(said["log"])
    assert (said["failure"], said["rows"], said["version"], found.ranks) == (None, [], "2.32.3", 2)
    said_so = [line.says for line in found.lines]
    assert (said_so.count(Says.WRONG), said_so.count(Says.OK)) == (wrong, well)
