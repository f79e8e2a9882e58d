"""The same driver calls on AMD's GPUs: HIP (libamdhip64), its compiler for kernels (libhiprtc), and rocBLAS."""

import ctypes

from ncheck.probe.agent.gpu_alone import kernels
from ncheck.probe.agent.gpu_alone.device import Blas, Device
from ncheck.probe.agent.nccl_rank.hip import HipNames
from ncheck.probe.agent.nccl_rank.messages import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, Optional, Sequence

    from ncheck.probe.agent.nccl_rank.cuda import Context, Pointer

# Constants of rocBLAS, with the names and values of its public headers.
rocblas_operation_none, rocblas_datatype_f32_r, rocblas_datatype_bf16_r = 111, 151, 168
_KINDS = {"bf16": rocblas_datatype_bf16_r, "fp32": rocblas_datatype_f32_r}


def _loaded(files: "Iterable[str]") -> "Optional[ctypes.CDLL]":
    for file in files:
        try:
            return ctypes.CDLL(file)
        except OSError:  # the next one may be there
            continue
    return None


class Hip(HipNames, Device):
    """The GPUs at these PCI addresses, in this order; `files` and `compilers` are libraries to try."""

    def __init__(self, addresses: "Sequence[str]", files: "Sequence[str]", compilers: "Sequence[str]") -> None:
        self.addresses, self.files, self.compilers = addresses, files, compilers
        self.devices: "Dict[int, ctypes.c_int]" = {}
        Device.__init__(self)

    def load(self) -> "ctypes.CDLL":
        library = _loaded(self.files)
        if library is None:
            raise RankError("no {} of ROCm could be loaded".format(self.file))
        return library

    def count(self) -> int:
        return len(self.addresses)

    def enter(self, index: int) -> "Context":
        device = self.devices[index] = ctypes.c_int()
        self.call("cuDeviceGetByPCIBusId", ctypes.byref(device), self.addresses[index].encode())
        self.use(device)
        return device

    def let_reach(self, one: int, other: int, context: "Context") -> None:
        Device.let_reach(self, self.devices[one].value, self.devices[other].value, context)

    def kernels(self) -> "Dict[str, Pointer]":
        """Compile the kernels for the current device; return them by name."""
        library = _loaded(self.compilers)
        if library is None:
            raise RankError("there is no libhiprtc of ROCm")

        def compiler(name: str, *arguments: object) -> None:
            status = getattr(library, name)(*arguments)
            if status:
                raise RankError("{} returned status {}".format(name, status))

        program, size, none = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
        text = kernels.hip().encode()
        compiler("hiprtcCreateProgram", ctypes.byref(program), text, b"ncheck.hip", ctypes.c_int(0), none, none)
        compiler("hiprtcCompileProgram", program, ctypes.c_int(0), none)
        compiler("hiprtcGetCodeSize", program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        compiler("hiprtcGetCode", program, code)
        return self.functions(code)


class RocBlas(Blas):
    """rocBLAS, with a handle for the current device."""

    called, create, set_stream = "rocBLAS", "rocblas_create_handle", "rocblas_set_stream"

    def multiply(self, kind: str, count: "ctypes.c_int", matrices: "Sequence[Pointer]") -> None:
        first, second, third = matrices
        one, nothing, number = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_int(_KINDS[kind])
        plain, exact = ctypes.c_int(rocblas_operation_none), ctypes.c_int(rocblas_datatype_f32_r)
        self.call(
            "rocblas_gemm_ex", self.handle, plain, plain, count, count, count, ctypes.byref(one), first, number, count,
            second, number, count, ctypes.byref(nothing), third, number, count, third, number, count, exact,
            ctypes.c_int(0), ctypes.c_int(0), ctypes.c_uint(0),
        )  # fmt: skip
