"""The GPUs as NVML reports them. The head sends pynvml only to nodes where PCI or the driver shows a device."""

import os
import pwd
import sys
import threading
import types

from ncheck.agent import proc
from ncheck.agent.answers import MissingError
from ncheck.agent.files import line_of, matching, need_sysfs
from ncheck.agent.isolated_calls import each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Type

    from ncheck.agent.sources import Sources

    Fetch = Optional[Callable[[str], Optional[str]]]  # a module's text from the head, by its name
    Nvml = Any  # pynvml, as the head sent it or as it is installed here
    Value = Any  # what one of its functions returns
    Ask = Callable[..., Value]

NVIDIA = "0x10de"
_DISPLAY = ("0x0300", "0x0302")  # VGA and 3D controllers: PCI classes of GPUs

READS = (
    "/sys/bus/pci/devices/*/{vendor,class}, /dev/nvidiactl, /proc/driver/nvidia; NVML stays open until the run ends",
    "NVML through pynvml, which is sent to nodes with an NVIDIA device: driver, CUDA, name, UUID, PCI address, memory",
    "NVML: the processes that use a GPU, by their numbers; /proc/PID/comm and the owner of at most 8 of them",
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return driver, CUDA and GPUs; MissingError with no NVIDIA device, OSError naming the function that failed.

    NVML stays open until the agent ends. Without persistence mode the driver starts all GPUs, a second each, for the
    first program that opens them: the other programs that are run here, nvidia-smi and CUDA, find them started.
    """
    devices = need_device()
    return driver_and_gpus(started(_nvml(lambda _: nvml_text(sources))), devices)


def need_device() -> "List[str]":
    """Return the PCI addresses of NVIDIA GPUs; MissingError with no NVIDIA device, OSError if none can be seen."""
    devices = on_pci()
    if not devices and not os.path.exists("/dev/nvidiactl") and not os.path.exists("/proc/driver/nvidia"):
        need_sysfs()
        raise MissingError("no NVIDIA device on PCI, no /dev/nvidiactl, no driver")
    return devices


def started(nvml: "Nvml") -> "Nvml":
    """Return pynvml once it has found the driver; OSError with NVML's own words."""
    _called("nvmlInit", nvml.nvmlInit, nvml.NVMLError)
    return nvml


def on_pci() -> "List[str]":
    """Return the PCI addresses of NVIDIA GPUs, driver or no driver."""
    found = []
    for path in matching("/sys/bus/pci/devices/*/vendor"):
        folder = os.path.dirname(path)
        if line_of(path) == NVIDIA and (line_of(folder + "/class") or "")[:6] in _DISPLAY:
            found.append(os.path.basename(folder))
    return found


_FETCHING = threading.Lock()


def nvml_text(sources: "Sources") -> "Optional[str]":
    """Return the text of pynvml as the head has it, which is sent once for all answers; None where it has none."""
    with _FETCHING:
        if "pynvml" not in sources.kept:
            sources.kept["pynvml"] = sources.fetch("pynvml")
        text: "Optional[str]" = sources.kept["pynvml"]
        return text


def _nvml(fetch: "Fetch") -> "Nvml":
    text = fetch("pynvml") if fetch else None
    if text:
        module = types.ModuleType("pynvml")
        sys.modules["pynvml"] = module
        exec(compile(text, "<ncheck pynvml>", "exec"), module.__dict__)  # noqa: S102  what the head itself sent
        return module
    try:
        import pynvml
    except ImportError:
        raise OSError("there is a GPU, but pynvml is installed neither on this node nor on the local host") from None
    return pynvml


def _called(name: str, function: "Callable[..., Any]", failing: "Type[Exception]", *arguments: object) -> "Value":
    try:
        return function(*arguments)
    except failing as error:
        raise OSError("{}: {}".format(name, error)) from None


_HANDLE, _NO_PERMISSION = "nvmlDeviceGetHandleByIndex", 4  # another job's GPU: NVML counts it all the same


def driver_and_gpus(nvml: "Nvml", devices: "Sequence[str]") -> "Dict[str, Any]":
    """Return what NVML tells of driver and GPUs; each function that fails is named in "errors"."""
    errors: "Dict[str, str]" = {}

    def ask(name: str, *arguments: object) -> "Value":
        """Return what NVML says, or None with the function's name noted."""
        try:
            value = getattr(nvml, name)(*arguments)
        except (nvml.NVMLError, AttributeError) as error:
            if name != _HANDLE or getattr(error, "value", None) != _NO_PERMISSION:
                errors[name] = str(error)
            return None
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value

    cuda = ask("nvmlSystemGetCudaDriverVersion_v2") or ask("nvmlSystemGetCudaDriverVersion")
    count = _called("nvmlDeviceGetCount", nvml.nvmlDeviceGetCount, nvml.NVMLError)
    gpus = [gpu for gpu in (_gpu(index, ask, nvml) for index in range(count)) if gpu]
    return {
        "driver": ask("nvmlSystemGetDriverVersion") or "",
        "cuda": "{}.{}".format(cuda // 1000, cuda % 1000 // 10) if cuda else "",
        "gpus": gpus,
        "owners": owners([pid for gpu in gpus for pid, _ in gpu["processes"] or ()]),
        "errors": errors,
        "devices": len(devices),
    }


def _gpu(index: int, ask: "Ask", nvml: "Nvml") -> "Optional[Dict[str, Any]]":
    handle = ask(_HANDLE, index)
    if handle is None:
        return None
    memory, pci = ask("nvmlDeviceGetMemoryInfo", handle), ask("nvmlDeviceGetPciInfo", handle)
    drawing = _processes(nvml, handle, "nvmlDeviceGetGraphicsRunningProcesses")
    return {
        "index": index, "name": ask("nvmlDeviceGetName", handle) or "", "uuid": ask("nvmlDeviceGetUUID", handle) or "",
        "pci": _address(pci), "memory_total": memory and memory.total, "memory_used": memory and memory.used,
        "processes": _processes(nvml, handle), "graphics": [pid for pid, _ in drawing or ()],
    }  # fmt: skip


def _processes(
    nvml: "Nvml", handle: object, function: str = "nvmlDeviceGetComputeRunningProcesses"
) -> "Optional[List[List[Any]]]":
    """Return [pid, bytes or None] of each process of others that computes there; None where they are not known.

    NVML numbers processes as the host does: inside a container these numbers mean others, or nobody.
    """
    try:
        if proc.link("self", "ns/pid") != _FIRST_NAMESPACE:
            return None
        running = getattr(nvml, function)(handle)
    except Exception:  # noqa: BLE001  pynvml raises all sorts where a driver is older than itself
        return None
    return [[one.pid, one.usedGpuMemory] for one in running if not is_ours(one.pid)]


def is_ours(pid: int) -> bool:
    """Return whether this agent has started it: cuda_init.py opens a context on each GPU, maybe at this moment."""
    return os.getpid() in (pid, *proc.above(pid))


def owners(pids: "Iterable[int]", root: str = proc.ROOT) -> "List[Dict[str, Any]]":
    """Return what is known of the first of these processes: name and user, "" where this user is not shown them.

    A user's name may come from a server that does not answer: the look-up is a child's, and the number does for it.
    """
    rows = [_owner(pid, root) for pid in list(dict.fromkeys(pids))[:_MOST_OWNERS]]
    users = sorted({row["user"] for row in rows if row["user"] is not None})
    names = dict(each(_user_name, users, _NAME_PATIENCE)) if users else {}
    for row in rows:
        name = names.get(row["user"])
        row["user"] = "" if row["user"] is None else name if isinstance(name, str) else str(row["user"])
    return rows


def _owner(pid: int, root: str) -> "Dict[str, Any]":
    """Return {"pid", "name", "user", "ended"}: the user's number; None, with no name, where /proc does not show it."""
    try:
        user = os.stat(proc.path(pid, root=root)).st_uid
    except OSError:
        return {"pid": pid, "name": "", "user": None, "ended": not _exists(pid)}
    return {"pid": pid, "name": proc.text(pid, "comm", root=root).strip()[:64], "user": user, "ended": False}


def _exists(pid: int) -> bool:
    """Return whether there is such a process: /proc with hidepid shows only this user's, a signal of 0 finds all."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name[:64]
    except KeyError:
        return str(user)


_MOST_OWNERS, _NAME_PATIENCE = 8, 2.0  # processes; seconds for the names of their users
_FIRST_NAMESPACE = "pid:[4026531836]"  # the kernel's PROC_PID_INIT_INO


def _address(pci: "Value") -> str:
    """Write 00000000:0F:00.0 as the kernel does: 0000:0f:00.0."""
    if pci is None:
        return ""
    return kernel_address(pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId))


def kernel_address(text: str) -> str:
    """Return 00000000:0F:00.0 as 0000:0f:00.0. A domain has four digits or more: that of a VMD is 10000."""
    domain, _, rest = text.lower().partition(":")
    return domain[:-4].lstrip("0") + domain[-4:] + ":" + rest
