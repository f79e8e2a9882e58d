"""Each GPU of this node tested alone, all at once, and then the copies between them; a child for each, with a deadline.

While they compute, NVML is asked for clocks, power, temperature and PCIe; counters of errors are read before and after.
Of AMD's GPUs, sysfs has these.
"""

import glob
import os
import threading
import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.gpus import _nvml, started
from ncheck.agent.answers.nccl_job import child_environment
from ncheck.agent.answers.nccl_places import layout
from ncheck.agent.files import line_of, number_in
from ncheck.agent.loader import library_path
from ncheck.agent.long_lived_child import LongLivedChild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Arguments, Sources

    Gpu = Dict[str, str]  # "uuid" and "pci"
    Task = Dict[str, Any]
    Handle = Any  # NVML's, or a folder of sysfs

READS = (
    "one process per GPU, of the job's python3, run with -B -S -c: libcuda.so.1, and the job's cuBLAS if it has one",
    "NVML meanwhile: clocks and why they are low, power, temperature, PCIe generation and width, errors of each GPU",
    "of AMD instead: libamdhip64, libhiprtc and librocblas",
    "of AMD in /sys/bus/pci/devices: mem_info_vram_*, pp_dpm_sclk, hwmon, *_link_*, serial_number, counts of errors",
)

_PCI = "/sys/bus/pci/devices/{}/"
_IDLE = 0.1  # of the memory may be in use
_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}  # of PCIe, by GT/s
_NO_CHOICE = dict.fromkeys(("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"))
# By their use, the newest first; those of AMD are also found without a version, as in torch's own folder.
_LIBRARIES: "Dict[str, Dict[str, Sequence[str]]]" = {
    "NVIDIA": {"blas": ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11")},
    "AMD": {
        "blas": ("librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so"),
        "hip": ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"),
        "compilers": ("libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so"),
    },
}
_FOR_PAIRS = 0.3  # of the time
_SPARE = 3.0  # seconds
_TURN = 5.0  # seconds that a GPU waits for the others to copy; all of them need one or two
_EVERY = 0.3  # seconds between two looks by NVML
_MOST_NOTES = 4
# With NVML's names and values.
NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0
NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0
NVML_NVLINK_ERROR_DL_REPLAY, NVML_NVLINK_ERROR_DL_RECOVERY = 0, 1
_LINKS = 36  # the most that NVML knows


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return {"gpus": [what each child said], "pairs": [[from, to, GB/s]], "words": why no pair was measured}.

    It is asked {"gpus": [{"uuid", "pci"}], "vendor", "seconds": how long each computes, "timeout": seconds for all,
    "force": true to test GPUs of AMD that are in use: the head knows that of NVIDIA's}.
    """
    if not sources.job.path:
        raise MissingError("no python3 in the job's environment to test the GPUs with")
    program = sources.fetch("gpu-program")
    if not program:
        raise MissingError("the program that tests a GPU did not come from the head")
    vendor = arguments.get("vendor", "NVIDIA")
    if vendor == "AMD" and not arguments.get("force"):
        _need_idle(arguments["gpus"])
    limit = min(timeout, arguments.get("timeout") or timeout)
    ends = time.monotonic() + limit
    argv = [sources.job.path, "-B", "-S", "-c", program]
    alone = ends - _FOR_PAIRS * limit if len(arguments["gpus"]) > 1 else ends
    task = dict(_libraries(sources.job, vendor), seconds=arguments["seconds"])
    link = threading.Lock()
    tests = [_Test(sources, argv, gpu, task, alone, link) for gpu in arguments["gpus"]]
    watching = (_WatchingAmd if vendor == "AMD" else _Watching)(sources, tests)
    for test in tests:
        test.thread.join()
    watching.stop()
    pairs, words = _pairs(sources, argv, arguments["gpus"], task, ends)
    return {
        "gpus": [dict(test.result, **watching.seen(test)) for test in tests],
        "pairs": pairs,
        "words": words,
        "vendor": vendor,
    }


def _need_idle(gpus: "Iterable[Gpu]") -> None:
    """Raise MissingError where a GPU of AMD is in use, or nobody knows: its tools do not say."""
    for gpu in gpus:
        used, total = (number_in(_PCI.format(gpu["pci"]) + "mem_info_vram_" + name) for name in ("used", "total"))
        if used is None or not total:
            raise MissingError("whether {} is in use is not known: no mem_info_vram_used".format(gpu["pci"]))
        if used > _IDLE * total:
            raise MissingError("{} is in use: {:.0%} of its memory".format(gpu["pci"], used / total))


class _Test:
    """The child of one GPU, read by a thread until it ends or its time is over. `link`: to the host, one at a time."""

    def __init__(  # noqa: PLR0913, PLR0917
        self, sources: "Sources", argv: "Sequence[str]", gpu: "Gpu", task: "Task", ends: float, link: "threading.Lock"
    ) -> None:
        self.gpu, self.ends, self.loading, self.link, self.copies = gpu, ends, False, link, False
        self.result: "Dict[str, Any]" = dict(
            gpu, figures={}, results={}, notes=[], step="start", failure=None, done=False
        )
        self.child = _child(sources, argv, [gpu], task)
        task = dict(task, cpus=_near(gpu["pci"]), deadline=_deadline(ends), pci=[gpu["pci"]])
        self.thread = threading.Thread(target=self._read, args=(task,), daemon=True)
        self.thread.start()

    def _read(self, task: "Task") -> None:
        try:
            self.child.send(task)
            for message in self.child.messages(self.ends):
                if isinstance(message, dict):
                    self._take(message)
                else:
                    self.result["words"] = message[:200]
        except OSError:
            pass  # it has ended: nothing is done
        finally:
            self.loading = False
            self._turn(wanted=False)
            self.result["ended"] = not self.child.lives
            self.child.end()

    def _take(self, message: "Dict[str, Any]") -> None:
        for name in ("figures", "results"):
            self.result[name].update(message.get(name) or {})
        if "notes" in message:
            self.result["notes"] = (self.result["notes"] + [message["notes"]])[:_MOST_NOTES]
        if "turn" in message:
            self._turn(wanted=message["turn"])
        self.loading = message.get("loading", self.loading)
        for name in ("step", "failure", "done"):
            self.result[name] = message.get(name, self.result[name])

    def _turn(self, *, wanted: bool) -> None:
        """Let it copy to and from the host when no other GPU does, or not at all; or let the next one."""
        if wanted:
            self.copies = self.link.acquire(timeout=max(0.0, min(_TURN, self.ends - time.monotonic())))
            self.child.send({"turn": self.copies})
        elif self.copies:
            self.copies = False
            self.link.release()


def _deadline(ends: float) -> float:
    """Return the seconds after which a child ends by itself, if nobody has ended it at the time limit."""
    return ends - time.monotonic() + _SPARE


def _child(sources: "Sources", argv: "Sequence[str]", gpus: "Iterable[Gpu]", task: "Task") -> "LongLivedChild":
    shown = ",".join(gpu["uuid"] for gpu in gpus)
    variables: "Dict[str, Optional[str]]" = {"CUDA_VISIBLE_DEVICES": shown, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if "hip" in task:
        variables = _NO_CHOICE  # HIP finds them by their addresses
    return LongLivedChild(argv, child_environment(sources.job.environment, variables, {}))


def _near(pci: str) -> "List[int]":
    """Return the CPUs of the GPU's own NUMA node; none where the system does not say."""
    cpus: "List[int]" = []
    for part in filter(None, (line_of("/sys/bus/pci/devices/{}/local_cpulist".format(pci)) or "").split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def _libraries(job: "JobSetup", vendor: str) -> "Dict[str, List[str]]":
    """Return the files of each library that the job may have, and the names that the loader may know."""
    python = layout(job)
    folders = [os.path.join(folder, "nvidia", "*", "lib") for folder in python["path"]]
    folders += [os.path.join(python["torch"], "lib")] if python["torch"] else []
    folders += [*library_path(job.environment), "/usr/local/cuda/lib64", "/opt/conda/lib", "/opt/rocm/lib"]

    def files(names: "Sequence[str]") -> "List[str]":
        found = [path for folder in folders for name in names for path in glob.glob(os.path.join(folder, name))]
        return [*found[:4], *names]

    return {use: files(names) for use, names in _LIBRARIES[vendor].items()}


def _pairs(
    sources: "Sources", argv: "Sequence[str]", gpus: "Sequence[Gpu]", task: "Task", ends: float
) -> "Tuple[List[object], str]":
    """Return what the copies between the GPUs reached, and why some were not measured."""
    if len(gpus) < 2:
        return [], ""
    pairs: "List[object]" = []
    words, done = "", False
    child = _child(sources, argv, gpus, task)
    step = "start"
    try:
        child.send(dict(task, peers=True, deadline=_deadline(ends), pci=[gpu["pci"] for gpu in gpus]))
        for message in child.messages(ends):
            if not isinstance(message, dict):
                continue
            pairs += message.get("pairs") or []
            step, done = message.get("step", step), done or bool(message.get("done"))
            words = (message.get("failure") or {}).get("words", words)
    except OSError as error:
        words = str(error)
    finally:
        child.end()
    return pairs, "" if done else words or "its time was over in: " + step


class _Watching:
    """NVML's looks at each GPU while its child keeps it busy, and its counters before and after."""

    def __init__(self, sources: "Sources", tests: "Sequence[_Test]") -> None:
        self.tests, self.why, self.over = tests, "", threading.Event()
        # Each by the `id` of a test.
        self.looks: "Dict[int, List[Dict[str, object]]]" = {id(test): [] for test in tests}
        self.handles: "Dict[int, Handle]" = {}
        self.serials: "Dict[int, Optional[str]]" = {}
        self.before: "Dict[int, Dict[str, int]]" = {}
        self.after: "Dict[int, Dict[str, int]]" = {}
        self.nvml: "Any" = None
        try:
            self._start(sources)
        except (OSError, MissingError) as error:
            self.why = str(error)[:200]
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        if self.why:
            return
        for test in self.tests:
            self.handles[id(test)] = self._handle(test.gpu)
            if self.handles[id(test)] is not None:
                self.serials[id(test)] = self._serial(self.handles[id(test)])
            self.before[id(test)] = self._counters(self.handles[id(test)])
        while not self.over.wait(_EVERY):
            for test in self.tests:
                if test.loading and self.handles[id(test)] is not None:
                    self.looks[id(test)].append(self._look(self.handles[id(test)]))
        for test in self.tests:
            self.after[id(test)] = self._counters(self.handles[id(test)])

    def stop(self) -> None:
        """End the looks; NVML that hangs is left behind, and ends with the agent."""
        self.over.set()
        self.thread.join(2.0)

    def seen(self, test: "_Test") -> "Dict[str, object]":
        """Return {"serial", "looks", "before", "after", "unwatched": why there is none}."""
        looks = self.looks[id(test)]
        why = self.why or ("" if looks else "it was not looked at while it was busy")
        return {
            "serial": self.serials.get(id(test)) or "", "looks": looks[-20:], "unwatched": why,
            "before": self.before.get(id(test), {}), "after": self.after.get(id(test), {}),
        }  # fmt: skip

    def _start(self, sources: "Sources") -> None:
        self.nvml = started(_nvml(sources.fetch))

    def _handle(self, gpu: "Gpu") -> "Handle":
        return self._ask("nvmlDeviceGetHandleByUUID", gpu["uuid"].encode())

    def _serial(self, handle: "Handle") -> "Optional[str]":
        serial: "Optional[str]" = self._ask("nvmlDeviceGetSerial", handle)
        return serial

    def _ask(self, name: str, *arguments: object) -> "Handle":
        try:
            return getattr(self.nvml, name)(*arguments)
        except (self.nvml.NVMLError, AttributeError):
            return None

    def _look(self, handle: "Handle") -> "Dict[str, object]":
        return {
            "clock": self._ask("nvmlDeviceGetClockInfo", handle, NVML_CLOCK_SM),
            "most_clock": self._ask("nvmlDeviceGetMaxClockInfo", handle, NVML_CLOCK_SM),
            "throttled": self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle),
            "power": self._ask("nvmlDeviceGetPowerUsage", handle),
            "power_limit": self._ask("nvmlDeviceGetEnforcedPowerLimit", handle),
            "temperature": self._ask("nvmlDeviceGetTemperature", handle, NVML_TEMPERATURE_GPU),
            "generation": self._ask("nvmlDeviceGetCurrPcieLinkGeneration", handle),
            "most_generation": self._ask("nvmlDeviceGetMaxPcieLinkGeneration", handle),
            "width": self._ask("nvmlDeviceGetCurrPcieLinkWidth", handle),
            "most_width": self._ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
        }

    def _counters(self, handle: "Handle") -> "Dict[str, int]":
        if handle is None:
            return {}
        links = [
            self._ask("nvmlDeviceGetNvLinkErrorCounter", handle, link, counter)
            for link in range(_LINKS)
            for counter in (NVML_NVLINK_ERROR_DL_REPLAY, NVML_NVLINK_ERROR_DL_RECOVERY)
        ]
        counted = {
            "pcie_replays": self._ask("nvmlDeviceGetPcieReplayCounter", handle),
            "ecc": self._ask(
                "nvmlDeviceGetTotalEccErrors", handle, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC
            ),
            "nvlink": sum(number for number in links if number) if any(n is not None for n in links) else None,
        }
        return {name: number for name, number in counted.items() if number is not None}


class _WatchingAmd(_Watching):
    """The same of GPUs of AMD, as their driver has it in sysfs. What lowers a clock is not there."""

    def _start(self, _sources: "Sources") -> None:
        pass

    def _handle(self, gpu: "Gpu") -> "Handle":
        return _PCI.format(gpu["pci"])

    def _serial(self, folder: "Handle") -> "Optional[str]":
        return line_of(folder + "serial_number")

    def _look(self, folder: "Handle") -> "Dict[str, object]":
        clocks = (line_of(folder + "pp_dpm_sclk") or "").splitlines()  # 1: 2100Mhz *
        levels = [(int("".join(filter(str.isdigit, line.partition(":")[2])) or 0), "*" in line) for line in clocks]
        sensors = (glob.glob(folder + "hwmon/hwmon*/") or [folder])[0]
        power = number_in(sensors + "power1_average") or number_in(sensors + "power1_input")  # in microwatts
        limit, heat = number_in(sensors + "power1_cap"), number_in(sensors + "temp2_input")  # 2: the hottest spot
        look: "Dict[str, object]" = {
            "clock": next((clock for clock, now in levels if now), None),
            "most_clock": max((clock for clock, _ in levels), default=None),
            "power": power and power // 1000, "power_limit": limit and limit // 1000,
            "temperature": heat and heat // 1000, "throttled": None,
        }  # fmt: skip
        for ours, theirs in (("", "current"), ("most_", "max")):
            speed = (line_of(folder + theirs + "_link_speed") or "").partition(" ")[0]  # 32.0 GT/s PCIe
            look[ours + "generation"] = _GENERATIONS.get(speed)
            look[ours + "width"] = number_in(folder + theirs + "_link_width")
        return look

    def _counters(self, folder: "Handle") -> "Dict[str, int]":
        errors = (line_of(folder + "ras/umc_err_count") or "").partition("ue: ")[2].partition("\n")[0]
        counted = {
            "pcie_replays": number_in(folder + "pcie_replay_count"),
            "ecc": int(errors) if errors.isdecimal() else None,
        }
        return {name: number for name, number in counted.items() if number is not None}
