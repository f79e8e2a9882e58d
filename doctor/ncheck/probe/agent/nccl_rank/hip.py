"""The same driver calls on AMD's GPUs: HIP, libamdhip64.so, by ctypes. It is the copy that RCCL has loaded itself."""

import ctypes
import os

from ncheck.probe.agent.nccl_rank.cuda import Cuda
from ncheck.probe.agent.nccl_rank.messages import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

    from ncheck.probe.agent.nccl_rank.cuda import Context

LIBRARY = "libamdhip64"
_FILES = tuple(LIBRARY + ".so" + end for end in (".7", ".6", ".5", ""))
# What HIP calls otherwise than CUDA's driver; elsewhere only the first letters differ. A context is a device's number.
_NAMES = {
    "cuDeviceGetCount": "hipGetDeviceCount",
    "cuCtxSetCurrent": "hipSetDevice",
    "cuCtxEnablePeerAccess": "hipDeviceEnablePeerAccess",
    "cuLaunchKernel": "hipModuleLaunchKernel",
    "cuMemAlloc_v2": "hipMalloc",
    "cuStreamCreate": "hipStreamCreateWithFlags",
    "cuEventCreate": "hipEventCreateWithFlags",
}


def is_rccl(path: str) -> bool:
    """Return whether a library is RCCL, by the name of its file."""
    return os.path.basename(path).startswith("librccl.")


class HipNames:
    """What HIP calls the functions of CUDA's driver, and how it words an error."""

    kind, file = "HIP", LIBRARY
    library: "ctypes.CDLL"

    def name(self, name: str) -> str:
        return _NAMES.get(name) or "hip" + name[2:].replace("_v2", "")

    def words(self, code: int) -> str:
        self.library.hipGetErrorString.restype = ctypes.c_char_p
        return (self.library.hipGetErrorString(ctypes.c_int(code)) or b"unknown error").decode("utf-8", "replace")


class Hip(HipNames, Cuda):
    """One device, by its index among those that the job's variables leave."""

    def load(self) -> "ctypes.CDLL":
        for file in (*_mapped(), *_FILES):
            try:
                return ctypes.CDLL(file)
            except OSError:  # the next one may be there
                continue
        raise RankError("no {} of ROCm could be loaded".format(self.file))

    def driver(self) -> str:
        """Return HIP's version, "6.4": HIP counts in ten millions."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return "{}.{}".format(number.value // 10000000, number.value % 10000000 // 100000)

    def enter(self, index: int) -> "Context":
        count, device = ctypes.c_int(), ctypes.c_int(index)
        self.call("cuDeviceGetCount", ctypes.byref(count))
        self.need(index, count.value)
        self.call("cuCtxSetCurrent", device)
        return device


def _mapped() -> "List[str]":
    """Return the copy that this process has loaded already: streams of another one would mean nothing to RCCL."""
    try:
        with open("/proc/self/maps") as maps:
            return [line.split(None, 5)[-1].strip() for line in maps if "/" + LIBRARY + ".so" in line][:1]
    except OSError:
        return []
