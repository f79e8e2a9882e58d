"""What a node with healthy GPUs on a board with NVLink says of each, and of the services that NVLink needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.cuda_init import CUDA_INIT
from ncheck.facts.fabric_manager import SERVICES, VERSION
from ncheck.facts.gpu_health import HEALTH
from ncheck.model.evidence import JsonValue, Reply, Status

from .gpus import BUSES

if TYPE_CHECKING:
    from .host import Host

_ACTIVE, _ABSENT = ("loaded", "active"), ("not-found", "inactive")


def gpu_health_replies(host: Host) -> dict[str, Reply]:
    """Return the answers, by source key."""
    gpus: list[JsonValue] = [_gpu(index, host.gpu) for index in range(host.gpus)]
    answer: JsonValue = {
        "driver": host.driver, "library": f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{host.driver}",
        "module": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {host.driver}  Fri Nov  8 21:58:49 UTC 2024",
        "count": host.gpus, "failed": None, "gpus": gpus, "at": None, "done": True, "ended": False, "silent": 0.0,
        "words": "", "unlisted": [], "busy": [], "channels": 0, "usable_channels": 0, "compatibility": [],
    }  # fmt: skip
    units = {"nvidia-fabricmanager": _ACTIVE, "nvidia-imex": _ABSENT}
    shown = "\n".join(
        f"Id={name}.service\nLoadState={load}\nActiveState={active}\n" for name, (load, active) in units.items()
    )
    return {
        HEALTH.key: Reply(Status.OK, value=answer, seconds=0.42),
        CUDA_INIT.key: Reply(Status.OK, value=_cuda_init(host), seconds=2.9),
        SERVICES.key: Reply(Status.OK, exit_status=0, stdout=shown, seconds=0.01),
        VERSION.key: Reply(
            Status.OK, exit_status=0, stdout=f"Fabric Manager version is : {host.driver}\n", seconds=0.01
        ),
    }


def _gpu(index: int, name: str) -> JsonValue:
    links: list[JsonValue] = [1] * (18 if "H100" in name else 12)
    watts = 700 if "H100" in name else 400
    clocks: list[JsonValue] = [1980, 2619] if "H100" in name else [1410, 1593]
    fabric: JsonValue = {"state": 3, "status": 0, "clique": 0, "health": 0xAA, "cluster": "0" * 32}
    return {
        "index": index, "pci": f"00000000:{BUSES[index].upper()}:00.0", "name": name, "ecc_mode": [1, 1], "ecc": 0,
        "ecc_ever": 0, "remapped": [0, 0, 0, 0], "retired": None, "retiring": None, "throttled": 1,
        "temperature": 29 + index, "slowdown": 89, "margin": 56 - index, "persistence": 1, "compute_mode": 0,
        "power_limit": watts * 1000, "power_default": watts * 1000, "application_clocks": clocks, "max_clocks": clocks,
        "vbios": "96.00.74.00.01", "inforom": "G520.0200.00.05", "memory_limit": 95, "sram_exceeded": None,
        "pcie_replays": 0, "mig": [0, 0], "links": links, "counted": {"read": len(links), "refused": 0, "errors": []},
        "fields": {"flit_crc": 0, "data_crc": 0, "replay": 0, "recovered": 0, "memory_temperature": 42 + index},
        "fabric": fabric if "H100" in name else None, "errors": {},
    }  # fmt: skip


def _cuda_init(host: Host) -> JsonValue:
    """Return what CUDA says in the job's environment: a context was opened on each GPU."""
    if host.cuda_fails:
        failed: JsonValue = {"function": "dlopen", "code": None, "words": host.cuda_fails}
        return {
            "library": "", "version": 0, "failed": failed, "uvm": "", "at": None, "done": True, "late": False,
            "silent": 0.0, "exit_status": 0, "words": "", "devices": [],
        }  # fmt: skip
    major, minor = map(int, host.cuda.split("."))
    places = [f"0000:{BUSES[index].upper()}:00.0" for index in range(host.gpus)]
    last: JsonValue = {
        "index": host.gpus - 1, "pci": places[-1], "function": "cuDevicePrimaryCtxRelease_v2", "after": 2.8,
    }  # fmt: skip
    return {
        "library": f"/usr/lib/x86_64-linux-gnu/libcuda.so.{host.driver}", "version": 1000 * major + 10 * minor,
        "failed": None, "uvm": "", "at": last, "done": True, "late": False, "silent": 0.0, "exit_status": 0,
        "words": "",
        "devices": [
            {"index": index, "pci": pci, "untried": "", "failed": None} for index, pci in enumerate(places)
        ],
    }  # fmt: skip
