"""What the GPUs of one node let through between them: NVLS, a ring over NVLink, or PCIe."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.model.facts import Gpu
from doctor.nccl.choice import release_of
from doctor.nccl.ifname import Named
from doctor.nccl.leftovers import is_on, settings_of
from doctor.probe.expect.ceiling import Ceiling, unknown
from doctor.probe.expect.hardware import Hardware
from doctor.probe.expect.nvlink import NVLS_SINCE, Generation, Wiring, bonded, generation_of, wiring_of
from doctor.probe.expect.pcie_links import between_gpus


def inside(node: str, hardware: Hardware, ranks: int, version: str = "") -> Ceiling:
    """Return what so many GPUs of a node reach together under NCCL of this version ("" where it is not known)."""
    if hardware.gpus is None or hardware.topology is None:
        return unknown(f"how the GPUs of {node} are connected (nvidia-smi topo -m)")
    used, models = hardware.topology.gpus[:ranks], hardware.gpus.models
    if len(used) < ranks:
        return unknown(f"how {ranks} ranks share the {len(used)} GPUs of {node}")
    if len(models) > 1:
        return unknown(f"how GPUs of different models do together ({', '.join(models)} in {node})")
    settings = settings_of(hardware.environment, None) if hardware.environment else {}
    if is_on(settings, "NCCL_P2P_DISABLE"):
        return unknown(f"what host memory carries: NCCL_P2P_DISABLE is set on {node}")
    if generation_of(models[0]) is None and any(bonded(hardware.topology, used[0], gpu) for gpu in used):
        return unknown(f"how fast the NVLinks of {models[0]} are")
    return _linked(node, hardware, used, _without_nvls(node, settings, version))


def _linked(node: str, hardware: Hardware, used: tuple[str, ...], without: str) -> Ceiling:
    generation = generation_of(hardware.gpus.models[0]) if hardware.gpus else None
    wiring = wiring_of(hardware.topology, used, generation.most) if generation and hardware.topology else None
    if generation is None or wiring is None:
        return between_gpus(node, hardware, used)
    return _over_nvlink(node, len(used), generation, wiring, without)


def _over_nvlink(node: str, count: int, generation: Generation, wiring: Wiring, without: str) -> Ceiling:
    ring = wiring.links * generation.each
    links = f"{wiring.links} NVLinks x {generation.each:g} GB/s"
    fewer = tuple(f"{wiring.links} NVLinks at {gpu} of {node}, more at its other GPUs" for gpu in wiring.fewer)
    if not (generation.nvls and wiring.switched):
        return Ceiling(ring, f"ring over NVLink: {links}", fewer)
    switch = 2 * (count - 1) / (count + 1) * generation.nvls * ring
    if switch <= ring:
        return Ceiling(ring, f"ring over NVLink: {links}", fewer)
    if without:
        return Ceiling(ring, f"ring over NVLink: {links}", (without, *fewer))
    return Ceiling(switch, f"NVLS over {count} GPUs: {links}", fewer)


def _without_nvls(node: str, settings: Mapping[str, Named], version: str) -> str:
    """Say why NCCL goes without NVLS there; "" where it does not."""
    release = release_of(version)
    if release and release[:2] < NVLS_SINCE:
        return f"NCCL {version} has no NVLS (2.17 has)"
    if "NCCL_NVLS_ENABLE" in settings and not is_on(settings, "NCCL_NVLS_ENABLE"):
        return f"no NVLS: {settings['NCCL_NVLS_ENABLE'].told} on {node}"
    algorithms = settings["NCCL_ALGO"].value.lower() if "NCCL_ALGO" in settings else ""
    if algorithms and ("nvls" in algorithms) == algorithms.startswith("^"):
        return f"no NVLS: {settings['NCCL_ALGO'].told} on {node}"
    return ""


def gpu_of_first_rank(hardware: Hardware) -> Gpu | None:
    """Return the GPU that a node's only rank has, None where its GPUs are not known."""
    return min(hardware.gpus.gpus, key=lambda gpu: gpu.index, default=None) if hardware.gpus else None
