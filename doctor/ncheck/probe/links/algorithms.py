"""Which of NCCL's algorithms a node's settings leave for an all-reduce."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.nccl.settings import PlacedSetting, settings_of
from ncheck.probe.links.hardware import NodeHardware

RING, TREE, NVLS, NVLS_TREE = "ring", "tree", "nvls", "nvlstree"


def settings_on(hardware: NodeHardware) -> Mapping[str, PlacedSetting]:
    """Return NCCL's settings on a node; none where they could not be read."""
    return settings_of(hardware.environment, None) if hardware.environment else {}


def allows(settings: Mapping[str, PlacedSetting], algorithm: str) -> bool:
    """Return whether NCCL_ALGO leaves this algorithm: "Ring,Tree", "^NVLS", "Ring;allreduce:Tree"."""
    names = ""
    for part in settings["NCCL_ALGO"].value.lower().split(";") if "NCCL_ALGO" in settings else ():
        function, _, own = part.rpartition(":")
        names = own if function in ("", "allreduce") else names
    return not names or (algorithm in names.removeprefix("^").split(",")) != names.startswith("^")
