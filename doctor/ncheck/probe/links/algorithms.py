"""Which of NCCL's algorithms a node's settings leave for an operation."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.model.op import Op
from ncheck.nccl.settings import PlacedSetting, settings_of
from ncheck.probe.links.hardware import NodeHardware

RING, TREE, NVLS, NVLS_TREE = "ring", "tree", "nvls", "nvlstree"


def settings_on(hardware: NodeHardware) -> Mapping[str, PlacedSetting]:
    """Return NCCL's settings on a node; none where they could not be read."""
    return settings_of(hardware.environment, None) if hardware.environment else {}


def allows(
    settings: Mapping[str, PlacedSetting], name: str, op: Op = Op.ALL_REDUCE, variable: str = "NCCL_ALGO"
) -> bool:
    """Return whether NCCL_ALGO, or NCCL_PROTO, leaves this name: "Ring,Tree", "^NVLS", "Ring;allreduce:Tree"."""
    names, own_name = "", op.value.replace("-", "")
    for part in settings[variable].value.lower().split(";") if variable in settings else ():
        function, _, own = part.rpartition(":")
        names = own if function in ("", own_name) else names
    return not names or (name in names.removeprefix("^").split(",")) != names.startswith("^")
