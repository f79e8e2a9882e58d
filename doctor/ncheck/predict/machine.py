"""A node's facts as NCCL's search for channels sees them; or why they do not say enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncheck.expression import expression
from ncheck.facts.gpudirect import GpuDirectFacts
from ncheck.facts.infiniband import HcaPort
from ncheck.facts.topology import TopologyFacts
from ncheck.nccl.settings import PlacedSetting, is_on
from ncheck.predict.cost import NEAR_TO_FAR, within
from ncheck.predict.graphs import Machine, Nic
from ncheck.predict.releases import Rules
from ncheck.probe.links.gpu_links import generation_of, wiring_of
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.links.pcie_links import INTEL, assumed, between_gpus, between_processors

# NVIDIA H100 80GB HBM3, Tesla V100-SXM2-16GB, NVIDIA RTX PRO 6000 Blackwell, NVIDIA GeForce RTX 5090
# (source: developer.nvidia.com/cuda-gpus)
_CAPABILITIES = (
    (expression(r"\bG?B300\b"), 103),
    (expression(r"\bG?B[12]00\b"), 100),
    (expression(r"\bRTX 50\d\d\b|\bBlackwell\b"), 120),
    (expression(r"\bG?H(?:100|200|800|20)\b"), 90),
    (expression(r"\bL(?:4|20|40S?)\b|\bRTX 40\d\d\b|\bAda\b"), 89),
    (expression(r"\bA(?:2|10G?|16|40|4000|4500|5000|5500|6000)\b|\bRTX 30\d\d\b"), 86),
    (expression(r"\bA(?:30|100|800)\b"), 80),
    (expression(r"\bT4\b|\bRTX (?:[568]000)\b|\bRTX 20\d\d\b|\bTITAN RTX\b"), 75),
    (expression(r"\bV100S?\b|\bTITAN V\b"), 70),
    (expression(r"\bP100\b"), 60),
)
# What `nvidia-smi topo -m` calls a path, and what NCCL does: a path within one NUMA node goes by one host bridge.
_PATHS = {"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS", "SOC": "SYS"}
_DEFAULT_LEVEL = "PXB"  # the farthest path by which NCCL lets a NIC reach a GPU's memory, unless it is told another
_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")  # as numbers in NCCL_NET_GDR_LEVEL


def capability_of(model: str) -> int | None:
    """Return the compute capability (90 is 9.0) of a GPU model; None if it is not known here."""
    return next((number for pattern, number in _CAPABILITIES if pattern.search(model)), None)


class UnknownError(Exception):
    """The facts do not say what NCCL would do; the message is the reason, as a clause."""


def machine_of(  # noqa: PLR0913, PLR0917  what a node is made of
    node: str,
    hardware: NodeHardware,
    ranks: int,
    ports: Sequence[HcaPort],
    settings: Mapping[str, PlacedSetting],
    direct: GpuDirectFacts | None,
    rules: Rules,
) -> Machine:
    """Return a node with so many ranks; `ports` are those that carry data to other nodes. Raises UnknownError."""
    gpus, topology = hardware.gpus, hardware.topology
    if gpus is None or topology is None:
        raise UnknownError(f"it is not known how the GPUs of {node} are connected (nvidia-smi topo -m)")
    if gpus.vendor != "NVIDIA":
        raise UnknownError(f"how RCCL chooses is not predicted ({node} has GPUs of {gpus.vendor})")
    used = topology.gpus[:ranks]
    if len(used) < ranks:
        raise UnknownError(f"{ranks} ranks share the {len(used)} GPUs of {node}")
    if is_on(settings, "NCCL_P2P_DISABLE"):
        raise UnknownError(f"data goes through host memory: NCCL_P2P_DISABLE is set on {node}")
    capabilities = [capability_of(model) for model in gpus.models]
    if None in capabilities or not capabilities:
        raise UnknownError(f"the compute capability of {' and '.join(gpus.models)} of {node} is not known here")
    capability = min(number for number in capabilities if number is not None)
    generation = generation_of(gpus.models[0]) if len(gpus.models) == 1 else None
    wiring = wiring_of(topology, used, generation.most) if generation and ranks > 1 else None
    across, path, nvlink = 0.0, "SYS", 0.0
    processor = hardware.pcie.processor if hardware.pcie else None
    if wiring and generation:
        nvlink = wiring.links * (rules.hopper_link if capability == 90 else generation.each)  # noqa: PLR2004
    elif ranks > 1:
        ceiling = between_gpus(node, hardware, used)
        if ceiling.busbw is None:
            raise UnknownError(f"it is not known: {', '.join(ceiling.unknown)}")
        across, path = ceiling.busbw, _farthest(topology, used)
    return Machine(
        ranks, capability, nvlink, bool(wiring and wiring.switched), _pcie(hardware), across, path,
        tuple(_nics(node, hardware, topology, used, ports, settings, direct, linked=bool(wiring))),
        (between_processors(node, processor).busbw or 0.0) if processor else 0.0,
        processor is not None and processor.vendor == INTEL,
    )  # fmt: skip


def _pcie(hardware: NodeHardware) -> float:
    """Return what NCCL assumes of the PCIe link of a GPU; where it could not be read, no limit."""
    links = hardware.pcie.gpus.values() if hardware.pcie else ()
    return min((found for own in links if (found := assumed(own)) is not None), default=1e9)


def _farthest(topology: TopologyFacts, used: Sequence[str]) -> str:
    levels = (topology.pairs.get((one, other), "SYS") for one in used for other in used if one != other)
    return max((_PATHS.get(level, "PIX") for level in levels), key=NEAR_TO_FAR.index, default="PIX")


def _nics(  # noqa: PLR0913, PLR0917  what a node is made of
    node: str,
    hardware: NodeHardware,
    topology: TopologyFacts,
    used: Sequence[str],
    ports: Sequence[HcaPort],
    settings: Mapping[str, PlacedSetting],
    direct: GpuDirectFacts | None,
    *,
    linked: bool,
) -> Iterator[Nic]:
    names = {topology.legend.get(nic, nic): nic for nic in topology.nics}
    most = _level(settings) if _supported(direct) else "LOC"
    by_others = linked and not is_on(settings, "NCCL_PXN_DISABLE")
    for port in ports:
        if not port.rate:
            raise UnknownError(f"{port.hca} of {node} reports no rate")
        nic = names.get(port.hca)
        levels = [topology.pairs.get((gpu, nic), "") if nic else "" for gpu in used]
        if not all(level in _PATHS for level in levels):
            raise UnknownError(f"it is not known which GPUs of {node} are near {port.hca} (nvidia-smi topo -m)")
        near = [_PATHS[level] for level in levels]
        back = tuple(near)
        if by_others and any(within(path, "PXB") and within(path, most) for path in near):
            near = [path if within(path, "PXB") else "PXN" for path in near]
        # Without GPUDirect RDMA the data goes by the host bridge, however near the NIC is.
        near = [path if path == "PXN" or within(path, most) or not within(path, "PXB") else "PHB" for path in near]
        bus = assumed(hardware.pcie.hcas.get(port.hca, ())) if hardware.pcie else None
        yield Nic(min(port.rate / 8, bus or 1e9), tuple(near), back)


def without_gpudirect(
    hardware: NodeHardware,
    ports: Sequence[HcaPort],
    settings: Mapping[str, PlacedSetting],
    direct: GpuDirectFacts | None,
) -> str:
    """Return why NCCL does not let the NICs reach the memory of the GPUs, "" if it does or that is not known."""
    topology = hardware.topology
    if topology is None or not ports:
        return ""
    if not _supported(direct):
        return "neither nvidia_peermem nor DMA-BUF is there"
    names = {topology.legend.get(nic, nic): nic for nic in topology.nics}
    nics = [names[port.hca] for port in ports if port.hca in names]
    levels = {topology.pairs.get((gpu, nic), "") for nic in nics for gpu in topology.gpus}
    near = min((_PATHS[level] for level in levels if level in _PATHS), key=NEAR_TO_FAR.index, default="LOC")
    if within(near, _level(settings)):
        return ""
    return f"its NICs are no nearer to the GPUs than {near}; NCCL_NET_GDR_LEVEL={near} would use it"


def _level(settings: Mapping[str, PlacedSetting]) -> str:
    """Return NCCL_NET_GDR_LEVEL."""
    setting = settings.get("NCCL_NET_GDR_LEVEL")
    value = setting.value.upper() if setting else _DEFAULT_LEVEL
    if value.isascii() and value.isdecimal():
        return _LEVELS[min(int(value[:4]), len(_LEVELS) - 1)]
    return value if value in _LEVELS else _DEFAULT_LEVEL


_DMABUF = (5, 12)  # since this release of Linux


def _supported(direct: GpuDirectFacts | None) -> bool:
    """Return whether GPUDirect RDMA can be used; assumed where it could not be read."""
    return direct is None or direct.peermem or bool(direct.peers) or (direct.open_driver and direct.kernel >= _DMABUF)
