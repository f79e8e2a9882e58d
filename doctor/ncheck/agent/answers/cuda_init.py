"""Whether CUDA starts for the job: libcuda.so.1, opened in its environment, and a context on each GPU.

One GPU at a time: a driver that hangs with one of them may hold up the others, and the first that hangs is the cause.
cuInit alone wakes every GPU that CUDA_VISIBLE_DEVICES shows, which takes 1 to 3 s each where persistence mode is off
and no program has them open; a context takes some 0.3 s more, and some 500 MB of the GPU's memory meanwhile. No context
is opened where it could disturb a job: on a GPU whose compute mode lets one program in, and on one that is nearly full.
"""

import json
import time

from ncheck.agent.answers.gpus import need_device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Sources

READS = (
    "in a child process with the job's environment: cuInit of libcuda.so.1, on each GPU a context and 4 KiB of memory;",
    "as any CUDA program, it lets the driver load nvidia-uvm. Not on GPUs that are nearly full, nor where the compute",
    "mode lets one program in. NVML: the memory that is free; /dev/nvidia-uvm, which is opened and closed",
)

_ROOM = 1 << 30  # bytes that must be free on a GPU: a context takes half of it at most
_SPARE = 3  # seconds after which the child ends by itself, if nobody has ended it at the time limit

# Old interpreters can run it, too. Each step is printed before it is done.
_ASK = r"""
import ctypes, json, os, resource, signal, sys, time
room, began, where = int(sys.argv[2]), float(sys.argv[3]), {}
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm(int(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
class Failed(Exception): pass
def say(**words):
    sys.stdout.write("\nncheck:" + json.dumps(words) + "\n")
    sys.stdout.flush()
def begin(name): say(at=dict(where, function=name, after=max(0.0, time.time() - began)))
def fail(name, code, words): raise Failed({"function": name, "code": code, "words": words})
def call(name, *arguments):
    begin(name)
    function = getattr(cuda, name, None)
    if function is None: fail(name, None, "libcuda.so.1 has no such function")
    code, words = function(*arguments), ctypes.c_char_p()
    if not code: return
    begin("cuGetErrorString")
    if hasattr(cuda, "cuGetErrorString"): cuda.cuGetErrorString(code, ctypes.byref(words))
    fail(name, code, (words.value or b"").decode("utf-8", "replace"))
def load(name):
    begin("dlopen")
    try: return ctypes.CDLL(name)
    except OSError as error: fail("dlopen", None, str(error))
def free(pci):
    begin("nvmlDeviceGetMemoryInfo")
    handle, sizes = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        failed = nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByPciBusId_v2(pci, ctypes.byref(handle))
        return None if failed or nvml.nvmlDeviceGetMemoryInfo(handle, sizes) else sizes[1]
    except (OSError, AttributeError): return None
def tried(index):
    number, mode, pci = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(32)
    call("cuDeviceGet", ctypes.byref(number), index)
    call("cuDeviceGetPCIBusId", pci, 32, number)
    where["pci"] = pci.value.decode()
    call("cuDeviceGetAttribute", ctypes.byref(mode), 20, number)  # CU_DEVICE_ATTRIBUTE_COMPUTE_MODE
    if mode.value: return "exclusive"
    left = free(pci.value)
    if left is not None and left < room: return "full"
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(4096))
    call("cuMemFree_v2", address)
    call("cuCtxSetCurrent", None)
    release = "cuDevicePrimaryCtxRelease"
    call(release + "_v2" if hasattr(cuda, release + "_v2") else release, number)
    return ""
def uvm():
    try: os.close(os.open("/dev/nvidia-uvm", os.O_RDWR))
    except OSError as error: return error.strerror
    return ""
try:
    cuda = load("libcuda.so.1")
    paths = [line.split(None, 5)[-1].strip() for line in open("/proc/self/maps") if "libcuda.so" in line]
    say(library=paths[0] if paths else "")
    version, count = ctypes.c_int(), ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    say(version=version.value)
    call("cuInit", 0)
    call("cuDeviceGetCount", ctypes.byref(count))
    for index in range(min(count.value, 64)):
        where = {"index": index, "pci": ""}
        try: device = {"untried": tried(index), "failed": None}
        except Failed as error: device = {"untried": "", "failed": error.args[0]}
        say(device=dict(where, **device))
    say(done=True)
except Failed as error: say(failed=error.args[0], uvm=uvm())
os._exit(0)
"""


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return what CUDA says. MissingError with no NVIDIA device: no child is started then."""
    need_device()
    return asked(sources.job, timeout)


def asked(job: "JobSetup", timeout: float) -> "Dict[str, Any]":
    """Return what the child says, and how it ended.

    `at` is the step that it began last; `silent`: seconds since then, where it was ended at the time limit.
    """
    environment = dict(job.environment, CUDA_CACHE_DISABLE="1")  # nothing is written into ~/.nv
    words = [str(int(timeout) + _SPARE), str(_ROOM), repr(time.time())]  # an interpreter may start slowly
    reply = job.run(_ASK, words, timeout, environment)
    result = _parsed(reply.get("stdout", ""))
    late = reply["status"] == "timeout"
    lines = reply.get("stderr", "").strip().splitlines()
    result.update(
        late=late,
        silent=max(0.0, timeout - result["at"]["after"]) if late and result["at"] else 0.0,
        exit_status=reply.get("exit_status"),
        words=(lines[-1] if lines else reply.get("reason", ""))[:200],
    )
    return result


def _parsed(output: str) -> "Dict[str, Any]":
    result: "Dict[str, Any]" = {
        "library": "",
        "version": None,
        "failed": None,
        "uvm": "",
        "devices": [],
        "at": None,
        "done": False,
    }
    for line in output.splitlines():
        if line.startswith("ncheck:{") and line.endswith("}"):  # it may have been ended in the middle of its last line
            message = json.loads(line[len("ncheck:") :])
            if "device" in message:
                result["devices"].append(message["device"])
            result.update((name, message[name]) for name in message if name in result)
    return result
