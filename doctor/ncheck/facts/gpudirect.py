"""Whether network adapters can reach the memory of NVIDIA GPUs directly (GPUDirect RDMA): what NCCL itself looks at."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.expression import expression
from ncheck.facts.definition import Fact, no_answer
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence, Tree
from ncheck.model.fact import Absent, Read, Unread


@dataclass(frozen=True)
class GpuDirectFacts:
    """Whether GPUDirect RDMA can be used: by peer memory, or by DMA-BUF.

    `peers`: GPU drivers that are registered in /sys/kernel/mm/memory_peers (nv_mem, nv_mem_nc). `peermem`: the
    module nvidia_peermem is loaded; `open_driver`: NVIDIA's open kernel module is, which DMA-BUF needs. `kernel`:
    its release as (5, 15).
    """

    peers: tuple[str, ...]
    peermem: bool
    open_driver: bool
    kernel: tuple[int, int]


_RELEASE, _DRIVER = "/proc/sys/kernel/osrelease", "/proc/driver/nvidia/version"
_PEERS, _PEERMEM = "/sys/kernel/mm/memory_peers/", "/sys/module/nvidia_peermem/version"
SOURCE = Tree((_RELEASE, _DRIVER, f"{_PEERS}*/version", _PEERMEM))

# 5.15.0-91-generic
_NUMBERS = expression(r"(\d{1,4})\.(\d{1,4})")

# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder@U16-I3-B03-03-2)
_OPEN = expression(r"NVRM version: .*\bOpen Kernel Module\b")


def gpudirect(evidence: Evidence) -> Read[GpuDirectFacts]:
    """Read what there is. Raises ValueError for what is no release of Linux."""
    reply = evidence.reply(SOURCE)
    if why := no_answer(SOURCE, reply):
        return why
    tree: Mapping[str, object] = reply.value if isinstance(reply.value, dict) else {}
    driver, release = tree.get(_DRIVER), tree.get(_RELEASE)
    if not isinstance(release, str):
        return Unread(f"{_RELEASE} could not be read", fix="uname -r")
    if driver is None:
        return Absent("no NVIDIA driver is loaded")
    if not isinstance(driver, str):
        return Unread(f"{_DRIVER} could not be read", fix=f"cat {_DRIVER}")
    numbers = _NUMBERS.match(release)
    if numbers is None:
        raise ValueError(f"{release[:40]!r} is no release of Linux")
    peers = tuple(sorted(path.split("/")[-2] for path in tree if path.startswith(_PEERS)))
    kernel = int(numbers[1]), int(numbers[2])
    return GpuDirectFacts(peers, _PEERMEM in tree, _OPEN.search(driver) is not None, kernel)


FACTS = (Fact(GpuDirectFacts, (SOURCE,), gpudirect),)
