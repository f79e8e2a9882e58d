"""The program that asks NVML how each GPU is. It is a process of its own: NVML can hang, or end who calls it.

It reads one line, {"pynvml": its text, "" for the one that is installed}, and prints lines of "ncheck:" and JSON:
{"library": path}, {"failed": {"function", "code", "words"}} where NVML does not start; then, for each GPU,
{"at": index} before it is asked and {"gpu": GPU} after that; {"busy": [[index, percent]]} of those that compute,
and {"done": true} at the end.
"""

import json
import sys
import time
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Sequence

    # Of pynvml, which has no types.
    Nvml = Any
    Handle = Any
    Value = Any

# NVML's codes for what this GPU, this driver or this user does not have: invalid argument, not supported, no
# permission, not found, function not found, no ECC on a vGPU, an argument of another version, deprecated.
_UNSUPPORTED = (2, 3, 4, 6, 13, 22, 25, 26)

_GPU_SENSOR, _SLOWDOWN, _MEMORY_LIMIT = 0, 1, 2
_GRAPHICS, _MEMORY = 0, 2  # clocks
_UNCORRECTED, _VOLATILE, _AGGREGATE = 1, 0, 1
_RETIRED_CAUSES = (0, 1)  # several single-bit errors, one double-bit error
_MOST_LINKS, _ACTIVE = 36, 1
_NO_PERMISSION = 4

# Fields of nvmlDeviceGetFieldValues; old drivers do not know the last one.
_FIELDS = {"flit_crc": 38, "data_crc": 45, "replay": 52, "recovered": 59, "memory_temperature": 82, "action": 230}
# Those of one NVLink (scopeId): the first three end with Hopper, the others begin with Blackwell.
_LINK_FIELDS = {
    "replay": 161, "recovered": 162, "crc": 163,
    "malformed": 206, "received": 208, "integrity": 211, "lost": 214, "recoveries": 215, "symbol": 221,
}  # fmt: skip
_IDLE, _BETWEEN = 5, 1.2  # percent of the time; seconds between two looks: NVML averages over up to one
_KINDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by nvmlValueType_t


def main() -> None:
    """Print what NVML says; see the module."""
    text = json.loads(sys.stdin.readline())["pynvml"]
    try:
        nvml = _pynvml(text)
    except ImportError:
        _say(failed={"function": "", "code": None, "words": "pynvml is installed neither there nor on the local host"})
        return
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        _say(library=_library())
        _say(failed={"function": "nvmlInit", "code": error.value, "words": str(error)[:300]})
        return
    _say(library=_library())
    gpus = [_Gpu(nvml, index) for index in range(count)]
    for gpu in gpus:
        _say(at=gpu.index)
        _say(gpu=gpu.report())
    _say(busy=_still_busy([gpu for gpu in gpus if gpu.use > _IDLE]))
    _say(done=True)


def _still_busy(gpus: "Sequence[_Gpu]") -> "List[List[int]]":
    """Return [index, percent] of those that compute in a second look, too; one look may show a moment."""
    if gpus:
        time.sleep(_BETWEEN)
    rows = []
    for gpu in gpus:
        _say(at=gpu.index)
        rows.append([gpu.index, min(gpu.use, gpu.used())])
    return [[index, use] for index, use in rows if use > _IDLE]


def _pynvml(text: str) -> "Nvml":
    if not text:
        import pynvml

        return pynvml
    module = types.ModuleType("pynvml")
    sys.modules["pynvml"] = module
    exec(compile(text, "<ncheck pynvml>", "exec"), module.__dict__)  # noqa: S102  what the head itself sent
    return module


def _say(**words: object) -> None:
    sys.stdout.write("ncheck:" + json.dumps(words) + "\n")
    sys.stdout.flush()


def _text(value: "Value") -> "Value":
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _library() -> str:
    """Return the path of NVML's library in this process; its name ends in the version."""
    with open("/proc/self/maps") as maps:
        paths = [line.split()[-1] for line in maps if "libnvidia-ml.so" in line]
    return paths[0] if paths else ""


class _Gpu:
    """One GPU, asked for one thing after the other. `errors`: what should have been readable and was not, and why."""

    def __init__(self, nvml: "Nvml", index: int) -> None:
        self.nvml, self.index = nvml, index
        self.errors: "Dict[str, List[object]]" = {}
        self.handle: "Handle" = None
        self.use = 0

    def report(self) -> "Dict[str, Any]":
        """Return all that NVML says of this GPU."""
        handle = self.handle = self.ask("handle", "nvmlDeviceGetHandleByIndex", self.index)
        if handle is None:
            return {"index": self.index, "errors": self.errors}
        self.use = self.used()
        first = self.reasons(handle)
        pci = self.ask("pci", "nvmlDeviceGetPciInfo", handle)
        values = {
            "index": self.index,
            "pci": _text(pci.busId) if pci else None,
            "name": _text(self.ask("name", "nvmlDeviceGetName", handle)),
            "ecc_mode": self.ask("ecc_mode", "nvmlDeviceGetEccMode", handle),
            "ecc": self.ask("ecc", "nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _VOLATILE),
            "ecc_ever": self.ask("ecc_ever", "nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _AGGREGATE),
            "remapped": self.ask("remapped", "nvmlDeviceGetRemappedRows", handle),
            "retired": self.retired(handle),
            "retiring": self.ask("retiring", "nvmlDeviceGetRetiredPagesPendingStatus", handle),
            "temperature": self.ask("temperature", "nvmlDeviceGetTemperature", handle, _GPU_SENSOR),
            "slowdown": self.ask("slowdown", "nvmlDeviceGetTemperatureThreshold", handle, _SLOWDOWN),
            "margin": self.ask("margin", "nvmlDeviceGetMarginTemperature", handle),
            "persistence": self.ask("persistence", "nvmlDeviceGetPersistenceMode", handle),
            "compute_mode": self.ask("compute_mode", "nvmlDeviceGetComputeMode", handle),
            "power_limit": self.ask("power_limit", "nvmlDeviceGetEnforcedPowerLimit", handle),
            "power_default": self.ask("power_default", "nvmlDeviceGetPowerManagementDefaultLimit", handle),
            "application_clocks": self.clocks("application_clocks", "nvmlDeviceGetApplicationsClock"),
            "max_clocks": self.clocks("max_clocks", "nvmlDeviceGetMaxClockInfo"),
            "serial": _text(self.ask("serial", "nvmlDeviceGetSerial", handle)),
            "vbios": _text(self.ask("vbios", "nvmlDeviceGetVbiosVersion", handle)),
            "inforom": _text(self.ask("inforom", "nvmlDeviceGetInforomImageVersion", handle)),
            "memory_limit": self.ask("memory_limit", "nvmlDeviceGetTemperatureThreshold", handle, _MEMORY_LIMIT),
            "sram_exceeded": self.sram_exceeded(handle),
            "pcie_replays": self.ask("pcie_replays", "nvmlDeviceGetPcieReplayCounter", handle),
            "mig": self.ask("mig", "nvmlDeviceGetMigMode", handle),
            "links": self.links(handle),
            "fields": self.fields(handle),
            "fabric": self.fabric(handle),
        }
        values["counted"] = self.counted(handle, values["links"])
        second = self.reasons(handle)
        values["throttled"] = None if first is None or second is None else first & second  # what holds all the time
        values["errors"] = self.errors
        return values

    def ask(self, what: str, function: str, *arguments: object) -> "Value":
        """Return what NVML says, None where it does not have this, or where it fails: that is noted under `what`."""
        try:
            return getattr(self.nvml, function)(*arguments)
        except AttributeError:  # this pynvml is older
            return None
        except self.nvml.NVMLError as error:
            if error.value not in _UNSUPPORTED or what == "handle":
                self.errors[what] = [error.value, str(error)[:200]]
            return None

    def reasons(self, handle: "Handle") -> "Optional[int]":
        """Return why the clocks are low; the second name is that of old drivers."""
        reasons: "Optional[int]" = self.ask("throttled", "nvmlDeviceGetCurrentClocksEventReasons", handle)
        if reasons is None:
            reasons = self.ask("throttled", "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return reasons

    def used(self) -> int:
        """Return the share of the last moment in which it computed, in percent; 0 where it does not say."""
        use = self.ask("busy", "nvmlDeviceGetUtilizationRates", self.handle)
        percent: int = use.gpu if use else 0
        return percent

    def clocks(self, what: str, function: str) -> "Optional[List[int]]":
        """Return [MHz of the cores, MHz of the memory]; None where it does not have both."""
        both = [self.ask(what, function, self.handle, clock) for clock in (_GRAPHICS, _MEMORY)]
        return None if None in both else both

    def sram_exceeded(self, handle: "Handle") -> "Optional[bool]":
        """Return whether its caches had more errors than NVIDIA's limit; root only, as NVML says."""
        try:
            status = self.nvml.c_nvmlEccSramErrorStatus_v1_t()
        except AttributeError:
            return None
        answer = self.ask("sram_exceeded", "nvmlDeviceGetSramEccErrorStatus", handle, self.nvml.byref(status))
        return None if answer is None else bool(status.bThresholdExceeded)

    def retired(self, handle: "Handle") -> "Optional[int]":
        lists = [self.ask("retired", "nvmlDeviceGetRetiredPages", handle, cause) for cause in _RETIRED_CAUSES]
        return None if None in lists else sum(map(len, lists))

    def links(self, handle: "Handle") -> "List[int]":
        """Return the state of each NVLink (0 inactive or not there, 1 active) up to the last that is there."""
        states = [self.ask("links", "nvmlDeviceGetNvLinkState", handle, link) for link in range(_MOST_LINKS)]
        while states and states[-1] is None:
            states.pop()
        return [state or 0 for state in states]

    def fields(self, handle: "Handle") -> "Dict[str, int]":
        """Return the values that are read by number; those that this GPU or driver does not have are left out."""
        values = self.ask("fields", "nvmlDeviceGetFieldValues", handle, list(_FIELDS.values()))
        found = {}
        for name, value in zip(_FIELDS, values or ()):  # noqa: B905  strict needs Python 3.10
            number = self.number(name, value)
            if number is not None:
                found[name] = number
        return found

    def counted(self, handle: "Handle", states: "Iterable[int]") -> "Optional[Dict[str, object]]":
        """Return the error counters of the active NVLinks: how many links have any, how many are refused, and of each
        link those that are not 0. None without such links.
        """
        active = [link for link, state in enumerate(states) if state == _ACTIVE]
        if not active:
            return None
        read, refused, errors = 0, 0, []
        for link in active:
            fields = [(field, link) for field in _LINK_FIELDS.values()]
            values = list(self.ask("counted", "nvmlDeviceGetFieldValues", handle, fields) or ())
            found = {name: self.number("counted", value) for name, value in zip(_LINK_FIELDS, values)}  # noqa: B905
            if any(number is not None for number in found.values()):
                read += 1
            elif any(value.nvmlReturn == _NO_PERMISSION for value in values):
                refused += 1
            if any(found.values()):
                errors.append([link, {name: number for name, number in found.items() if number}])
        return {"read": read, "refused": refused, "errors": errors}

    def number(self, name: str, value: "Value") -> "Optional[int]":
        """Return the number in a field's value; None where there is none, or it fails: that is noted under `name`."""
        if value.nvmlReturn == 0 and value.valueType < len(_KINDS):
            return int(getattr(value.value, _KINDS[value.valueType]))
        if value.nvmlReturn not in (0, *_UNSUPPORTED):
            self.errors[name] = [value.nvmlReturn, _text(self.nvml.nvmlErrorString(value.nvmlReturn))[:200]]
        return None

    def fabric(self, handle: "Handle") -> "Optional[Dict[str, object]]":
        """Return the state of the NVSwitch fabric as this GPU reports it; None where it knows of none."""
        try:
            info = self.nvml.c_nvmlGpuFabricInfo_v2_t()
        except AttributeError:
            return None
        if self.ask("fabric", "nvmlDeviceGetGpuFabricInfoV", handle, self.nvml.byref(info)) is None:
            return None
        return {
            "state": info.state, "status": info.status, "clique": info.cliqueId, "health": info.healthMask,
            "cluster": "".join("{:02x}".format(byte) for byte in info.clusterUuid),
        }  # fmt: skip


if __name__ == "__main__":
    main()
