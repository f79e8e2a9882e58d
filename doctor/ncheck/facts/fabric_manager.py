"""The services that NVLink needs beyond one board: fabric manager (NVSwitches) and IMEX (between nodes)."""

from __future__ import annotations

import re

from ncheck.expression import expression
from ncheck.facts.definition import Fact, trouble
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Command, Evidence
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class FabricManagerFacts:
    """What systemd says of each service: "active", "inactive", "failed", "not installed".

    `version` is that of the installed fabric manager, "" where it is not known.
    """

    fabric_manager: str
    imex: str
    version: str = ""


def starting(health: Read[GpuHealthFacts], services: Read[FabricManagerFacts]) -> str:
    """Return the state of a fabric manager that sets the NVSwitches up, "" of all others: it starts, or it runs and
    GPUs register with it.
    """
    if not isinstance(services, FabricManagerFacts) or not isinstance(health, GpuHealthFacts):
        return ""
    registering = any(gpu.fabric and gpu.fabric.state == IN_PROGRESS for gpu in health.gpus)
    return services.fabric_manager if services.fabric_manager in ("activating", registering and "active") else ""


IN_PROGRESS = 2  # NVML_GPU_FABRIC_STATE_IN_PROGRESS
NO_FABRIC = "no NVLink fabric"  # what fabric-not-ready explains: that no NVLink of a GPU is active

_FABRIC_MANAGER, _IMEX = "nvidia-fabricmanager.service", "nvidia-imex.service"

SERVICES = Command(("systemctl", "show", "--property=Id,LoadState,ActiveState", _FABRIC_MANAGER, _IMEX))

VERSION = Command(("nv-fabricmanager", "--version"))

# Fabric Manager version is : 550.54.15
_VERSION = expression(r"version\D{1,10}(\d{3,4}(?:\.\d{1,4}){1,3})", re.IGNORECASE)

# In a container: System has not been booted with systemd as init system (PID 1). Can't operate.
_NO_SYSTEMD = ("not been booted with systemd", "Failed to connect to bus", "Failed to get D-Bus connection")


def fabric_manager(evidence: Evidence) -> Read[FabricManagerFacts]:
    """Read the states; a machine without systemd, such as a container, is Absent."""
    reply = evidence.reply(SERVICES)
    if any(words in reply.stderr for words in _NO_SYSTEMD):
        return Absent("no systemd here, as in a container")
    if why := trouble(SERVICES, reply):
        return Absent("no systemd here") if isinstance(why, Absent) else why
    states = _states(reply.stdout)
    if not {_FABRIC_MANAGER, _IMEX} <= states.keys():
        return Unread("systemctl show does not name the services", fix="systemctl status nvidia-fabricmanager")
    version = evidence.reply(VERSION)
    found = _VERSION.search(version.stdout) if version.succeeded else None
    return FabricManagerFacts(states[_FABRIC_MANAGER], states[_IMEX], found[1] if found else "")


def _states(text: str) -> dict[str, str]:
    """Return the state of each unit: a block of NAME=VALUE per unit, with empty lines between."""
    found = {}
    for block in text.split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "Id" in values and "ActiveState" in values:
            there = values.get("LoadState") != "not-found"
            found[values["Id"]] = values["ActiveState"] if there else "not installed"
    return found


FACTS = (Fact(FabricManagerFacts, (SERVICES, VERSION), fabric_manager),)
