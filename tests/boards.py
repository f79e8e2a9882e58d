"""Nodes of known boards: their PCI bus as a tree like that of sysfs, and NVLinks for the stand-in of tests/standins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ncheck.facts.gpus import DEVICES
from ncheck.facts.infiniband import SYSFS
from ncheck.facts.learning import facts_of
from ncheck.facts.pci import PCI
from ncheck.facts.topology import NVLINKS, TOPO, TopologyFacts
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Source, Status

STANDIN = Path(__file__).parent / "standins" / "nvml_links.c"

GPU, CPU, SWITCH, UNKNOWN = 0, 1, 2, 255  # what NVML says that a link leads to

Links = Sequence[tuple[int, int, str]]  # state, what it leads to, a GPU's name or an address ("-": NVML does not say)


@dataclass(frozen=True)
class Device:
    """`above` are the bridges down to it; `numa` is -1 where the system does not know it."""

    address: str
    above: tuple[str, ...]
    numa: int = 0
    cpus: str = "0-15"


@dataclass(frozen=True)
class Board:
    """The devices by their names in the matrix: GPUs in NVML's order, NICs as their adapters are called."""

    gpus: Mapping[str, Device]
    nics: Mapping[str, Device] = field(default_factory=dict)
    links: Mapping[str, Links] = field(default_factory=dict)
    mig: tuple[str, ...] = ()

    def lay(self, folder: Path) -> Path:
        """Make the folder of the bus, and beside it what the stand-in for NVML reads."""
        bus = folder / "bus"
        bus.mkdir(parents=True)
        for name, device in {**self.gpus, **self.nics}.items():
            kind, vendor = ("0x030200", "0x10de") if name in self.gpus else ("0x020700", "0x15b3")
            real = folder.joinpath("devices", *device.above, device.address)
            real.mkdir(parents=True)
            files = {"class": kind, "vendor": vendor, "device": "0x2330", "numa_node": device.numa}
            for file, text in {**files, "local_cpulist": device.cpus}.items():
                (real / file).write_text(f"{text}\n")
            (bus / device.address).symlink_to(real)
        (folder / "nvml").write_text("".join(f"{self._line(name)}\n" for name in self.gpus))
        return bus

    def _line(self, name: str) -> str:
        addresses = {other: device.address for other, device in self.gpus.items()}
        links = [f"{state},{kind},{addresses.get(end, end)}" for state, kind, end in self.links.get(name, ())]
        return " ".join([self.gpus[name].address, str(int(name in self.mig)), *links])

    def adapters(self) -> dict[str, JsonValue]:
        """Return what /sys/class/infiniband shows: where each adapter lies."""
        return {
            f"/sys/class/infiniband/{name}/device": f"/sys/devices/{nic.address}" for name, nic in self.nics.items()
        }


_ASK = """
import json, sys
from ncheck.agent.answers import gpus, nvlinks, pci
from ncheck.agent.sources import Sources
pci.DEVICES = sys.argv[1]
nvlinks.need_device = lambda: ["one"]
sources = Sources()
asked = [sources.read({"kind": "answer", "name": name, "timeout": float(sys.argv[2])}) for name in ("pci", "nvlinks")]
print(json.dumps(asked))
"""


def asked(bus: Path, driver: Path, seconds: float = 60.0, **environment: str) -> tuple[Reply, Reply]:
    """Return what the agent answers about the bus and about NVLinks, NVML being the stand-in in the folder `driver`."""
    own = {"LD_LIBRARY_PATH": str(driver), "NVML_BOARD": str(bus.parent / "nvml"), "PYTHONPATH": ":".join(sys.path)}
    argv = [sys.executable, "-c", _ASK, str(bus), str(seconds)]
    done = subprocess.run(argv, env={**os.environ, **own, **environment}, capture_output=True, text=True, check=True)
    first, second = (Reply(**{**one, "status": Status(one["status"])}) for one in json.loads(done.stdout))
    return first, second


def evidence(board: Board, bus: Reply, links: Reply, printed: Reply) -> Evidence:
    """Return a node's evidence of its topology."""
    on_pci: dict[str, JsonValue] = {
        f"/sys/bus/pci/devices/{gpu.address}/vendor": "0x10de\n" for gpu in board.gpus.values()
    }
    tree = Reply(Status.OK, value=board.adapters())
    replies: dict[Source, Reply] = {
        TOPO: printed,
        NVLINKS: links,
        PCI: bus,
        SYSFS: tree,
        DEVICES: Reply(Status.OK, value=on_pci),
    }
    return Evidence("n1", Login(reached=True), replies={source.key: reply for source, reply in replies.items()})


def topology_of(board: Board, bus: Reply, links: Reply, printed: Reply) -> Any:
    """Return the fact that comes of this evidence."""
    return facts_of(evidence(board, bus, links, printed), [TopologyFacts])[TopologyFacts]


def compile_driver(folder: Path) -> Path:
    """Make the stand-in's library and return its folder."""
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", str(library), str(STANDIN)], check=True)
    return folder
