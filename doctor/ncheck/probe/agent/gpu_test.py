"""Each GPU of this node tested alone, all at once, and then the copies between them; a child for each, with a deadline.

While they compute, NVML is asked for clocks, power, temperature and PCIe; counters of errors are read before and after.
"""

import glob
import os
import threading
import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.gpus import _nvml, started
from ncheck.agent.answers.nccl_job import child_environment
from ncheck.agent.answers.nccl_places import layout, library_path
from ncheck.agent.files import line_of
from ncheck.agent.keeping import KeptChild

READS = (
    "one process a GPU, of the job's python3, run with -B -S -c: libcuda.so.1, and the job's cuBLAS if it has one",
    "NVML meanwhile: clocks and why they are low, power, temperature, PCIe generation and width, errors of each GPU",
)

_CUBLAS = ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11")
_FOR_PAIRS = 0.3  # of the time
_SPARE = 3.0  # seconds
_EVERY = 0.3  # seconds between two looks by NVML
_MOST_NOTES = 4
# With NVML's names and values.
NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0
NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0
NVML_NVLINK_ERROR_DL_REPLAY, NVML_NVLINK_ERROR_DL_RECOVERY = 0, 1
_LINKS = 36  # the most that NVML knows


def answer(sources, arguments, timeout):
    """Return {"gpus": [what each child said], "pairs": [[from, to, GB/s]], "words": why no pair was measured}.

    It is asked {"gpus": [{"uuid", "pci"}], "seconds": how long each computes, "timeout": seconds for all}.
    """
    if not sources.job.path:
        raise MissingError("no python3 in the job's environment to test the GPUs with")
    program = sources.fetch("gpu-program")
    if not program:
        raise MissingError("the program that tests a GPU did not come from the head")
    limit = min(timeout, arguments.get("timeout") or timeout)
    ends = time.monotonic() + limit
    argv = [sources.job.path, "-B", "-S", "-c", program]
    alone = ends - _FOR_PAIRS * limit if len(arguments["gpus"]) > 1 else ends
    tests = [_Test(sources, argv, gpu, arguments["seconds"], alone) for gpu in arguments["gpus"]]
    nvml = _Watching(sources, tests)
    for test in tests:
        test.thread.join()
    nvml.stop()
    pairs, words = _pairs(sources, argv, arguments["gpus"], ends)
    return {"gpus": [dict(test.said, **nvml.seen(test)) for test in tests], "pairs": pairs, "words": words}


class _Test:
    """The child of one GPU, read by a thread until it ends or its time is over."""

    def __init__(self, sources, argv, gpu, seconds, ends):
        self.gpu, self.ends, self.loading = gpu, ends, False
        self.said = dict(gpu, figures={}, results={}, notes=[], step="start", failure=None, done=False)
        self.child = _child(sources, argv, gpu["uuid"])
        task = {
            "seconds": seconds,
            "cpus": _near(gpu["pci"]),
            "blas": _cublas(sources.job),
            "deadline": _deadline(ends),
        }
        self.thread = threading.Thread(target=self._read, args=(task,), daemon=True)
        self.thread.start()

    def _read(self, task):
        try:
            self.child.send(task)
            for message in self.child.messages(self.ends):
                if isinstance(message, dict):
                    self._take(message)
                else:
                    self.said["words"] = message[:200]
        except OSError:
            pass  # it has ended: nothing is done
        finally:
            self.loading = False
            self.said["ended"] = not self.child.lives
            self.child.end()

    def _take(self, message):
        for name in ("figures", "results"):
            self.said[name].update(message.get(name) or {})
        if "notes" in message:
            self.said["notes"] = (self.said["notes"] + [message["notes"]])[:_MOST_NOTES]
        self.loading = message.get("loading", self.loading)
        for name in ("step", "failure", "done"):
            self.said[name] = message.get(name, self.said[name])


def _deadline(ends):
    """Return the seconds after which a child ends by itself, if nobody has ended it at the time limit."""
    return ends - time.monotonic() + _SPARE


def _child(sources, argv, shown):
    variables = {"CUDA_VISIBLE_DEVICES": shown, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return KeptChild(argv, child_environment(sources.job.environment, variables, {}))


def _near(pci):
    """Return the CPUs of the GPU's own NUMA node; none where the system does not say."""
    cpus = []
    for part in filter(None, (line_of("/sys/bus/pci/devices/{}/local_cpulist".format(pci)) or "").split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def _cublas(job):
    """Return the files of cuBLAS that the job may have, and the names that the loader may know."""
    said = layout(job)
    folders = [os.path.join(folder, "nvidia", "*", "lib") for folder in said["path"]]
    folders += [os.path.join(said["torch"], "lib")] if said["torch"] else []
    folders += [*library_path(job.environment), "/usr/local/cuda/lib64", "/opt/conda/lib"]
    found = [path for folder in folders for name in _CUBLAS for path in glob.glob(os.path.join(folder, name))]
    return [*found[:4], *_CUBLAS]


def _pairs(sources, argv, gpus, ends):
    """Return what the copies between the GPUs reached, and why some were not measured."""
    if len(gpus) < 2:
        return [], ""
    pairs, words, done = [], "", False
    child = _child(sources, argv, ",".join(gpu["uuid"] for gpu in gpus))
    step = "start"
    try:
        child.send({"peers": True, "seconds": 0, "deadline": _deadline(ends)})
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

    def __init__(self, sources, tests):
        self.tests, self.looks, self.why, self.over = tests, {id(test): [] for test in tests}, "", threading.Event()
        self.handles, self.serials, self.before, self.after = {}, {}, {}, {}
        try:
            self.nvml = started(_nvml(sources.fetch))
        except (OSError, MissingError) as error:
            self.nvml, self.why = None, str(error)[:200]
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        if not self.nvml:
            return
        for test in self.tests:
            self.handles[id(test)] = self._ask("nvmlDeviceGetHandleByUUID", test.gpu["uuid"].encode())
            if self.handles[id(test)] is not None:
                self.serials[id(test)] = self._ask("nvmlDeviceGetSerial", self.handles[id(test)])
            self.before[id(test)] = self._counters(self.handles[id(test)])
        while not self.over.wait(_EVERY):
            for test in self.tests:
                if test.loading and self.handles[id(test)] is not None:
                    self.looks[id(test)].append(self._look(self.handles[id(test)]))
        for test in self.tests:
            self.after[id(test)] = self._counters(self.handles[id(test)])

    def stop(self):
        """End the looks; NVML that hangs is left behind, and ends with the agent."""
        self.over.set()
        self.thread.join(2.0)

    def seen(self, test):
        """Return {"serial", "looks", "before", "after", "unwatched": why there is none}."""
        looks = self.looks[id(test)]
        why = self.why or ("" if looks else "NVML was not asked while it was busy")
        return {
            "serial": self.serials.get(id(test)) or "", "looks": looks[-20:], "unwatched": why,
            "before": self.before.get(id(test), {}), "after": self.after.get(id(test), {}),
        }  # fmt: skip

    def _ask(self, name, *arguments):
        try:
            return getattr(self.nvml, name)(*arguments)
        except (self.nvml.NVMLError, AttributeError):
            return None

    def _look(self, handle):
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

    def _counters(self, handle):
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
