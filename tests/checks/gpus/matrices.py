"""Topology matrices by hand."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.model.cluster import Facts
from ncheck.parse.nvidia_smi import Gpu


def node(  # noqa: PLR0913  each is one way in which a node may be special
    count: int,
    usual: str,
    special: Mapping[tuple[int, int], str] | None = None,
    *,
    nics: Mapping[str, tuple[str, ...]] | None = None,
    mig: tuple[str, ...] = (),
    models: tuple[str, ...] = ("NVIDIA H100 80GB HBM3",),
    listed: int | None = None,
) -> Facts:
    """Return a node's facts: `special` paths between two GPUs, and of each NIC the paths to all GPUs."""
    names = tuple(f"GPU{index}" for index in range(count))
    pairs = {(one, other): "X" if one == other else usual for one in names for other in names}
    for (one, other), level in (special or {}).items():
        pairs |= {(names[one], names[other]): level, (names[other], names[one]): level}
    for nic, levels in (nics or {}).items():
        for gpu, level in zip(names, levels, strict=True):
            pairs |= {(gpu, nic): level, (nic, gpu): level}
    gpus = tuple(Gpu(index, models[index % len(models)]) for index in range(count if listed is None else listed))
    return {
        TopologyFacts: TopologyFacts(names, tuple(nics or {}), pairs, {}, {}, {}, mig=mig),
        GpuFacts: GpuFacts(gpus, "550.54", "12.4", "nvml"),
    }


def without(gpu: int, count: int, level: str = "SYS") -> dict[tuple[int, int], str]:
    """Return the paths of a GPU that is cut off."""
    return {(gpu, other): level for other in range(count) if other != gpu}


# The cube of eight V100: how many links join two of them. Each has six.
CUBE = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 1, (2, 6): 2, (3, 7): 2,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 1,
}  # fmt: skip


def cube(*places: int) -> dict[tuple[int, int], str]:
    """Return the paths between some GPUs of a cube."""
    return {
        (places.index(one), places.index(other)): f"NV{links}"
        for (one, other), links in CUBE.items()
        if one in places and other in places
    }
