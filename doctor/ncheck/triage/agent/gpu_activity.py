"""What the GPUs of this node do: two looks by NVML at use, memory, clocks, power, temperature and errors."""

import time

from ncheck.agent.answers import WATCHED
from ncheck.agent.answers.gpus import _address, _nvml, _processes, need_device, started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from ncheck.agent.answers.gpus import Nvml, Value
    from ncheck.agent.sources import Sources

READS = (
    "NVML, twice: use, memory, clocks and why they are low, power, temperature, ECC errors, processes of each GPU",
)

_SM, _GPU_SENSOR, _UNCORRECTED, _VOLATILE = 1, 0, 1, 0  # NVML's numbers


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return both looks at each GPU; MissingError with no NVIDIA device, OSError naming the function that failed."""
    need_device()
    nvml = started(_nvml(sources.fetch))
    try:
        return watched(nvml)
    finally:
        nvml.nvmlShutdown()


def watched(nvml: "Nvml") -> "Dict[str, Any]":
    """Return {"seconds", "gpus": [GPU]}."""
    count = nvml.nvmlDeviceGetCount()
    first = [_look(nvml, index) for index in range(count)]
    time.sleep(WATCHED)
    second = [_look(nvml, index) for index in range(count)]
    gpus: "List[Dict[str, Any]]" = []
    for index in range(count):
        errors = dict(first[index].pop("errors"), **second[index].pop("errors"))
        described = second[index].pop("described")
        first[index].pop("described")
        gpus.append(dict(described, index=index, looks=[first[index], second[index]], errors=errors))
    return {"seconds": WATCHED, "gpus": gpus}


def _look(nvml: "Nvml", index: int) -> "Dict[str, Any]":
    errors: "Dict[str, str]" = {}

    def ask(name: str, *arguments: object) -> "Value":
        """Return what NVML says, or None with the function's name noted; what a GPU does not have is no error."""
        try:
            return getattr(nvml, name)(*arguments)
        except (nvml.NVMLError, AttributeError) as error:
            if getattr(error, "value", None) not in _HARMLESS and not isinstance(error, AttributeError):
                errors[name] = str(error)[:200]
            return None

    handle = ask("nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        nothing = {"pci": "", "minor": None, "memory_total": None, "processes": None}
        return dict(dict.fromkeys(_FIGURES), errors=errors, described=nothing)
    use, memory = ask("nvmlDeviceGetUtilizationRates", handle), ask("nvmlDeviceGetMemoryInfo", handle)
    reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    return {
        "use": use and use.gpu, "memory_use": use and use.memory, "memory_used": memory and memory.used,
        "clock": ask("nvmlDeviceGetClockInfo", handle, _SM),
        "most_clock": ask("nvmlDeviceGetMaxClockInfo", handle, _SM), "throttled": reasons,
        "power": ask("nvmlDeviceGetPowerUsage", handle), "power_limit": ask("nvmlDeviceGetEnforcedPowerLimit", handle),
        "temperature": ask("nvmlDeviceGetTemperature", handle, _GPU_SENSOR),
        "ecc": ask("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _VOLATILE),
        "errors": errors,
        "described": {
            "pci": _address(ask("nvmlDeviceGetPciInfo", handle)), "minor": ask("nvmlDeviceGetMinorNumber", handle),
            "memory_total": memory and memory.total, "processes": _processes(nvml, handle),
        },
    }  # fmt: skip


_FIGURES = (
    "use", "memory_use", "memory_used", "clock", "most_clock", "throttled", "power", "power_limit", "temperature",
    "ecc",
)  # fmt: skip
_HARMLESS = (3, 4, 13)  # not supported, no permission, function not found
