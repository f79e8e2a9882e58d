"""Ranks of a node over its loopback, driven by stand-ins for NCCL and the driver; what the tests ask of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ncheck.agent.sources import Sources
from ncheck.fleet.bootstrap import module_text
from ncheck.probe.agent import meeting, step

Told = dict[str, Any]
Standins = Callable[..., Path]
FAR = 120.0  # seconds: an end for what hangs, far beyond what a busy machine needs
VARIABLES = {"NCCL_SOCKET_IFNAME": "=lo"}
SIZES = [8, 1 << 20]
ALL_RIGHT = [(8, False, 0), (8, True, 0), (1 << 20, False, 0), (1 << 20, True, 0)]


class DrivenRanks:
    """Runs a step of this node's ranks, and beside it one of a second node where that is asked for."""

    def __init__(self, standins: Standins) -> None:
        self.standins, self.mark = standins, os.urandom(8).hex()
        self.opened: list[Sources] = []

    def __call__(  # noqa: PLR0913  what a test says of a node
        self,
        gpus: list[int],
        *,
        nccl: str = "",
        cuda: str = "",
        python: str = sys.executable,
        flags: tuple[str, ...] = (),
        job: dict[str, str] | None = None,
        beside: str | None = None,
        **more: object,
    ) -> Told:
        """Return what this node tells; under "beside" what the second one does, whose stand-in for NCCL is so told."""
        sources = self.node(python, flags, {"STANDIN_NCCL": nccl, "STANDIN_CUDA": cuda, **(job or {})})
        met = meeting.answer(sources, {"method": "nccl", "count": 1, "variables": VARIABLES}, FAR)
        ranks = [len(gpus)] * (1 if beside is None else 2)
        parts = [(sources, _arguments(gpus, met["ids"][0], {"ranks": ranks, **more}))]
        if beside is not None:
            second = self.node(python, flags, {"STANDIN_NCCL": beside, "STANDIN_CUDA": cuda, "NCCL_HOSTID": "second"})
            parts.append((second, {**parts[0][1], "first": len(gpus)}))
        with ThreadPoolExecutor() as pool:
            first, *others = pool.map(lambda part: step.answer(part[0], part[1], FAR), parts)
        return {**first, "beside": others[0]} if others else dict(first)

    def node(self, python: str, flags: tuple[str, ...], job: dict[str, str]) -> Sources:
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "NCCL_", "CUDA_"))}
        own = {"LD_LIBRARY_PATH": str(self.standins(*flags)), "STANDIN_MARK": self.mark}
        sources = Sources({**plain, **own, **job})
        sources.fetch = module_text
        sources.start({"environment": {"python": python}})
        if "-DRCCL" in flags:  # which a node has whose torch is for ROCm
            path = str(self.standins(*flags) / "librccl.so.1")
            sources.kept["nccl"] = {"path": path, "version": "2.22.3", "static": False, "how": ""}
        self.opened.append(sources)
        return sources

    def close(self) -> None:
        for sources in self.opened:
            sources.end()
            for child in sources.kept.get("meetings", ()):
                child.end()
                child.process.stdin.close()
                child.process.stdout.close()

    def left(self) -> list[str]:
        """Return the processes that carry this mark in their environment."""
        found, mark = [], f"STANDIN_MARK={self.mark}".encode()
        for folder in Path("/proc").iterdir():
            try:
                if folder.name.isdecimal() and mark in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_text()[:200])
            except OSError:  # noqa: PERF203  it has ended meanwhile, or is another user's
                continue
        return found


def shape(said: Told) -> list[tuple[int, bool, int | None]]:
    return [(row["size"], row["in_place"], row["wrong"]) for row in said["rows"]]


def _arguments(gpus: list[int], name: str, more: Told) -> Told:
    return {
        "method": "nccl", "round": 1, "stage": "inside", "group": ["here"], "ranks": [len(gpus)], "sizes": SIZES,
        "launcher": "agents", "net": "", "op": "all-reduce", "expect": None, "node": "here", "planned": ["lo"],
        "timeout": FAR, "repeats": 5, "variables": VARIABLES, "id": name, "first": 0, "gpus": gpus, **more,
    }  # fmt: skip
