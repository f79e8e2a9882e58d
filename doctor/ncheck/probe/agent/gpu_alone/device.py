"""What the test of one GPU needs of the driver beyond an all-reduce: kernels, queued copies, peers; and of cuBLAS."""

import ctypes
from functools import partial

from ncheck.probe.agent.gpu_alone import kernels
from ncheck.probe.agent.nccl_rank.cuda import Cuda
from ncheck.probe.agent.nccl_rank.messages import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, Sequence, Union

    from ncheck.probe.agent.nccl_rank.cuda import Buffer, Context, Pointer

    Parameter = Union[ctypes.c_uint32, ctypes.c_uint64]

# Constants of cuBLAS, with the names and values of its public headers
CUBLAS_OP_N, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT = 0, 68, -1
CUDA_R_16BF, CUDA_R_32F = 14, 0
_KINDS = {"bf16": CUDA_R_16BF, "fp32": CUDA_R_32F}
CUDA_ERROR_TOO_MANY_PEERS = 711
# CUresult where the driver cannot compile a text for this GPU, which is no fault of the GPU: invalid image, no binary
# for it, invalid PTX, no compiler, a version of PTX that it does not know, compiling is switched off.
UNCOMPILED = (200, 209, 218, 221, 222, 223)


class Device(Cuda):
    """The CUDA driver's API; see nccl_rank/cuda.py."""

    def count(self) -> int:
        number = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def use(self, context: "Context") -> None:
        self.call("cuCtxSetCurrent", context)

    # Kernels

    def kernels(self) -> "Dict[str, Pointer]":
        """Compile the kernels for the current device; return them by name."""
        return self.functions(kernels.PTX.encode())

    def functions(self, code: "Union[bytes, Buffer]") -> "Dict[str, Pointer]":
        module, found = ctypes.c_void_p(), {}
        self.call("cuModuleLoadData", ctypes.byref(module), code)
        for name in kernels.NAMES:
            found[name] = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(found[name]), module, name.encode())
        return found

    def launch(
        self, function: "Pointer", blocks: int, threads: int, stream: "Pointer", *parameters: "Parameter"
    ) -> None:
        """Queue a kernel; it may have more parameters than it takes."""
        pointers = (ctypes.c_void_p * len(parameters))(*(ctypes.addressof(one) for one in parameters))
        sizes = (ctypes.c_uint(number) for number in (blocks, 1, 1, threads, 1, 1, 0))
        self.call("cuLaunchKernel", function, *sizes, stream, pointers, ctypes.c_void_p())

    # Copies

    def pinned(self, size: int) -> "Pointer":
        """Return the address of host memory that the device copies to and from by itself."""
        address = ctypes.c_void_p()
        self.call("cuMemAllocHost_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def queue_on_device(self, target: int, source: int, size: int, stream: "Pointer") -> None:
        self.call(
            "cuMemcpyDtoDAsync_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size), stream
        )

    def queue_to_device(self, target: int, host: "Pointer", size: int, stream: "Pointer") -> None:
        self.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(target), host, ctypes.c_size_t(size), stream)

    def queue_to_host(self, host: "Pointer", source: int, size: int, stream: "Pointer") -> None:
        self.call("cuMemcpyDtoHAsync_v2", host, ctypes.c_uint64(source), ctypes.c_size_t(size), stream)

    # Peers

    def let_reach(self, one: int, other: int, context: "Context") -> None:
        """Let the current context of one device reach the memory of another, where the hardware can."""
        able = ctypes.c_int()
        self.call("cuDeviceCanAccessPeer", ctypes.byref(able), ctypes.c_int(one), ctypes.c_int(other))
        if not able.value:
            return
        try:
            self.call("cuCtxEnablePeerAccess", context, ctypes.c_uint(0))
        except RankError as trouble:
            if trouble.driver != CUDA_ERROR_TOO_MANY_PEERS:  # more than 8 by PCIe: the copy goes by the host
                raise

    def queue_to_peer(  # noqa: PLR0913, PLR0917  as the driver has them
        self, target: int, there: "Context", source: int, here: "Context", size: int, stream: "Pointer"
    ) -> None:
        self.call(
            "cuMemcpyPeerAsync", ctypes.c_uint64(target), there, ctypes.c_uint64(source), here, ctypes.c_size_t(size),
            stream,
        )  # fmt: skip


class Blas:
    """cuBLAS, with a handle in the current context."""

    called, create, set_stream = "cuBLAS", "cublasCreate_v2", "cublasSetStream_v2"

    def __init__(self, library: "ctypes.CDLL") -> None:
        self.library, self.handle = library, ctypes.c_void_p()
        self.call(self.create, ctypes.byref(self.handle))

    @classmethod
    def first(cls, files: "Iterable[str]") -> "Union[Blas, str]":
        """Return the first that can be used; why none can, as text, otherwise."""
        why = "no {}: matrix products were not measured".format(cls.called)
        for file in files:
            try:
                return cls(ctypes.CDLL(file))
            except (OSError, RankError, AttributeError) as error:
                why = "{} cannot be used: {}".format(cls.called, error)[:200]
        return why

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RankError("{} returned status {}".format(name, status))

    def product(self, kind: str, side: int, matrices: "Iterable[int]", stream: "Pointer") -> "Callable[[], object]":
        """Return a function that queues the product of the first two matrices, into the third."""
        self.call(self.set_stream, self.handle, stream)
        pointers = [ctypes.c_void_p(matrix) for matrix in matrices]
        return partial(self.multiply, kind, ctypes.c_int(side), pointers)

    def multiply(self, kind: str, count: "ctypes.c_int", matrices: "Sequence[Pointer]") -> None:
        first, second, third = matrices
        one, nothing, number = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_int(_KINDS[kind])
        plain = ctypes.c_int(CUBLAS_OP_N)
        self.call(
            "cublasGemmEx", self.handle, plain, plain, count, count, count, ctypes.byref(one), first, number, count,
            second, number, count, ctypes.byref(nothing), third, number, count, ctypes.c_int(CUBLAS_COMPUTE_32F),
            ctypes.c_int(CUBLAS_GEMM_DEFAULT),
        )  # fmt: skip
