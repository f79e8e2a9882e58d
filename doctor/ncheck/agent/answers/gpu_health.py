"""How each GPU is, by NVML in a child of its own: one GPU that hangs leaves what the others said."""

import glob
import os
import re
import sys
import time
from importlib.util import find_spec

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.gpus import nvml_text, on_pci
from ncheck.agent.files import line_of
from ncheck.agent.keeping import KeptChild

READS = (
    "NVML, in a child process: memory errors, clocks, temperature, modes, NVLink and recovery action of each GPU",
    "/proc/driver/nvidia/version, /proc/driver/nvidia/gpus/*/information, /dev/nvidia*, which are opened and closed",
    "/dev/nvidia-caps-imex-channels/*, /usr/local/cuda*/compat",
)

GPUS = "/proc/driver/nvidia/gpus"
DEVICE = "/dev/nvidia{}"
_PROGRAM = "ncheck.agent.answers.nvml_health"
_CHANNELS = "/dev/nvidia-caps-imex-channels/channel*"
_COMPATIBILITY = ("/usr/local/cuda*/compat/libcuda.so.1", "/usr/local/cuda*/compat/lib*/libcuda.so.1")
_SPARE = 1.0  # seconds in which the child is ended and the rest is read


def answer(sources, arguments, timeout):
    """Return what NVML and the driver say: see the package. MissingError with no NVIDIA device."""
    if not on_pci() and not os.path.exists("/dev/nvidiactl") and not os.path.exists("/proc/driver/nvidia"):
        raise MissingError("no NVIDIA device on PCI, no /dev/nvidiactl, no driver")
    said = asked(nvml_text(sources), max(_SPARE, timeout - _SPARE))
    channels = glob.glob(_CHANNELS)
    said.update(
        module=line_of("/proc/driver/nvidia/version") or "",
        unlisted=unlisted({_short(gpu.get("pci") or "") for gpu in said["gpus"]}) if said["done"] else [],
        channels=len(channels),
        usable_channels=sum(os.access(path, os.R_OK | os.W_OK) for path in channels),
        compatibility=sorted(path for pattern in _COMPATIBILITY for path in glob.glob(pattern))[:8],
    )
    return said


def asked(pynvml, seconds):
    """Return what the child prints in that time; `at` is the GPU that it was asking when the time was over,
    `silent` the seconds since its last word.
    """
    said = {
        "driver": "",
        "library": "",
        "count": None,
        "failed": None,
        "gpus": [],
        "at": None,
        "done": False,
        "words": "",
    }
    since = time.monotonic()
    ends = since + seconds
    text = find_spec(_PROGRAM).loader.get_source(_PROGRAM)
    child = KeptChild([sys.executable, "-B", *(["-S"] if pynvml else []), "-c", text], os.environ)
    try:
        child.say({"pynvml": pynvml or ""})
        for line in child.told(ends):
            said.update(_heeded(line, said))
            since = time.monotonic()
            if said["done"] or said["failed"]:
                break
        said.update(ended=not child.lives, silent=time.monotonic() - since)
    finally:
        child.end()
    return said


def _heeded(line, said):
    """Return what a line of the child adds; the last of what it or a library prints beside that is kept."""
    if not isinstance(line, dict):
        return {"words": line[:200]}
    if "gpu" in line:
        return {"gpus": said["gpus"] + [line["gpu"]], "at": None}
    return {name: line[name] for name in line if name in said}


def unlisted(listed):
    """Return [address, why] of the GPUs that the driver knows, NVML does not list, and that do not open.

    One that this user or container has no right to, or no device file of, is not his: nothing is said of it.
    """
    found = []
    for path in sorted(glob.glob(GPUS + "/*/information")):
        address = path.split("/")[-2]
        minor = _minor(path)
        if _short(address) in listed or minor is None:
            continue
        try:
            os.close(os.open(DEVICE.format(minor), os.O_RDWR | os.O_CLOEXEC))
        except (PermissionError, FileNotFoundError):
            continue
        except OSError as error:
            found.append([address, error.strerror or str(error)])
    return found


def _minor(path):
    try:
        with open(path) as information:
            found = re.search(r"^Device Minor:\s*(\d+)", information.read(4096), re.MULTILINE)
    except OSError:
        return None
    return found and found.group(1)


def _short(address):
    """Return an address as the kernel writes it: NVML has eight digits for the domain."""
    domain, _, rest = address.lower().partition(":")
    return domain[-4:] + ":" + rest
