"""How each GPU is, by NVML in a child of its own: one GPU that hangs leaves what the others said."""

import json
import os
import re
import sys
import time

from ncheck.agent.answers.gpus import kernel_address, need_device, nvml_text
from ncheck.agent.commands import run
from ncheck.agent.files import line_of, matching
from ncheck.agent.long_lived_child import LongLivedChild, source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Container, Dict, List, Optional, Union

    from ncheck.agent.sources import Sources

READS = (
    "NVML, in a child process: memory errors, clocks, power limit, temperature, modes and firmware of each GPU",
    "NVML, in the same: NVLink, PCIe replays, how busy the GPU is, and the recovery action",
    "/proc/driver/nvidia/version, /proc/driver/nvidia/gpus/*/information, /dev/nvidia*, which are opened and closed",
    "/dev/nvidia-caps-imex-channels/*, /usr/local/cuda*/compat",
)

GPUS = "/proc/driver/nvidia/gpus"
DEVICE = "/dev/nvidia{}"
_PROGRAM = "ncheck.agent.answers.nvml_health"
_CHANNELS = "/dev/nvidia-caps-imex-channels/channel*"
_COMPATIBILITY = ("/usr/local/cuda*/compat/libcuda.so.1", "/usr/local/cuda*/compat/lib*/libcuda.so.1")
_SPARE = 1.0  # seconds in which the child is ended and the rest is read


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return what NVML and the driver say. MissingError with no NVIDIA device."""
    need_device()
    ends = time.monotonic() + timeout
    result = asked(nvml_text(sources), max(_SPARE, timeout - _SPARE))
    listed = {kernel_address(gpu.get("pci") or "") for gpu in result["gpus"]}
    channels = matching(_CHANNELS)
    result.update(
        module=line_of("/proc/driver/nvidia/version") or "",
        unlisted=unlisted(listed, max(_SPARE, ends - time.monotonic())) if result["done"] else [],
        channels=len(channels),
        usable_channels=sum(os.access(path, os.R_OK | os.W_OK) for path in channels),
        compatibility=sorted(path for pattern in _COMPATIBILITY for path in matching(pattern))[:8],
    )
    return result


def asked(pynvml: "Optional[str]", seconds: float) -> "Dict[str, Any]":
    """Return what the child prints in that time; `at` is the GPU that it was asking when the time was over,
    `silent` the seconds since its last word.
    """
    result: "Dict[str, Any]" = {
        "library": "",
        "failed": None,
        "gpus": [],
        "busy": [],
        "at": None,
        "done": False,
        "words": "",
    }
    since = time.monotonic()
    ends = since + seconds
    text = source_of(_PROGRAM)
    child = LongLivedChild([sys.executable, "-E", "-B", *(["-S"] if pynvml else []), "-c", text], os.environ)
    try:
        child.send({"pynvml": pynvml or ""})
        for line in child.messages(ends):
            result.update(_merged(line, result))
            since = time.monotonic()
            if result["done"] or result["failed"]:
                break
        result.update(ended=not child.lives, silent=time.monotonic() - since)
    finally:
        child.end()
    return result


def _merged(line: "Union[str, Dict[str, Any]]", result: "Dict[str, Any]") -> "Dict[str, object]":
    """Return what a line of the child adds; the last of what it or a library prints beside that is kept."""
    if not isinstance(line, dict):
        return {"words": line[:200]}
    if "gpu" in line:
        return {"gpus": result["gpus"] + [line["gpu"]], "at": None}
    return {name: line[name] for name in line if name in result}


# Opening a GPU that is broken may take long, or never end: it is done in a child, as NVML is asked.
_OPEN = """
import json, os, sys
def why(path):
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except (PermissionError, FileNotFoundError):
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""
for path in sys.argv[1:]:
    print(json.dumps(why(path)), flush=True)
"""


def unlisted(listed: "Container[str]", seconds: float) -> "List[List[str]]":
    """Return [address, why] of the GPUs that the driver knows, NVML does not list, and that do not open.

    One that this user or container has no right to, or no device file of, is not his: nothing is said of it.
    """
    places = {path.split("/")[-2]: _device(path) for path in matching(GPUS + "/*/information")}
    asked_for = [
        (address, device) for address, device in places.items() if device and kernel_address(address) not in listed
    ]
    if not asked_for:
        return []
    argv = [sys.executable, "-E", "-B", "-S", "-c", _OPEN] + [device for _, device in asked_for]
    reply = run(argv, seconds)
    words = [json.loads(line) for line in reply.get("stdout", "").splitlines()]
    if len(words) < len(asked_for) and reply["status"] == "timeout":
        words.append("no answer in time")  # of the one that it was opening; those after it are not known
    return [[address, why] for (address, _), why in zip(asked_for, words) if why]  # noqa: B905  needs Python 3.10


def _device(path: str) -> "Optional[str]":
    """Return the device file of a GPU by its information; None where it has none, or is excluded on purpose."""
    try:
        with open(path) as information:
            text = information.read(4096)
    except OSError:
        return None
    found = re.search(r"^Device Minor:\s*(\d+)", text, re.MULTILINE)
    excluded = re.search(r"^GPU Excluded:\s*Yes", text, re.MULTILINE)
    return DEVICE.format(found.group(1)) if found and not excluded else None
