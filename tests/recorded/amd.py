"""What AMD's tools and the kernel's error counters answer: nothing is there on a node of NVIDIA's GPUs, and the other
way round. The formats are those of ROCm 7 (`gpu_data`) and 6 (a list), and of the kernel's documentation.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ncheck.facts.amd import COUNTS, LINKS, LISTING, ROCM
from ncheck.model.evidence import JsonValue, Reply, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

BUSES = ("05", "26", "46", "65", "85", "a6", "c6", "e5")
MI300X = "AMD Instinct MI300X"
MEGABYTES = 196592


def no_amd() -> dict[str, Reply]:
    """Return the answers of a node without AMD's GPUs and tools."""
    neither = Reply(Status.OK, exit_status=1, stderr="the driver amdgpu is not loaded\n", seconds=0.003)
    return {
        LISTING.key: neither,
        LINKS.key: neither,
        ROCM.key: Reply(Status.MISSING, reason="No such file or directory", seconds=0.001),
        COUNTS.key: Reply(Status.OK, value={}, seconds=0.001),
    }


def amd_replies(
    *, gpus: int = 8, driver: str = "6.16.6", rocm: str = "7.1.1", links: Mapping[tuple[int, int], str] | None = None
) -> dict[str, Reply]:
    """Return the answers of a node of MI300X, of which amd-smi lists so many; `links` that are not XGMI, by pair."""
    return {
        LISTING.key: Reply(Status.OK, exit_status=0, stdout=listing(gpus, driver), seconds=0.6),
        LINKS.key: Reply(Status.OK, exit_status=0, stdout=topology(gpus, links or {}), seconds=0.7),
        ROCM.key: Reply(Status.OK, value=f"{rocm}-38\n", seconds=0.001),
        COUNTS.key: Reply(Status.OK, value=counts(), seconds=0.03),
    }


def listing(gpus: int, driver: str) -> str:
    """Return `amd-smi static --asic --bus --driver --vram --json` of ROCm 7."""
    rows = [
        {
            "gpu": index,
            "asic": {"market_name": MI300X, "vendor_id": "0x1002", "device_id": "0x74a1", "oam_id": index},
            "bus": {"bdf": f"0000:{bus}:00.0", "max_pcie_width": 16, "slot_type": "OAM"},
            "driver": {"name": "amdgpu", "version": driver},
            "vram": {"type": "HBM", "vendor": "N/A", "size": {"value": MEGABYTES, "unit": "MB"}, "bit_width": 8192},
        }
        for index, bus in enumerate(BUSES[:gpus])
    ]
    return json.dumps({"gpu_data": rows}, indent=4) + "\n"


def topology(gpus: int, links: Mapping[tuple[int, int], str]) -> str:
    """Return `amd-smi topology --json`, as it is since ROCm 6.2."""

    def link(one: int, other: int) -> JsonValue:
        path = "SELF" if one == other else links.get((min(one, other), max(one, other)), "XGMI")
        return {"gpu": other, "bdf": f"0000:{BUSES[other]}:00.0", "weight": 15, "link_status": "ENABLED",
                "link_type": path, "num_hops": 1, "bandwidth": "50000-100000"}  # fmt: skip

    rows = [
        {"gpu": one, "bdf": f"0000:{BUSES[one]}:00.0", "links": [link(one, other) for other in range(gpus)]}
        for one in range(gpus)
    ]
    return json.dumps(rows, indent=4) + "\n"


def counts() -> dict[str, JsonValue]:
    """Return what the kernel counts on eight GPUs: corrected errors, and a bad page that it has retired."""
    values: dict[str, JsonValue] = {}
    for bus in BUSES:
        ras = f"/sys/bus/pci/drivers/amdgpu/0000:{bus}:00.0/ras"
        values[f"{ras}/umc_err_count"] = "ue: 0\nce: 2\nde: 0\n"
        values[f"{ras}/gfx_err_count"] = "ue: 0\nce: 0\n"
        values[f"{ras}/gpu_vram_bad_pages"] = "0x027f5d43 : 0x00001000 : R\n"
    return values
